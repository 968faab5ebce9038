import type { Append, SessionBackend } from "../engine/ports.ts";

/** Told of each change of a session that this node has written, once it is durable; in order for each session. */
export type OnAppended = (sessionId: string, change: Append) => void;

/**
 * A store that says what is written through it: what is counted is what stands in the log. Each event is written by one
 * node, so that the counts of all nodes add up. `onAppended` must not throw: what it is told of has happened already.
 */
export function observed(backend: SessionBackend, onAppended: OnAppended): SessionBackend {
  return {
    nodeId: backend.nodeId,
    heartbeat: async (ttlMs) => backend.heartbeat(ttlMs),
    create: async (session) => backend.create(session),
    get: async (id) => backend.get(id),
    holderOf: async (transcriptId) => backend.holderOf(transcriptId),
    principalOf: async (id) => backend.principalOf(id),
    update: async (id, rev, patch) => backend.update(id, rev, patch),
    list: async (query) => backend.list(query),
    claim: async (id) => backend.claim(id),
    release: async (lease) => backend.release(lease),
    append: async (lease, change) => {
      await backend.append(lease, change);
      onAppended(lease.sessionId, change);
    },
    read: async (id, from, limit, types) => backend.read(id, from, limit, types),
    tail: (id, from, signal) => backend.tail(id, from, signal),
    send: async (id, command, timeoutMs) => backend.send(id, command, timeoutMs),
    inbox: (lease, signal) => backend.inbox(lease, signal),
    urls: async () => backend.urls(),
    size: async () => backend.size(),
    abandoned: async (limit) => backend.abandoned(limit),
    atWork: async () => backend.atWork(),
    count: async () => backend.count(),
    purge: async (query) => backend.purge(query),
    close: async () => backend.close(),
  };
}
