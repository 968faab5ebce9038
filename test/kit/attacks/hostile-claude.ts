import { fileURLToPath } from "node:url";

/** Program for `pathToClaudeCodeExecutable`; its prompt is a `Misbehaviour` as JSON. */
export const HOSTILE_CLAUDE = fileURLToPath(new URL("hostile-claude.mjs", import.meta.url));

/** Prompt of `HOSTILE_CLAUDE`, sent as JSON. */
export interface Misbehaviour {
  readonly lines?: readonly string[];
  readonly repeat?: string;
  readonly times?: number;
  readonly megabytes?: number;
  readonly stream?: "stdout" | "stderr";
}
