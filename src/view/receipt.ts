import type { JsonObject } from "../domain/json.ts";
import { countsOf, type CommandRun, type FileChange, type Receipt } from "../domain/receipt.ts";
import { fit, jsonBytes, oneLine } from "./size.ts";

/** Renders receipts: in few bytes as part of a result, and whole in pages. */

/** Maximum size of a receipt in a result, bytes of JSON. */
const MINIMAL_BYTES = 400;

/** Numbers of listed entries, and characters of a name or command. */
interface Form {
  readonly names: number;
  readonly checks: number;
  readonly commits: number;
  readonly chars: number;
}

/** Forms of a receipt, each smaller than the one before. Names and commands shrink first. */
const FORMS: readonly Form[] = [
  { names: 8, checks: 4, commits: 4, chars: 60 },
  { names: 5, checks: 4, commits: 4, chars: 60 },
  { names: 3, checks: 3, commits: 3, chars: 60 },
  { names: 3, checks: 3, commits: 3, chars: 40 },
  { names: 2, checks: 2, commits: 2, chars: 40 },
  { names: 2, checks: 2, commits: 1, chars: 24 },
  { names: 1, checks: 1, commits: 1, chars: 24 },
  { names: 0, checks: 1, commits: 1, chars: 24 },
  { names: 0, checks: 1, commits: 0, chars: 12 },
  { names: 0, checks: 0, commits: 0, chars: 0 },
];

/** Returns the receipt in at most 400 bytes. Leaves out fields that are zero, and counts entries without room in `more`. */
export function minimalReceipt(receipt: Receipt): JsonObject {
  let value: JsonObject = {};
  for (const form of FORMS) {
    value = renderMinimal(receipt, form);
    if (jsonBytes(value) <= MINIMAL_BYTES) return value;
  }
  // Every number has seven digits: no real folder comes here.
  return fit(value, MINIMAL_BYTES, ["others", "between", "background", "moreCommits"]).value;
}

function renderMinimal(receipt: Receipt, form: Form): JsonObject {
  const { background, between, by, commits, complete, denied, gitFiles, others, outside, turn } = receipt;
  const hashes = commits.slice(0, form.commits).map(({ hash }) => hash.slice(0, 7));
  return {
    turn,
    by,
    complete,
    ...filled({
      files: minimalFiles(receipt, form),
      tests: countsOf(receipt).tests,
      commits: hashes,
      moreCommits: commits.length - hashes.length,
      commands: minimalCommands(receipt, form),
      outside: outside.length,
      gitFiles: gitFiles.length,
      denied,
      background,
      between,
      others,
    }),
  };
}

/** Leaves out zeros and empty lists and objects. */
function filled(fields: JsonObject): JsonObject {
  const isEmpty = (value: unknown) =>
    value === 0 || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}

function minimalFiles(receipt: Receipt, { chars, names: most }: Form): JsonObject {
  const { added, changed, deleted, lines, renamed } = countsOf(receipt);
  // Deleted files and changed tests come first, because they are what a caller has to look at.
  const ranked = receipt.files.toSorted((a, b) => rankOf(a) - rankOf(b));
  const names = ranked.slice(0, most).map(({ path }) => endOf(path, chars));
  const more = added + changed + deleted + renamed - names.length;
  const isZero = lines[0] === 0 && lines[1] === 0;
  return filled({ added, changed, deleted, renamed, lines: isZero ? [] : lines, names, more });
}

function rankOf({ change, tests }: FileChange): number {
  return tests || change === "deleted" ? 0 : 1;
}

/** Returns the end of a path, which says more than its beginning. */
function endOf(path: string, chars: number): string {
  const characters = Array.from(path);
  return characters.length <= chars ? path : `…${characters.slice(1 - chars).join("")}`;
}

function minimalCommands(receipt: Receipt, { chars, checks: most }: Form): JsonObject {
  const { failed, ran: run, unknown } = countsOf(receipt);
  const all = lastChecks(receipt.commands);
  const checks = all.slice(0, most).map((check) => minimalCheck(check, chars));
  return filled({ run, failed, unknown, checks, more: all.length - checks.length });
}

/** Returns the last run of each check: failed ones first, then those that nobody knows about. */
function lastChecks(commands: readonly CommandRun[]): CommandRun[] {
  const last = new Map(commands.filter(({ check }) => check !== undefined).map((run) => [run.command, run]));
  const rank = ({ exit, failed = 0 }: CommandRun) => (exit === 0 && failed === 0 ? 2 : exit === "unknown" ? 1 : 0);
  return [...last.values()].toSorted((a, b) => rank(a) - rank(b));
}

function minimalCheck({ command, exit, failed, passed, skipped = 0 }: CommandRun, chars: number): JsonObject {
  return {
    cmd: oneLine(command, chars),
    exit,
    ...(passed !== undefined && { passed }),
    ...(failed !== undefined && { failed }),
    ...(skipped > 0 && { skipped }),
  };
}

/** Part of a receipt. `next` is the first entry of the next page. */
interface ReceiptPage {
  readonly page: JsonObject;
  readonly next?: number;
}

/** Lists in the order of their pages. */
const LISTS = ["notSeen", "folders", "files", "outside", "commits", "gitFiles", "commands", "requests"] as const;

/**
 * Returns the entries of all lists from entry `from` on, as many as fit into `maxBytes`, at least one. The first page also has
 * everything that is not in a list.
 */
export function receiptPage(
  receipt: Receipt,
  { from, maxBytes }: { readonly from: number; readonly maxBytes: number },
): ReceiptPage {
  const entries = LISTS.flatMap((name) => receipt[name].map((entry) => ({ name, entry })));
  const head = from === 0 ? headOf(receipt) : { turn: receipt.turn };
  const page = new Map<string, unknown[]>();
  let left = maxBytes - jsonBytes(head);
  for (const [index, { entry, name }] of entries.slice(from).entries()) {
    const list = page.get(name) ?? [];
    left -= jsonBytes(entry) + 1 + (list.length > 0 ? 0 : jsonBytes(name) + 3);
    if (left < 0 && index > 0) return { page: { ...head, ...Object.fromEntries(page) }, next: from + index };
    list.push(entry);
    page.set(name, list);
  }
  return { page: { ...head, ...Object.fromEntries(page) } };
}

function headOf(receipt: Receipt): JsonObject {
  const { background, between, by, complete, denied, leftOut, others, turn } = receipt;
  const counts = countsOf(receipt);
  return { turn, by, complete, counts, denied, background, others, between, ...(leftOut > 0 && { leftOut }) };
}
