import { z } from "zod";
import { SessionOptions } from "../../domain/options.ts";
import { said } from "../prompt.ts";

/** The parameters that the chat tools share (seed 004). */

export const Model = z.enum(["opus", "sonnet", "haiku"]);
export const Mode = z.enum(["default", "acceptEdits", "plan", "bypassPermissions"]);

/** How a conversation begins. */
export const beginning = {
  cwd: SessionOptions.shape.cwd.exactOptional(),
  model: Model.exactOptional().describe("Default: Claude Code's"),
  permissionMode: Mode.exactOptional().describe("Default: default (asks for all but reads, Agent, Skill)"),
  systemPrompt: z.string().min(1).exactOptional().describe("replaces Claude Code's own. Default: its own"),
};

export const saying = {
  prompt: said.prompt,
  includeThinking: z.boolean().exactOptional().describe("tell and return its thinking. Default: false"),
};
