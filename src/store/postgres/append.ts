import { createHash } from "node:crypto";
import { z } from "zod";
import { waitsForNode } from "../../domain/session.ts";
import { type Append, FencedError, type Lease } from "../../engine/ports.ts";
import type { WriteJob } from "../group-writer.ts";
import { appendTexts, disagreement, urgencyOf } from "../texts.ts";
import { type Database, VERSION } from "./connect/database.ts";
import { deliveryColumns } from "./feed-table.ts";
import { changed, ledgerColumns } from "./ledger-table.ts";

/** Time limit of the answer to an append, ms: short, so that an append at a dead connection is repeated before leases end. */
const APPEND_MS = 8_000;

const PARAMETERS = Array.from({ length: 33 }, (_, index) => `$${String(index + 1)}`).join(", ");
const sql = { append: `SELECT append_changes(${PARAMETERS}) AS outcomes` } as const;

const Outcomes = z.object({ outcomes: z.array(z.string()) });

/** An append that waits for its transaction. */
export interface AppendJob extends WriteJob {
  readonly lease: Lease;
  readonly change: Append;
  readonly texts: ReturnType<typeof appendTexts>;
  /** Digest of the content. Tells a repetition, of the statement or by the owner, that the first attempt was stored. */
  readonly token: string;
  readonly settle: (error: Error | undefined) => void;
}

/** Makes the texts now, although the append runs later: the caller may go on to change the state. */
export function prepareJob(lease: Lease, change: Append, settle: (error?: unknown) => void): AppendJob {
  const texts = appendTexts(change);
  const [urgency, events] = [urgencyOf(change), change.events.length];
  return { lease, change, texts, token: digestOf(lease, change, texts), urgency, events, fail: settle, settle };
}

function digestOf(
  { epoch }: Lease,
  { at, deliveries = [], ledger = [] }: Append,
  { events, head }: ReturnType<typeof appendTexts>,
): string {
  const added = JSON.stringify([ledger, deliveries]);
  const content = [epoch, head.before, head.state, ...events.map(({ event }) => event), added];
  // Without events and entries, a second append may change only the time.
  if (events.length === 0 && ledger.length === 0) content.push(at);
  return createHash("sha256").update(content.join("\n")).digest("base64url");
}

function hasLedger({ change }: AppendJob): boolean {
  return (change.ledger ?? []).length > 0;
}

/**
 * Returns the jobs at the front of the queue that may share a transaction: one for each session, because the second would have
 * to see the first, and one with changes of the ledger, because two could wait for those of another server crosswise.
 */
export function takeAppends(queue: readonly AppendJob[]): readonly AppendJob[] {
  const sessions = new Set<string>();
  let ledgers = 0;
  const end = queue.findIndex((job) => {
    const { sessionId } = job.lease;
    if (hasLedger(job)) ledgers += 1;
    const isOver = sessions.has(sessionId) || ledgers > 1;
    sessions.add(sessionId);
    return isOver;
  });
  return end < 0 ? queue : queue.slice(0, end);
}

/**
 * Stores the appends in one statement. Returns a function that tells their callers the outcome of each. Also synced if no effect
 * follows, because a database that crashes would otherwise forget events that this server and its readers go on from.
 */
export async function storeAppends(db: Database, jobs: readonly AppendJob[]): Promise<() => void> {
  const owner = jobs[0]?.lease.nodeId ?? "";
  const ledgerAt = jobs.findIndex(hasLedger);
  const values = [
    VERSION,
    owner,
    ...headColumns(jobs),
    ...eventColumns(jobs),
    ledgerAt < 0 ? null : ledgerAt + 1,
    ...ledgerColumns(jobs[ledgerAt]?.change.ledger ?? []),
    ...entryColumns(jobs),
    ...deliveryColumns(jobs.map(({ change }) => change.deliveries ?? [])),
  ];
  const found = await db.get(sql.append, Outcomes, values, { answerMs: APPEND_MS });
  return () => {
    for (const [index, job] of jobs.entries()) job.settle(refusalOf(job, found?.outcomes[index] ?? ""));
  };
}

function headColumns(jobs: readonly AppendJob[]) {
  return [
    jobs.map(({ token }) => token),
    jobs.map(({ lease }) => lease.sessionId),
    jobs.map(({ lease }) => lease.epoch),
    jobs.map(({ texts }) => texts.head.at),
    jobs.map(({ texts }) => texts.head.before),
    jobs.map(({ texts }) => texts.head.last),
    jobs.map(({ texts }) => texts.head.state),
    jobs.map(({ texts }) => texts.head.status),
    jobs.map(({ texts }) => texts.head.atWork),
    jobs.map(({ texts }) => texts.events.reduce((sum, { event }) => sum + Buffer.byteLength(event), 0)),
    jobs.map(({ change }) => (waitsForNode(change.state) ? 1 : 0)),
    jobs.map(({ texts }) => texts.transcriptId ?? null),
    jobs.map(({ texts }) => texts.prompt ?? null),
  ] as const;
}

function eventColumns(jobs: readonly AppendJob[]) {
  const events = jobs.flatMap(({ texts }, index) => texts.events.map((event) => ({ ...event, change: index + 1 })));
  return [
    events.map(({ change }) => change),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ event }) => event),
  ] as const;
}

function entryColumns(jobs: readonly AppendJob[]) {
  const entries = jobs.flatMap(({ texts }, index) => texts.feed.map((entry) => ({ ...entry, change: index + 1 })));
  return [
    entries.map(({ change }) => change),
    entries.map(({ name }) => name),
    entries.map(({ eventId }) => eventId),
  ] as const;
}

function refusalOf({ lease, texts }: AppendJob, outcome: string): Error | undefined {
  const { nodeId, sessionId } = lease;
  switch (outcome) {
    case "stored":
      return undefined;
    case "gone":
      return new FencedError(`session ${sessionId} is gone`);
    case "fenced":
      return new FencedError(`session ${sessionId} is no longer owned by ${nodeId}`);
    case "conflict":
      return changed("an entry of the ledger");
    default:
      return disagreement(sessionId, Number(outcome), texts.head.before);
  }
}
