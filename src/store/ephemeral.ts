import type { SessionStatus } from "../domain/session.ts";
import type { Clock, SessionBackend, SessionCounts, SessionRecord } from "../engine/ports.ts";
import { newestFirst } from "./newest-first.ts";

const CLOSED_KEPT_MS = 3_600_000;

function isEnd(status: SessionStatus): boolean {
  return status === "closed" || status === "cancelled";
}

/**
 * Two stores as one: sessions that are to leave no trace (persistSession: false) live in the memory of this server and
 * end with it, all others in the store behind. Other servers do not see the first kind.
 */
export function withEphemeral(
  behind: SessionBackend,
  memory: SessionBackend,
  clock: Pick<Clock, "now">,
): SessionBackend {
  const ephemeral = new Set<string>();
  const of = (id: string) => (ephemeral.has(id) ? memory : behind);
  return {
    nodeId: behind.nodeId,
    heartbeat: async (ttlMs) => {
      // What lives in memory does not depend on the disk.
      await memory.heartbeat(ttlMs);
      await behind.heartbeat(ttlMs);
    },
    create: async (session) => {
      if (session.spec.persistSession !== false) return behind.create(session);
      const done = await memory.create(session);
      ephemeral.add(done.record.id);
      return done;
    },
    get: async (id) => of(id).get(id),
    // The others leave no transcript.
    holderOf: async (transcriptId) => behind.holderOf(transcriptId),
    principalOf: async (id) => of(id).principalOf(id),
    update: async (id, rev, patch) => of(id).update(id, rev, patch),
    list: async (query) => {
      const kept = await behind.list(query);
      if (ephemeral.size === 0) return kept;
      const both: SessionRecord[] = [...kept, ...(await memory.list(query))];
      return both.toSorted(newestFirst).slice(0, query.limit);
    },
    claim: async (id) => of(id).claim(id),
    release: async (lease) => of(lease.sessionId).release(lease),
    append: async (lease, change) => of(lease.sessionId).append(lease, change),
    read: async (id, from, limit, types) => of(id).read(id, from, limit, types),
    tail: (id, from, signal) => of(id).tail(id, from, signal),
    send: async (id, command, timeoutMs) => of(id).send(id, command, timeoutMs),
    inbox: (lease, signal) => of(lease.sessionId).inbox(lease, signal),
    urls: async () => behind.urls(),
    size: async () => behind.size(),
    atWork: async () => [...(await behind.atWork()), ...(await memory.atWork())],
    count: async () => added(await behind.count(), await memory.count()),
    abandoned: async (limit) => behind.abandoned(limit),
    purge: async (query) => {
      const kept = await behind.purge(query);
      const limit = query.limit - kept;
      // Nothing can go on with a closed one, and memory is dearer than a file: its result can be read for an hour.
      const before = Math.max(query.before, clock.now() - CLOSED_KEPT_MS);
      const ended = await memory.purge({ ...query, before, statuses: query.statuses.filter(isEnd), limit });
      return kept + ended;
    },
    close: async () => {
      await memory.close();
      await behind.close();
    },
  };
}

function added(one: SessionCounts, other: SessionCounts): SessionCounts {
  const sums: Record<string, number> = { ...one };
  for (const [status, number] of Object.entries(other)) sums[status] = (sums[status] ?? 0) + number;
  return sums;
}
