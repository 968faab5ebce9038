import type { CommandRun, FileChange, Receipt, ReceiptCounts } from "../../domain/receipt.ts";

/** Bounds a receipt: the entries that tell most are kept, in their order. */

/** Maximum size of a receipt, bytes of JSON. The rest is room for the state of the folders in one event. */
const MAX_BYTES = 60 * 1_024;
/** Maximum number of entries of the lists that are short but for an attack, and of characters in a text of them. */
const MAX_SHORT = 50;
const MAX_CHARS = 300;

/** `counts` and `leftOut` are those of the whole turn. */
export function boundReceipt(receipt: Receipt, counts: ReceiptCounts, leftOut: number): Receipt {
  const short = withShortLists(receipt);
  const lists = {
    files: receipt.files,
    commands: receipt.commands,
    requests: receipt.requests,
    outside: receipt.outside,
  };
  const frame = { ...short, files: [], commands: [], requests: [], outside: [], counts, leftOut: MAX_BYTES };
  const kept = keepMostTelling(lists, MAX_BYTES - bytesOf(frame));
  const omitted =
    leftOut +
    shortLength(receipt) -
    shortLength(short) +
    lists.files.length +
    lists.commands.length +
    lists.requests.length +
    lists.outside.length -
    (kept.files.length + kept.commands.length + kept.requests.length + kept.outside.length);
  return { ...short, ...kept, leftOut: omitted, ...(omitted > 0 && { counts }) };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function withShortLists(receipt: Receipt): Receipt {
  const { commits, folders, gitFiles, notSeen } = receipt;
  return {
    ...receipt,
    commits: commits.slice(0, MAX_SHORT).map(({ hash, subject }) => ({ hash, subject: cut(subject) })),
    folders: folders.slice(0, MAX_SHORT),
    gitFiles: gitFiles.slice(0, MAX_SHORT).map(cut),
    notSeen: notSeen.slice(0, MAX_SHORT).map(cut),
  };
}

const shortLength = ({ commits, folders, gitFiles, notSeen }: Receipt): number =>
  commits.length + folders.length + gitFiles.length + notSeen.length;

function cut(text: string): string {
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

type Lists = Pick<Receipt, "commands" | "files" | "outside" | "requests">;

interface Entry {
  readonly list: keyof Lists;
  readonly at: number;
  readonly bytes: number;
  readonly rank: number;
}

/** Keeps entries by rank while there is room: failed commands, checks and deletions first, then the latest. */
function keepMostTelling(lists: Lists, room: number): Lists {
  const entries: Entry[] = [
    ...lists.files.map((file, at) => entry("files", at, file, rankOfFile(file))),
    ...lists.commands.map((run, at) => entry("commands", at, run, rankOfCommand(run))),
    ...lists.requests.map((request, at) => entry("requests", at, request, request.behavior === "deny" ? 1 : 3)),
    ...lists.outside.map((path, at) => entry("outside", at, path, 1)),
  ];
  const kept = new Set<string>();
  let left = room;
  for (const { at, bytes, list } of entries.toSorted((a, b) => a.rank - b.rank || b.at - a.at)) {
    if (bytes > left) continue;
    left -= bytes;
    kept.add(`${list} ${String(at)}`);
  }
  const isKept = (list: keyof Lists) => (_: unknown, at: number) => kept.has(`${list} ${String(at)}`);
  return {
    files: lists.files.filter(isKept("files")),
    commands: lists.commands.filter(isKept("commands")),
    requests: lists.requests.filter(isKept("requests")),
    outside: lists.outside.filter(isKept("outside")),
  };
}

function entry(list: keyof Lists, at: number, value: unknown, rank: number): Entry {
  return { list, at, bytes: bytesOf(value) + 1, rank };
}

function rankOfFile({ change, tests }: FileChange): number {
  return change === "deleted" || tests ? 0 : 2;
}

function rankOfCommand({ check, exit }: CommandRun): number {
  return check !== undefined || (exit !== 0 && exit !== "unknown") ? 0 : 3;
}
