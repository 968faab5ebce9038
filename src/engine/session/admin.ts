import { AppError } from "../../domain/error.ts";
import { SessionStatus } from "../../domain/session.ts";
import { ConflictError, type Clock, type SessionBackend, type SessionRecord } from "../ports.ts";

/** Changes of a session's row that do not need its owner. */

const TRIES = 5;
/** How long the process of a closed session may take to end, and the interval of checks, ms. */
const END_MS = 10_000;
const LOOK_MS = 50;

export async function rename(backend: SessionBackend, get: () => Promise<SessionRecord>, title: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { id, rev } = await get();
    try {
      await backend.rows.update(id, rev, { title });
      return;
    } catch (error) {
      // Its owner has written something meanwhile.
      if (!(error instanceof ConflictError) || attempt === TRIES) throw error;
    }
  }
}

/** Waits until the owner releases the session, after its process has ended; then deletes it. */
export async function deleteClosed(
  { backend, clock }: { backend: SessionBackend; clock: Clock },
  sessionId: string,
): Promise<void> {
  const deadline = clock.tick() + END_MS;
  const query = { before: Number.MAX_SAFE_INTEGER, statuses: SessionStatus.options, ids: [sessionId], limit: 1 };
  while ((await backend.maintenance.purge(query)) === 0 && (await backend.rows.get(sessionId))) {
    if (clock.tick() >= deadline) {
      throw new AppError("SESSION_BUSY", "Its process has not ended yet. Try again in a moment.", { sessionId });
    }
    await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
  }
}
