import type { Append, SessionBackend } from "../engine/ports.ts";

/** Told of each change of a session that this node has written, once it is durable; in order for each session. */
export type OnAppended = (sessionId: string, change: Append) => void;

/**
 * A store that says what is written through it: what is counted is what stands in the log. Each event is written by one
 * node, so that the counts of all nodes add up. `onAppended` must not throw: what it is told of has happened already.
 */
export function observed(backend: SessionBackend, onAppended: OnAppended): SessionBackend {
  const { log } = backend;
  return {
    ...backend,
    log: {
      ...log,
      append: async (lease, change) => {
        await log.append(lease, change);
        onAppended(lease.sessionId, change);
      },
    },
  };
}
