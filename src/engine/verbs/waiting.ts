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

/** How often a waiting call looks whether the owner still lives, ms. */
const LOOK_MS = 1_000;

/** `look` is what notices that an owner has died, or that the store is no longer what it was: then it rejects. */
export async function waitLooking(
  means: { backend: SessionBackend; clock: Clock; log: Pick<Logger, "debug"> },
  look: () => Promise<void>,
  request: WaitRequest,
): Promise<string | undefined> {
  let stopLooking = () => undefined as void;
  const lost = new Promise<never>((_, reject) => {
    stopLooking = lookEvery(LOOK_MS, look, { ...means, onLoss: reject });
  });
  try {
    return await Promise.race([waitForOne(means.backend, request), lost]);
  } finally {
    stopLooking();
  }
}

/** Waits on the log and nothing else, so that it makes no difference who owns the session. */
async function waitForOne(backend: SessionBackend, request: WaitRequest): Promise<string | undefined> {
  const quiet = request.until === "event" ? undefined : await nobodyToWaitFor(backend, request);
  if (quiet !== undefined) return quiet;
  const enough = new AbortController();
  const { signal } = enough;
  // One controller, held from here: Node 20 can collect a signal made by AbortSignal.any or .timeout while it is waited for.
  const stop = () => enough.abort();
  const timer = setTimeout(stop, request.timeoutMs);
  if (request.signal.aborted) stop();
  request.signal.addEventListener("abort", stop, { once: true });
  const waits = request.sessions.map(async ({ sessionId, cursor }) => {
    const woke = await waitForSession(backend, { sessionId, cursor, until: request.until, signal });
    // Whoever sleeps on must not decide the race.
    return woke ? sessionId : never();
  });
  const ended = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  try {
    return await Promise.race([...waits, ended]);
  } finally {
    clearTimeout(timer);
    request.signal.removeEventListener("abort", stop);
    enough.abort();
  }
}

/**
 * Where nothing runs in any of the sessions: the first that has something at or after its cursor, or else the first. One in
 * which nothing runs is no reason to return while there are others to wait for.
 */
async function nobodyToWaitFor(backend: SessionBackend, { sessions }: WaitRequest): Promise<string | undefined> {
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

/** True once the session has what was waited for, false when the signal aborted first. */
async function waitForSession(backend: SessionBackend, { sessionId, cursor, until, signal }: Wait): Promise<boolean> {
  if ((await backend.rows.principalOf(sessionId)) === undefined) return true;
  for await (const event of backend.log.tail(sessionId, cursor, signal)) {
    if (until === "event") return true;
    if (until === "news" && NEWS.has(event.type) && !(await isRuled(backend, sessionId, event))) return true;
    // An end that lies behind is not the end: another turn may have begun since.
    if (event.type === "turn.ended" || event.type === "session.closed") {
      const now = await backend.rows.get(sessionId);
      if (!now || nothingRuns(now.state)) return true;
    }
  }
  return false;
}

/** A request that a rule has answered concerns nobody: its answer stands right behind it. */
async function isRuled(backend: SessionBackend, sessionId: string, event: StoredEvent): Promise<boolean> {
  if (event.type !== "permission.asked" && event.type !== "question.asked") return false;
  const [next] = await backend.log.read(sessionId, event.id + 1, 1);
  if (next?.type !== "permission.answered" && next?.type !== "question.answered") return false;
  return next.data.by === "rule" && next.data.requestId === event.data.requestId;
}

/** And nothing is about to. */
export function nothingRuns({ closed, queue, turn }: SessionState): boolean {
  return closed !== undefined || (turn === null && queue.every(({ held }) => held));
}

async function never(): Promise<never> {
  return new Promise(() => undefined);
}

/**
 * Whoever reads a session notices that its owner has died, or that the store is no longer what it was; whoever waits for one
 * has to look now and then. Returns what ends it.
 */
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
          log.debug("while waiting", { error: String(error) });
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
