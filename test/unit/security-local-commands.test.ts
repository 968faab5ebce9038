import { describe, expect, it } from "vitest";

import { checkLocalCommand } from "../../src/security/local-commands.ts";

describe("commands of Claude Code in a prompt", () => {
  it.each([
    "/config permissionMode=acceptEdits",
    "/config\ttheme=dark",
    "/config\nx",
    " /config",
    "/Config theme=dark",
    "/settings theme=light",
    "/output-style Explanatory",
    "/heapdump",
    "/mcp disable all",
    "/insights",
  ])("a prompt that Claude Code would execute itself is refused: %j", (text) => {
    expect(() => checkLocalCommand("prompt", text)).toThrow(/^prompt: \/[a-z-]+ is a Claude Code command that /);
  });

  it.each(["/compact", "/model opus", "/review", "/configure it", "/mcp__server__prompt", "See /config", "/", ""])(
    "a prompt is accepted if it is not a command, or affects only the session: %j",
    (text) => {
      expect(() => checkLocalCommand("prompt", text)).not.toThrow();
    },
  );
});
