import { countsOf, type CommandRun, type Receipt } from "../../domain/receipt.ts";
import type { Verification } from "../../domain/verification.ts";
import { count } from "./text-format.ts";

/** Describes receipts and verifications on one line. `code` makes foreign text safe to show. */

type Code = (text: string) => string;

/** Maximum number of checks on the line. */
const MAX_CHECKS = 5;

export function receiptText(receipt: Receipt, code: Code): string {
  const { background, between, commits, complete, denied, gitFiles, others, outside } = receipt;
  const { failed, ran, tests, unknown } = countsOf(receipt);
  const endings = [some(failed, "failed"), some(unknown, "with unknown exit code")].filter((text) => text !== "");
  const facts = [
    filesText(receipt),
    ...Object.entries(tests).map(([change, number]) => TEST_WORDS[change]?.(number) ?? ""),
    commits.length > 0 ? count(commits.length, "commit") : "",
    gitFiles.length > 0 ? `${count(gitFiles.length, "file")} of git's own changed` : "",
    outside.length > 0 ? `${count(outside.length, "file")} outside changed` : "",
    ran > 0 ? `${count(ran, "command")}${endings.length > 0 ? ` (${endings.join(", ")})` : ""}` : "",
    ...lastChecks(receipt.commands).map((check) => checkText(check, code)),
    some(denied, "denied"),
    background > 0 ? `${count(background, "background task")} still at work` : "",
    others > 0 ? `${count(others, "other session")} in the folder` : "",
    between > 0 ? `${count(between, "file")} changed before the turn` : "",
    complete ? "" : "not everything was seen",
  ];
  return `receipt: ${facts.filter((fact) => fact !== "").join(", ")}`;
}

function some(number: number, word: string): string {
  return number > 0 ? `${String(number)} ${word}` : "";
}

function filesText(receipt: Receipt): string {
  const { added, changed, deleted, lines, renamed } = countsOf(receipt);
  const kinds = [some(added, "added"), some(changed, "changed"), some(deleted, "deleted"), some(renamed, "renamed")];
  const total = added + changed + deleted + renamed;
  if (total === 0) return receipt.by === "tree" && receipt.complete ? "no files changed" : "no changed files seen";
  const [plus, minus] = lines;
  const size = plus + minus > 0 ? `; +${String(plus)} -${String(minus)} lines` : "";
  return `${count(total, "file")} (${kinds.filter((kind) => kind !== "").join(", ")}${size})`;
}

/** Words for changes of tests, by field of the receipt. */
const TEST_WORDS: Readonly<Record<string, (number: number) => string>> = {
  deleted: (number) => `${count(number, "test file")} deleted`,
  emptied: (number) => `${count(number, "test file")} emptied`,
  removed: (number) => `${count(number, "test")} removed`,
  skipped: (number) => `${count(number, "test")} set to skip`,
  only: (number) => `${count(number, "test")} set to run alone`,
};

function lastChecks(commands: readonly CommandRun[]): CommandRun[] {
  const checks = new Map(commands.filter(({ check }) => check !== undefined).map((run) => [run.command, run]));
  return [...checks.values()].slice(-MAX_CHECKS);
}

function checkText({ command, exit, failed, passed }: CommandRun, code: Code): string {
  const totals = passed === undefined ? "" : ` (${String(passed)} passed, ${String(failed ?? 0)} failed)`;
  return `${code(command)} exit ${String(exit)}${totals}`;
}

export function verificationText({ attempts, commands, message, of, status }: Verification, code: Code): string {
  const red = commands.find(({ exit }) => exit !== 0);
  const end = red && (red.signal ?? (red.exit === null ? "not started" : `exit ${String(red.exit)}`));
  const runs = of > 1 ? `, run ${String(attempts)} of ${String(of)}` : "";
  return [
    `verification ${status}${runs}`,
    red ? `: ${code(red.command)} ${String(end)}` : "",
    message === undefined ? "" : `: ${code(message)}`,
  ].join("");
}
