import type { CommandRun, Receipt, TestChanges } from "../../../../src/domain/receipt.ts";
import { count } from "../../parts/format.ts";
import { truncateLine } from "../../parts/text.ts";

/** Words for a receipt. Texts of files and commands are safe to show. */

export interface Fact {
  readonly text: string;
  /** Words for screen readers, where `text` has signs. */
  readonly spoken?: string;
  readonly isWarning?: boolean;
}

/** The receipt on one line, fact by fact. Facts that are zero are left out, except the number of files. */
export function receiptFacts(receipt: Receipt): readonly Fact[] {
  const { background, complete, denied, leftOut, outside } = receipt;
  return [
    filesFact(receipt),
    ...testFacts(receipt.files.map(({ tests = {} }) => tests)),
    ...checkFacts(receipt.commands),
    ...otherCommands(receipt.commands),
    ...some(denied, `${String(denied)} denied`),
    ...commitFact(receipt),
    ...gitFilesFact(receipt),
    ...some(outside.length, `${count(outside.length, "change")} outside the folders`, true),
    ...some(background, `${count(background, "background task")} still running`),
    ...some(leftOut, `${leftOut.toLocaleString("en-US")} more not listed`),
    ...some(complete ? 0 : 1, "incomplete", true),
  ];
}

function some(n: number, text: string, isWarning = false): Fact[] {
  return n > 0 ? [{ text, isWarning }] : [];
}

function filesFact({ by, complete, files }: Receipt): Fact {
  if (files.length === 0) return { text: complete && by === "tree" ? "No files changed" : "No file changes seen" };
  const lines = files.flatMap(({ lines: each }) => (each ? [each] : []));
  const added = sum(lines.map(([plus]) => plus));
  const removed = sum(lines.map(([, minus]) => minus));
  const deleted = files.filter(({ change }) => change === "deleted").length;
  const [words, end] = [count(files.length, "file"), deleted > 0 ? `, ${String(deleted)} deleted` : ""];
  if (lines.length === 0) return { text: words + end };
  return {
    text: `${words} ${linesText([added, removed])}${end}`,
    spoken: `${words}, ${linesSpoken([added, removed])}${end}`,
  };
}

/** "(+41 −7)" */
function linesText([added, removed]: readonly [number, number]): string {
  return `(+${added.toLocaleString("en-US")} −${removed.toLocaleString("en-US")})`;
}

export function linesSpoken([added, removed]: readonly [number, number]): string {
  return `${count(added, "line")} added, ${removed.toLocaleString("en-US")} removed`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** Changes of tests, each of which may hide a failure. */
export function testFacts(changes: readonly TestChanges[]): readonly Fact[] {
  const total = (key: keyof TestChanges) => sum(changes.map((each) => each[key] ?? 0));
  const [deleted, emptied, removed] = [total("deleted"), total("emptied"), total("removed")];
  const [skipped, only] = [total("skipped"), total("only")];
  return [
    ...some(deleted, `${count(deleted, "test file")} deleted`, true),
    ...some(emptied, `${count(emptied, "test file")} emptied`, true),
    ...some(removed, `${count(removed, "test")} removed`, true),
    ...some(skipped, `${count(skipped, "test")} set to skip`, true),
    ...some(only, `${count(only, "test")} set to run alone`, true),
  ];
}

/** Checks named on the line, and characters of each. */
const [MAX_CHECKS, MAX_COMMAND] = [3, 40];

/** Last run of each check, failed ones first. */
function checkFacts(commands: readonly CommandRun[]): readonly Fact[] {
  const last = new Map(commands.flatMap((run) => (run.check ? [[run.command, run] as const] : [])));
  const facts = [...last.values()].map((run): Fact => {
    const text = `${truncateLine(run.command, MAX_COMMAND)}: ${resultWords(run)}`;
    return { text, isWarning: hasFailed(run) };
  });
  const sorted = facts.toSorted((one, other) => Number(other.isWarning) - Number(one.isWarning));
  const rest = sorted.slice(MAX_CHECKS);
  const failed = rest.filter(({ isWarning }) => isWarning).length;
  const more = `${count(rest.length, "more check")}${failed > 0 ? `, ${String(failed)} failed` : ""}`;
  return [...sorted.slice(0, MAX_CHECKS), ...some(rest.length, more, failed > 0)];
}

/** Commands that check nothing: a failed one (a search without a hit) is no warning. */
function otherCommands(commands: readonly CommandRun[]): readonly Fact[] {
  const others = commands.filter(({ check }) => !check);
  const failed = others.filter(hasFailed).length;
  const noun = others.length < commands.length ? "other command" : "command";
  return some(others.length, `${count(others.length, noun)}${failed > 0 ? `, ${String(failed)} failed` : ""}`);
}

export function hasFailed({ exit, failed = 0 }: Pick<CommandRun, "exit" | "failed">): boolean {
  return failed > 0 || (exit !== "unknown" && exit !== 0);
}

/** Totals that the runner reports: "1 failed", "41 passed". */
export function totalsOf({ failed = 0, passed, skipped = 0 }: CommandRun): readonly string[] {
  return [
    ...(failed > 0 ? [`${String(failed)} failed`] : []),
    ...(passed === undefined ? [] : [`${String(passed)} passed`]),
    ...(skipped > 0 ? [`${String(skipped)} skipped`] : []),
  ];
}

/** "1 failed, 41 passed" as the runner reports, otherwise by the exit code. */
function resultWords(run: CommandRun): string {
  const { exit, failed = 0 } = run;
  const totals = totalsOf(run);
  if (totals.length === 0)
    return exit === "unknown" ? "result unknown" : exit === 0 ? "passed" : `failed (exit ${String(exit)})`;
  const isClear = exit === 0 || (exit !== "unknown" && failed > 0);
  return [...totals, ...(isClear ? [] : [exitWords(exit)])].join(", ");
}

export function exitWords(exit: CommandRun["exit"]): string {
  return exit === "unknown" ? "exit code unknown" : `exit ${String(exit)}`;
}

const MAX_COMMITS = 3;

function commitFact({ commits }: Receipt): readonly Fact[] {
  if (commits.length > MAX_COMMITS) return [{ text: count(commits.length, "commit") }];
  const hashes = commits.map(({ hash }) => shortHash(hash)).join(", ");
  return some(commits.length, `${commits.length === 1 ? "commit" : "commits"} ${hashes}`);
}

export function shortHash(hash: string): string {
  return truncateLine(hash, 200).slice(0, 7);
}

function gitFilesFact({ gitFiles }: Receipt): readonly Fact[] {
  const hooks = gitFiles.filter((path) => /(?:^|\/)hooks\//.test(path)).length;
  const what = [...(hooks > 0 ? ["hooks"] : []), ...(hooks < gitFiles.length ? ["configuration"] : [])];
  return some(gitFiles.length, `git ${what.join(" and ")} changed`, true);
}

/** Sources of a change: "seen in the folder, reported by Edit". */
export function sourceWords(by: readonly string[]): string {
  const tools = by.filter((each) => each !== "tree");
  const reported = tools.length === 0 ? [] : [`reported by ${truncateLine(tools.join(", "), 100)}`];
  return [...(by.includes("tree") ? ["seen in the folder"] : []), ...reported].join(", ");
}

/** The line as one text. */
export function receiptText(receipt: Receipt): string {
  return receiptFacts(receipt)
    .map(({ spoken, text }) => spoken ?? text)
    .join("; ");
}
