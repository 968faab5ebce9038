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
  /** The caller no longer waits, or the session was closed or deleted: the turn is over or about to be. */
  | { readonly why: "cancelled" };

const PAGE = 64;
const BEAT_MS = 5_000;

/** Follows the turn that the prompt at `cursor` begins. A call that is cancelled interrupts it; the session stays. */
export async function followTurn(
  view: SessionView,
  { cursor, onSilence, tell }: Following,
  call: ToolCall,
  deps: ToolDeps,
): Promise<Left> {
  const turn = new Turn();
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
      if (left || gone()) return left ?? interrupt(view, call, deps);
    }
    silent = page.length > 0 ? 0 : silent + 1;
    if (silent > 1) onSilence(silent - 1);
    if (page.length < PAGE) await view.wait({ cursor: next, until: "event", timeoutMs: BEAT_MS });
  }
  return interrupt(view, call, deps);
}

/** Knows the turn of the prompt among others: those that Claude Code begins by itself, and one that goes on with it. */
class Turn {
  #promptId: string | undefined;
  #turnId: string | undefined;

  see(event: StoredEvent): void {
    if (event.type === "prompt.queued") this.#promptId ??= event.data.promptId;
    const isOurs = event.type === "turn.started" && event.data.promptIds.some((id) => id === this.#promptId);
    if (isOurs) this.#turnId = event.data.turnId;
  }

  isEnd(event: StoredEvent): event is EndOfTurn {
    return event.type === "turn.ended" && event.data.turnId === this.#turnId;
  }

  isOverBy(event: StoredEvent): boolean {
    if (event.type === "session.closed") return true;
    return event.type === "prompt.dropped" && event.data.promptId === this.#promptId;
  }

  /** A lost turn that is run on (onLost: resume) has not ended for whoever waits for it. */
  async goesOn(view: SessionView): Promise<boolean> {
    const { state } = await view.record();
    return state.turn?.rerun === true && state.turn.prompt?.promptId === this.#promptId;
  }
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
  if (turn.isEnd(event)) return (await turn.goesOn(view)) ? undefined : { why: "ended", end: event };
  if (turn.isOverBy(event)) return { why: "cancelled" };
  if (event.type !== "permission.asked" && event.type !== "question.asked") return undefined;
  const { requestId } = event.data;
  const { state } = await view.record();
  if (!state.asks.some((ask) => ask.requestId === requestId)) return undefined;
  if (deps.callersAnswer) return { why: "asked", nextCursor: event.id + 1 };
  await denyAtOnce(view, requestId, { call, deps });
  return undefined;
}

const NOBODY_ANSWERS =
  "Nobody can answer a request here: the caller has no tool for it. Do it in a way that is allowed, or say what you could not do. (An operator lets callers answer with --toolsets agent and this one.)";

/** A request must not hang where nobody can answer it. */
async function denyAtOnce(view: SessionView, requestId: string, { call, deps }: Reacting): Promise<void> {
  const denial = { requestId, decision: "deny", by: "rule", denyMessage: NOBODY_ANSWERS } as const;
  await deps.engine.answer(call.principal, view.id, denial).catch((error: unknown) => {
    // Claude Code has taken it back meanwhile, or a second server was quicker.
    if (!(error instanceof AppError)) throw error;
  });
}

async function interrupt(view: SessionView, call: ToolCall, deps: ToolDeps): Promise<Left> {
  await deps.engine.interrupt(call.principal, view.id, "caller");
  return { why: "cancelled" };
}
