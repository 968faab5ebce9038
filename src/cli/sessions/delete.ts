import { ConfigError } from "../../config/error.ts";
import { AppError } from "../../domain/error.ts";
import { statusOf, type SessionStatus } from "../../domain/session.ts";
import { hasTerminal, isConfirmed } from "../confirm.ts";
import { nestingDepth } from "../preflight.ts";
import { pointInTime, readArguments } from "./arguments.ts";
import { readRow, table } from "./rows.ts";
import { allSessions, findSession, withStore, type SessionRecord, type Store } from "./store.ts";
import { count, isTurnAbandoned, statusWord } from "./text-format.ts";

const FLAGS = { "older-than": { type: "string" }, yes: { type: "boolean" } } as const;

/** Statuses that may be deleted, as in the clean-up by servers. */
const DELETABLE: readonly SessionStatus[] = ["idle", "error", "cancelled", "closed"];

/** Number of sessions named in the question, and deleted by one `purge`. */
const [NAMED, BATCH] = [10, 100];

/** Id of a session to delete, and its `updatedAt`, to detect a change meanwhile. */
interface DeletionTarget {
  readonly id: string;
  readonly updatedAt: number;
}

interface Selection {
  readonly doomed: readonly DeletionTarget[];
  /** First sessions, to show. */
  readonly sample: readonly SessionRecord[];
  /** Number of sessions old enough, but still active. */
  readonly kept: number;
}

/** Deletes named sessions, or all idle for the given time, with their logs. */
export async function remove(argv: string[]): Promise<number> {
  const { positionals: ids, values } = readArguments("sessions delete", argv, { options: FLAGS, words: "ids" });
  const { "older-than": age, yes = false } = values;
  if (nestingDepth() > 0) {
    throw new ConfigError(
      "sessions delete cannot run inside a session of claude-agents-mcp. Run it in your own shell.",
    );
  }
  if (ids.length > 0 === (age !== undefined)) {
    throw new ConfigError("sessions delete needs the ids of sessions, or else --older-than, for instance 30d.");
  }
  const before = age === undefined ? undefined : pointInTime("older-than", age, Date.now());
  return withStore(values, async (store) => {
    const choice = before === undefined ? await selectNamed(store, ids) : await selectOlder(store, before);
    if (choice.kept > 0) console.error(`${count(choice.kept, "old session")} kept: still active.`);
    if (choice.doomed.length === 0) {
      process.stdout.write("Nothing to delete.\n");
      return 0;
    }
    if (!yes && !(await isDeletionConfirmed(store, choice))) {
      process.stdout.write("Nothing was deleted.\n");
      return 0;
    }
    return purge(store, choice.doomed);
  });
}

/** Chooses all named sessions. Throws AppError if one is missing or must not be deleted. */
async function selectNamed(store: Store, ids: readonly string[]): Promise<Selection> {
  const found = new Map<string, SessionRecord>();
  for (const id of ids) {
    const record = await findSession(store, id);
    found.set(record.id, record);
  }
  const sample = [...found.values()];
  for (const record of sample) {
    const problem = whyNotDeletable(record);
    if (problem !== undefined) {
      throw new AppError("SESSION_BUSY", `Session ${record.id} ${problem} Nothing was deleted.`);
    }
  }
  return { doomed: sample, sample: sample.slice(0, NAMED), kept: 0 };
}

/** Returns the reason why a session cannot be deleted now, with advice. */
function whyNotDeletable(record: SessionRecord): string | undefined {
  if (isTurnAbandoned(record)) {
    return "was left running by a server that is gone. Start a server, which ends leftover processes, then delete it.";
  }
  const status = statusOf(record.state);
  if (!DELETABLE.includes(status)) {
    const what = status === "running" ? "is running" : "waits for a decision";
    return `${what}. Cancel it first (claude_code_session, action: cancel), or wait for its end.`;
  }
  if (record.owner?.alive !== true) return undefined;
  return "is held by a running server, which keeps its process for the next prompt. Cancel it or end that server first.";
}

async function selectOlder(store: Store, before: number): Promise<Selection> {
  const doomed: DeletionTarget[] = [];
  const sample: SessionRecord[] = [];
  let kept = 0;
  // "" sorts before every id, so sessions changed exactly at `before` are excluded.
  for await (const record of allSessions(store, { before: { updatedAt: before, id: "" } })) {
    if (whyNotDeletable(record) !== undefined) kept += 1;
    else {
      doomed.push({ id: record.id, updatedAt: record.updatedAt });
      if (sample.length < NAMED) sample.push(record);
    }
  }
  return { doomed, sample, kept };
}

/** Asks on a terminal. Throws ConfigError without one. */
async function isDeletionConfirmed(store: Store, { doomed, sample }: Selection): Promise<boolean> {
  const what = `${count(doomed.length, "session")} would be deleted`;
  const rest = doomed.length - sample.length;
  if (!hasTerminal()) {
    const named = sample.map((record) => `${record.id} (${statusWord(record)})`).join(", ");
    const others = rest > 0 ? ` and ${String(rest)} more` : "";
    throw new ConfigError(`${what}: ${named}${others}. Without a terminal to confirm on, --yes is required.`);
  }
  const rows = await Promise.all(sample.map(async (record) => readRow(store, record)));
  const others = rest > 0 ? `and ${String(rest)} more\n` : "";
  process.stderr.write(`${what}, with the whole log:\n\n${table(rows, Date.now())}${others}\n`);
  return isConfirmed("Delete?");
}

/** Deletes only sessions unchanged since they were chosen. */
async function purge(store: Store, doomed: readonly DeletionTarget[]): Promise<number> {
  let deleted = 0;
  for (let start = 0; start < doomed.length; start += BATCH) {
    const batch = doomed.slice(start, start + BATCH);
    const ids = batch.map(({ id }) => id);
    const before = Math.max(...batch.map(({ updatedAt }) => updatedAt)) + 1;
    deleted += await store.maintenance.purge({ before, statuses: DELETABLE, ids, limit: BATCH });
  }
  process.stdout.write(`${count(deleted, "session")} deleted.\n`);
  const changed = doomed.length - deleted;
  if (changed === 0) return 0;
  console.error(`claude-agents-mcp: ${count(changed, "session")} not deleted: changed in the meantime.`);
  return 1;
}
