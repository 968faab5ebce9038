import type { StoredEvent } from "../../domain/event.ts";
import type { SessionState } from "../../domain/session.ts";
import type { WaitRequest, WaitUntil } from "../api.ts";
import { isLoss, type Clock, type Logger, type SessionBackend } from "../ports.ts";

const NEWS = new Set<StoredEvent["type"]>([
  "turn.ended",
  "permission.asked",
  "question.asked",
  "request.passed",
  "session.closed",
]);

/** Events that tell a caller nothing: the receipt is part of the result. */
const QUIET = new Set<StoredEvent["type"]>(["turn.baseline", "turn.receipt"]);

/** Interval at which a waiting call checks that the owner lives, ms. */
const LOOK_MS = 1_000;

/** Waits for an event in one of the sessions. `look` rejects if an owner has died, or the store has lost data. */
export async function waitForSessions(
  dependencies: { backend: SessionBackend; clock: Clock; log: Pick<Logger, "debug"> },
  look: () => Promise<void>,
  request: WaitRequest,
): Promise<string | undefined> {
  // Holds one controller from here: Node 20 can collect an awaited signal of `AbortSignal.any` or `AbortSignal.timeout`.
  const enough = new AbortController();
  const stop = () => enough.abort();
  const timer = setTimeout(stop, request.timeoutMs);
  if (request.signal.aborted) stop();
  request.signal.addEventListener("abort", stop, { once: true });
  let stopLooking = () => undefined as void;
  const lost = new Promise<never>((_, reject) => {
    stopLooking = lookEvery(LOOK_MS, look, { ...dependencies, onLoss: reject });
  });
  try {
    return await Promise.race([waitForOne(dependencies.backend, { ...request, signal: enough.signal }), lost]);
  } finally {
    stopLooking();
    clearTimeout(timer);
    request.signal.removeEventListener("abort", stop);
    stop();
  }
}

/** Waits on the log alone, so the owner of the session makes no difference. Resolves to `undefined` if `signal` aborts. */
async function waitForOne(
  backend: SessionBackend,
  { sessions, signal, until }: Omit<WaitRequest, "timeoutMs">,
): Promise<string | undefined> {
  const quiet = until === "event" ? undefined : await chooseIfNothingRuns(backend, sessions);
  if (quiet !== undefined) return quiet;
  const waits = sessions.map(async ({ sessionId, cursor }) => {
    const woke = await waitForSession(backend, { sessionId, cursor, until, signal });
    // A session without news must not win the race.
    return woke ? sessionId : never();
  });
  const ended = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  return Promise.race([...waits, ended]);
}

/**
 * If nothing runs in any session, returns the first with an event at or after its cursor, otherwise the first. An idle session
 * alone does not end a wait for others.
 */
async function chooseIfNothingRuns(
  backend: SessionBackend,
  sessions: WaitRequest["sessions"],
): Promise<string | undefined> {
  const states = await Promise.all(sessions.map(async ({ sessionId }) => (await backend.rows.get(sessionId))?.state));
  if (states.some((state) => state && !nothingRuns(state))) return undefined;
  const withNews = sessions.find(({ cursor }, index) => (states[index]?.lastEventId ?? 0) >= cursor);
  return (withNews ?? sessions[0])?.sessionId;
}

interface Wait {
  sessionId: string;
  cursor: number;
  until: WaitUntil;
  signal: AbortSignal;
}

/** True once the session has the awaited event, false if the signal aborts first. */
async function waitForSession(backend: SessionBackend, { sessionId, cursor, until, signal }: Wait): Promise<boolean> {
  if ((await backend.rows.principalOf(sessionId)) === undefined) return true;
  for await (const event of backend.log.tail(sessionId, cursor, signal)) {
    if (until === "event" && !QUIET.has(event.type)) return true;
    if (until === "news" && NEWS.has(event.type) && !(await isRuled(backend, sessionId, event))) return true;
    // A past end may not be the last: another turn may have begun since.
    if (event.type === "turn.ended" || event.type === "session.closed") {
      const now = await backend.rows.get(sessionId);
      if (!now || nothingRuns(now.state)) return true;
    }
  }
  return false;
}

/** True for a request that a rule has answered: no news, because the answer follows directly. */
async function isRuled(backend: SessionBackend, sessionId: string, event: StoredEvent): Promise<boolean> {
  if (event.type !== "permission.asked" && event.type !== "question.asked") return false;
  const [next] = await backend.log.read(sessionId, event.id + 1, 1);
  if (next?.type !== "permission.answered" && next?.type !== "question.answered") return false;
  return next.data.by === "rule" && next.data.requestId === event.data.requestId;
}

/** True if no turn runs, and no prompt waits to run. */
export function nothingRuns({ closed, queue, turn }: SessionState): boolean {
  return closed !== undefined || (turn === null && queue.every(({ held }) => held));
}

async function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** Calls `look` at intervals, because only a reader notices a dead owner or a loss. Returns a function that ends this. */
function lookEvery(
  ms: number,
  look: () => Promise<void>,
  { clock, log, onLoss }: { clock: Clock; log: Pick<Logger, "debug">; onLoss: (error: unknown) => void },
): () => void {
  let stopped = false;
  let cancel: () => void = () => undefined;
  const arm = () => {
    cancel = clock.after(ms, () => {
      look()
        .catch((error: unknown) => {
          log.debug("a waiting call could not read a session", { error: String(error) });
          if (isLoss(error)) onLoss(error);
        })
        .finally(() => {
          if (!stopped) arm();
        });
    });
  };
  arm();
  return () => {
    stopped = true;
    cancel();
  };
}
