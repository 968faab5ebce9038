import { fileURLToPath } from "node:url";

/** A program that replaces Claude Code in a session (`pathToClaudeCodeExecutable`); its prompt says what it does. */
export const HOSTILE_CLAUDE = fileURLToPath(new URL("hostile-claude.mjs", import.meta.url));

/** As JSON the prompt. */
export interface Misbehaviour {
  readonly lines?: readonly string[];
  readonly repeat?: string;
  readonly times?: number;
  readonly megabytes?: number;
  readonly stream?: "stdout" | "stderr";
}
