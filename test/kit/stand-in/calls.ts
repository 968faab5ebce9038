import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Script, Stage } from "./stage.ts";

/** Calls of tools in scenarios. */

export const write = (file: string, content = "hello\n") => ({ name: "Write", input: { file_path: file, content } });
export const bash = (command: string, more: object = {}) => ({ name: "Bash", input: { command, ...more } });
export const read = (file: string) => ({ name: "Read", input: { file_path: file } });
export const agent = (script: Script, more: object = {}) => ({
  name: "Agent",
  input: { description: "help", subagent_type: "general-purpose", prompt: `Help. ${scriptTag(script)}`, ...more },
});

/**
 * Behavior of Claude Code that our code depends on. Each scenario is a few turns of a session and returns findings beside the
 * log.
 */
export type Scenarios = Readonly<Record<string, (stage: Stage) => Promise<unknown>>>;
