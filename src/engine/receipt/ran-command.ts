import { textOf } from "../../domain/blocks.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { CommandRun } from "../../domain/receipt.ts";
import { readCommandLine, type CommandLine } from "../../security/shell/command-line.ts";
import { checkOf, type Check } from "./checks.ts";
import { readTotals } from "./totals.ts";

/** Reads one call of a shell tool: command, exit code, kind of check, totals. */

/** Tools that run commands. `Monitor` runs its command in the background. */
export const SHELLS: ReadonlySet<string> = new Set(["Bash", "Monitor", "PowerShell"]);

export interface ShellCall {
  readonly eventId: number;
  readonly tool: string;
  readonly input: JsonObject;
}

/** Result of a call, as Claude Code reports it. */
export interface ToolOutcome {
  readonly content: unknown;
  readonly isError: boolean;
  /** Structured output (`tool_use_result`). Claude Code sends none for a subagent. */
  readonly structured: JsonObject | undefined;
  /** False if the call may not have run to its end: `non_execution_kind`, `call_ended`. */
  readonly isWhole: boolean;
}

/** Maximum length of the text of a command, characters. */
const MAX_COMMAND = 200;

/** `outcome` is `undefined` for a call without a result. */
export function runOf({ eventId, input, tool }: ShellCall, outcome: ToolOutcome | undefined): CommandRun {
  const command = typeof input["command"] === "string" ? input["command"] : "";
  const line = readCommandLine(command, tool === "PowerShell" ? "powershell" : "bash");
  const inBackground = tool === "Monitor" || input["run_in_background"] === true;
  const checks = line.commands.flatMap((words) => checkOf(words) ?? []);
  const check = MOST_TELLING.map((kind) => checks.find((each) => each.kind === kind)).find((each) => each);
  const ended = inBackground ? undefined : outcome;
  return {
    eventId,
    command: shortened(command),
    exit: ended ? exitOf(line, ended) : "unknown",
    ...(check && { check: check.kind }),
    ...(ended && check && totalsIn(line, check, ended)),
  };
}

/** Kinds of checks; a line with several counts as the first of these. */
const MOST_TELLING = ["test", "type", "lint", "build"] as const;

export function shortened(command: string): string {
  if (command.length <= MAX_COMMAND) return command;
  const characters = Array.from(command.slice(0, MAX_COMMAND - 1));
  return `${characters.join("").replace(/\p{Cs}$/u, "")}…`;
}

function exitOf(line: CommandLine, outcome: ToolOutcome): CommandRun["exit"] {
  const code = codeOf(line, outcome);
  if (code === undefined || line.form === "other" || line.form === "filtered") return "unknown";
  if (code === 0) return 0;
  // The first command that fails ends the line, and nothing says which.
  if (line.form === "and" || line.timed) return "unknown";
  return line.moves && mayBeOfMove(code, outcome) ? "unknown" : code;
}

/** `cd` fails with 1 and a message. */
function mayBeOfMove(code: number, { content }: ToolOutcome): boolean {
  const text = textOf(content);
  return code === 1 && (/\bcd:/.test(text) || isCut(text));
}

/** First line of a failed command. No command can write before it. */
const EXIT_CODE = /^Exit code (\d{1,10})(?:\n([^\n]*)|$)/;
/** Line of Claude Code behind `EXIT_CODE`, or its note, after a command that it has ended or let go on. */
const ENDED = /^Command timed out after |<error>Command was aborted before completion<\/error>$/;
const LET_GO =
  /^Command (?:running in background with ID|was manually backgrounded|was moved to the background|did not complete within its)/m;

/** Exit code of the shell, as Claude Code reports it; `undefined` if unknown. */
function codeOf(line: CommandLine, { content, isError, isWhole, structured }: ToolOutcome): number | undefined {
  if (!isWhole) return undefined;
  const text = textOf(content);
  if (isError) return codeIn(text);
  if (structured) return codeBy(structured);
  return LET_GO.test(text) || ENDED.test(text) || isTolerated(line) ? undefined : 0;
}

function codeIn(text: string): number | undefined {
  const [, code, next = ""] = EXIT_CODE.exec(text) ?? [];
  return code === undefined || ENDED.test(next) || ENDED.test(text) ? undefined : Number(code);
}

/** Reads the structured output of a command that Claude Code does not report as failed. */
function codeBy(structured: JsonObject): number | undefined {
  const { backgroundTaskId, interrupted, returnCodeInterpretation: meaning, timedOutAfterMs } = structured;
  if (backgroundTaskId !== undefined || interrupted === true || timedOutAfterMs !== undefined) return undefined;
  if (meaning === undefined) return 0;
  return typeof meaning === "string" && MEANS_ONE.has(meaning) ? 1 : undefined;
}

/** Meanings that Claude Code gives to the exit code 1, which it does not report as an error. */
const MEANS_ONE: ReadonlySet<string> = new Set([
  "No matches found",
  "Some directories were inaccessible",
  "Files differ",
  "Condition is false",
]);

const TOLERATED: ReadonlySet<string | undefined> = new Set("grep rg egrep fgrep find diff test [ git".split(" "));

/** True for a program whose exit code 1 is no error to Claude Code. */
function isTolerated({ commands }: CommandLine): boolean {
  return commands.length === 0 || TOLERATED.has(commands.at(-1)?.[0]);
}

/** Marks of Claude Code in an output that it has cut. */
const CUT = /^<persisted-output>|^\.\.\. \[\d+ (?:characters|lines) truncated\] \.\.\.$/m;

function isCut(text: string): boolean {
  return CUT.test(text);
}

/** Returns totals of a single test runner, whose output nothing else writes to. `head` and `tail` leave out lines only. */
function totalsIn(line: CommandLine, { kind, runner }: Check, outcome: ToolOutcome): Partial<CommandRun> | undefined {
  if (kind !== "test" || line.commands.length !== 1 || (line.form !== "plain" && line.form !== "filtered")) return;
  const text = textOf(outcome.content);
  // A saved output shows its beginning only.
  if (text.startsWith("<persisted-output>")) return;
  return readTotals(text, runner, isCut(text) || line.form === "filtered");
}
