import { AppError } from "../domain/error.ts";

/**
 * Commands that Claude Code carries out by itself at the beginning of a prompt, without approval and without rules. Their
 * effects reach beyond the session: a caller who may only prompt must not use any. Claude Code ignores a command after white
 * space or in another letter case (tried with the binary), but `checkLocalCommand` refuses both.
 */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ["auto-mode-setup", "writes the user's settings"],
  ["autocompact", "writes the user's settings"],
  ["config", "writes the user's settings, their permission mode among them"],
  ["heapdump", "writes the memory of Claude Code to a file"],
  ["insights", "reads the transcripts of all sessions"],
  ["mcp", "switches the user's MCP servers"],
  ["output-style", "writes the settings of the project"],
  ["settings", "writes the user's settings, their permission mode among them"],
  ["team-onboarding", "reads the transcripts of all sessions"],
]);

/** Throws `PERMISSION_DENIED` if `text` begins with such a command. `field` names the parameter in the message. */
export function checkLocalCommand(field: string, text: string): void {
  const name = /^\s*\/([\w-]+)(?![\w-])/.exec(text)?.[1]?.toLowerCase() ?? "";
  const why = REFUSED.get(name);
  if (why === undefined) return;
  const problem = `${field}: /${name} is a Claude Code command that ${why} without asking`;
  throw new AppError(
    "PERMISSION_DENIED",
    `${problem}. Run it in Claude Code itself. To mention it in a prompt, put other text first.`,
  );
}
