import type { StoredEvent } from "../../domain/event.ts";
import { AppError } from "../../domain/error.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import type { EndOfTurn, SessionView } from "../session-view.ts";

/** Calls that block until their turn has ended: they read the log as it grows, like everybody else. */

export interface Following {
  /** Where the events of the prompt begin. */
  readonly cursor: number;
  /** Told each event in order, and waited for: a slow client slows the reading, and nothing piles up. */
  readonly tell: (event: StoredEvent) => Promise<void>;
  /** Nothing has happened for some seconds; counts from 1. */
  readonly onSilence: (beat: number) => void;
}

/** How following came to its end. */
export type Left =
  | { readonly why: "ended"; readonly end: EndOfTurn }
  /** Something is asked, and the caller has the tool to answer it. */
  | { readonly why: "asked"; readonly nextCursor: number }
  /** The caller no longer waits, or the prompt never came to its turn: what there was of it is over, or about to be. */
  | { readonly why: "cancelled"; readonly because: string };

const PAGE = 64;
const BEAT_MS = 5_000;

/** Follows the turn that the prompt at `cursor` begins. A call that is cancelled interrupts it; the session stays. */
export async function followTurn(
  view: SessionView,
  { cursor, onSilence, tell }: Following,
  call: ToolCall,
  deps: ToolDeps,
): Promise<Left> {
  const turn = new Turn(await promptAt(view, cursor));
  // What was asked before, in a turn that the prompt waits for, would keep it waiting.
  const asked = await reactToOpenAsks(view, cursor, { call, deps });
  if (asked) return asked;
  // A function, because the compiler takes a property that it has seen false for false ever after.
  const gone = (): boolean => call.signal.aborted;
  let next = cursor;
  let silent = 0;
  while (!gone()) {
    const page = await view.read(next, PAGE);
    for (const event of page) {
      next = event.id + 1;
      await tell(event);
      const left = await reactTo(event, turn, view, { call, deps });
      if (left || gone()) return left ?? cancel(view, turn.promptId, call, deps);
    }
    silent = page.length > 0 ? 0 : silent + 1;
    if (silent > 1) onSilence(silent - 1);
    if (page.length < PAGE) await view.wait({ cursor: next, until: "event", timeoutMs: BEAT_MS });
  }
  return cancel(view, turn.promptId, call, deps);
}

/** Knows the turn of the prompt among others: those that Claude Code begins by itself, and one that goes on with it. */
class Turn {
  readonly promptId: string;
  #turnId: string | undefined;

  constructor(promptId: string) {
    this.promptId = promptId;
  }

  see(event: StoredEvent): void {
    if (this.#isBeginning(event)) this.#turnId = event.data.turnId;
  }

  isEnd(event: StoredEvent): event is EndOfTurn {
    return event.type === "turn.ended" && event.data.turnId === this.#turnId;
  }

  /** A lost turn that is run on (onLost: resume) has not ended for whoever waits for it: the next begins in the same step. */
  async goesOn(view: SessionView, { id }: EndOfTurn): Promise<boolean> {
    const [next] = await view.read(id + 1, 1);
    return next !== undefined && this.#isBeginning(next);
  }

  /** Why the prompt does not come to its turn; undefined while it may. */
  async whyOver(event: StoredEvent, view: SessionView): Promise<string | undefined> {
    if (event.type === "session.closed") return `The session was ${event.data.reason}.`;
    if (event.type === "prompt.dropped" && event.data.promptId === this.promptId) return NEVER_RUN;
    if (event.type !== "turn.ended") return undefined;
    const { state } = await view.record();
    const isHeld = state.queue.some(({ held, promptId }) => held && promptId === this.promptId);
    return isHeld ? NEVER_RUN : undefined;
  }

  #isBeginning(event: StoredEvent): event is Extract<StoredEvent, { type: "turn.started" }> {
    return event.type === "turn.started" && event.data.promptIds.includes(this.promptId);
  }
}

const NEVER_RUN = "The turn before it was stopped, and the prompt was not run. Send it again.";

async function promptAt(view: SessionView, cursor: number): Promise<string> {
  const begun = await view.read(cursor, PAGE);
  return begun.find((event) => event.type === "prompt.queued")?.data.promptId ?? "";
}

interface Reacting {
  readonly call: ToolCall;
  readonly deps: ToolDeps;
}

async function reactTo(
  event: StoredEvent,
  turn: Turn,
  view: SessionView,
  { call, deps }: Reacting,
): Promise<Left | undefined> {
  turn.see(event);
  if (turn.isEnd(event)) return (await turn.goesOn(view, event)) ? undefined : { why: "ended", end: event };
  const because = await turn.whyOver(event, view);
  if (because !== undefined) {
    // One that is held would be run by whoever releases the queue.
    await cancel(view, turn.promptId, call, deps);
    return { why: "cancelled", because };
  }
  if (event.type !== "permission.asked" && event.type !== "question.asked") return undefined;
  const { requestId } = event.data;
  const { state } = await view.record();
  if (!state.asks.some((ask) => ask.requestId === requestId)) return undefined;
  if (deps.callersAnswer) return { why: "asked", nextCursor: event.id + 1 };
  await denyAtOnce(view, requestId, { call, deps });
  return undefined;
}

async function reactToOpenAsks(view: SessionView, cursor: number, reacting: Reacting): Promise<Left | undefined> {
  const { state } = await view.record();
  // What the prompt itself has brought about is told in its place.
  const before = state.asks.filter(({ eventId }) => eventId < cursor);
  if (before.length === 0) return undefined;
  if (reacting.deps.callersAnswer) return { why: "asked", nextCursor: cursor };
  for (const { requestId } of before) await denyAtOnce(view, requestId, reacting);
  return undefined;
}

const NOBODY_ANSWERS =
  "Nobody can answer a request here: the caller has no tool for it. Do it in a way that is allowed, or say what you could not do. (An operator lets callers answer with --toolsets agent and this one.)";

/** A request must not hang where nobody can answer it. */
async function denyAtOnce(view: SessionView, requestId: string, { call, deps }: Reacting): Promise<void> {
  const denial = { requestId, decision: "deny", by: "rule", denyMessage: NOBODY_ANSWERS } as const;
  await deps.engine.answer(call, view.id, denial).catch((error: unknown) => {
    // Claude Code has taken it back meanwhile, or a second server was quicker.
    if (!(error instanceof AppError)) throw error;
  });
}

/** Ends what came of the prompt and nothing else: by now another turn may run. */
async function cancel(view: SessionView, promptId: string, call: ToolCall, { engine }: ToolDeps): Promise<Left> {
  await engine.interrupt(call.principal, view.id, "caller", promptId).catch((error: unknown) => {
    // A session that is gone has nothing left to end.
    if (!(error instanceof AppError)) throw error;
  });
  return { why: "cancelled", because: "The query was cancelled." };
}
