import { optionsReference } from "../reference/options.ts";
import type { Page } from "./define.ts";

export const options: Page = {
  uri: "claude-code://options",
  name: "options",
  title: "Options of a session",
  description: "Every option that claude_code takes, with its type, default and meaning.",
  mimeType: "text/markdown",
  text: optionsReference,
};
