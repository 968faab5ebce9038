import { readFirstPrompt, type SessionRecord, type Store } from "./store.ts";
import { waitingOf } from "../../domain/session.ts";
import { waitingField } from "../../domain/standstill.ts";
import { UNREADABLE } from "../../domain/unreadable.ts";
import { roundUsd } from "../../domain/usage.ts";
import { ownerName } from "../../engine/nodes.ts";
import { shortPath, isoTime, oneLine, roughDuration, statusWord, usd } from "./text-format.ts";

/** Formats sessions as lines of a table, and as objects for programs. */

export interface Row {
  readonly record: SessionRecord;
  /** Beginning of the first prompt. */
  readonly prompt: string;
}

/** Maximum length of a prompt, characters. Whole prompts of thousands of sessions would not fit into memory. */
const MAX_PROMPT_CHARS = 1000;

export async function readRow(store: Store, record: SessionRecord): Promise<Row> {
  return { record, prompt: (await readFirstPrompt(store, record.id)).slice(0, MAX_PROMPT_CHARS) };
}

/** Returns the facts of a session outside its log, by wire name. */
export function summary(record: SessionRecord) {
  const { createdAt, id, owner, place, spec, state, title, unreadable, updatedAt } = record;
  const node = ownerName(record);
  const model = state.reported.model ?? spec.model;
  return {
    sessionId: id,
    status: statusWord(record),
    ...waitingField(state),
    ...(unreadable && { errorSubtype: UNREADABLE, unreadable: unreadable.why }),
    owned: owner?.alive === true,
    ...(node !== undefined && { node }),
    ...(place && { place }),
    cwd: spec.cwd,
    ...(title !== undefined && { title }),
    ...(model !== undefined && { model }),
    permissionMode: state.reported.permissionMode ?? spec.permissionMode ?? "default",
    createdAt: isoTime(createdAt),
    lastActiveAt: isoTime(updatedAt),
    totalTurns: state.totals.turns,
    totalCostUsd: roundUsd(state.totals.costUsd),
    ...(state.lastOutcome && { lastOutcome: state.lastOutcome }),
    pending: state.requests.length,
  };
}

const HEAD = ["ID", "STATUS", "AGE", "CALLS", "COST", "FOLDER", "PROMPT"];
/** Columns with numbers, aligned to the right. */
const RIGHT: ReadonlySet<string> = new Set(["AGE", "CALLS", "COST"]);
const [MIN_ID, MAX_FOLDER, MAX_PROMPT, MIN_PROMPT] = [8, 32, 60, 20];

/** Formats a table for people, as wide as the terminal, if there is one. */
export function table(rows: readonly Row[], now: number): string {
  const idLength = shortestIds(rows.map(({ record }) => record.id));
  const lines = rows.map(({ prompt, record }) => [
    record.id.slice(0, idLength),
    [statusWord(record), waitingOf(record.state)?.kind].filter((word) => word !== undefined).join(": "),
    roughDuration(now - record.updatedAt),
    String(record.state.totals.turns),
    usd(record.state.totals.costUsd),
    shortPath(record.spec.cwd, MAX_FOLDER),
    record.unreadable ? `(unreadable) ${record.title ?? prompt}` : (record.title ?? prompt),
  ]);
  const columns = HEAD.slice(0, -1).map((name, n) => {
    const width = Math.max(name.length, ...lines.map((line) => (line[n] ?? "").length));
    return { name, width };
  });
  const used = columns.reduce((sum, { width }) => sum + width + 2, 0);
  const room = process.stdout.isTTY ? Math.max(process.stdout.columns - used, MIN_PROMPT) : MAX_PROMPT;
  const shown = [HEAD, ...lines].map((line) => {
    const cells = columns.map(({ name, width }, n) => {
      const cell = line[n] ?? "";
      return RIGHT.has(name) ? cell.padStart(width) : cell.padEnd(width);
    });
    return [...cells, oneLine(line.at(-1) ?? "", room)].join("  ").trimEnd();
  });
  return `${shown.join("\n")}\n`;
}

/** Returns the length of the shortest prefix that distinguishes all `ids`. */
function shortestIds(ids: readonly string[]): number {
  let length = MIN_ID;
  while (length < 36 && new Set(ids.map((id) => id.slice(0, length))).size < ids.length) length += 1;
  return length;
}
