import { CALLER } from "../../domain/approvals/answer-source.ts";
import type { StoredEvent } from "../../domain/event.ts";
import { AppError } from "../../domain/error.ts";
import { type OpenRequest } from "../../domain/permission.ts";
import { unreadableText } from "../../domain/unreadable.ts";
import type { NeedsInput } from "../elicitation/needs-input.ts";
import { ElicitingWait, type Waiting } from "../elicitation/eliciting-wait.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import { promptIdIn } from "../prompt.ts";
import type { EndOfTurn, ReadableSession } from "../readable-session.ts";

/** Follows the log of a turn, for calls that block until the turn ends. */

export interface Following {
  /** First event of the prompt. */
  readonly cursor: number;
  readonly waiting: Omit<Waiting, "waitMs">;
  /** Called for each event in order, and awaited, so that a slow client slows reading (backpressure). */
  readonly onEvent: (event: StoredEvent) => Promise<void>;
  /** Called for events sent before a form, to restore the state of the answer. */
  readonly recall: (event: StoredEvent) => void;
  /** Called after some seconds without an event; `beat` counts from 1. */
  readonly onSilence: (beat: number) => void;
}

/** Reasons to stop following. */
export type FollowEnd =
  | { readonly why: "ended"; readonly end: EndOfTurn }
  /** A request is open, and the caller has a tool for answering. */
  | { readonly why: "asked"; readonly nextCursor: number }
  /** The call was cancelled, or the prompt was never run. Its turn, if any, has ended or is about to end. */
  | { readonly why: "cancelled"; readonly because: string };

/** A form is shown; the call continues with the answer. */
export interface Paused {
  readonly why: "form";
  readonly needsInput: NeedsInput;
}

const PAGE = 64;
const KEEPALIVE_MS = 5_000;

/**
 * Follows the turn begun by the prompt at `cursor`. A cancelled call interrupts the turn. So does the end of the client while
 * no call waits for the turn: behind a form, or until a request is answered. The session stays open.
 */
export async function followTurn(
  view: ReadableSession,
  following: Following,
  call: ToolCall,
  deps: ToolDeps,
): Promise<FollowEnd | Paused> {
  const left = await follow(view, following, call, deps);
  const { leaving } = call.client;
  if (!deps.outlivesClients || !leaving || left.why === "ended" || left.why === "cancelled") return left;
  const promptId = await promptAt(view, following.cursor);
  leaving.add(promptId, async () => deps.engine.clientGone(call.principal, view.id, promptId));
  return left;
}

async function follow(
  view: ReadableSession,
  following: Following,
  call: ToolCall,
  deps: ToolDeps,
): Promise<FollowEnd | Paused> {
  const { cursor, onSilence, onEvent, waiting } = following;
  const eliciting = ElicitingWait.of(waiting, { call, deps });
  const promptId = await promptAt(view, cursor);
  const turn = new PromptTurn(promptId);
  const reacting = { call, deps, eliciting, onSilence };
  const resumeAt = eliciting?.from(view.id) ?? cursor;
  await recallEvents(resumeAt, turn, view, following);
  await eliciting?.take([view]);
  // A function, so that TypeScript does not narrow `call.signal.aborted` to `false`.
  const gone = (): boolean => call.signal.aborted;
  let next = resumeAt;
  // Handle requests opened before: a request of an earlier turn would block the prompt, and the request of the last form may be
  // open.
  const before = gone() ? undefined : await reactToRequests(next, view, reacting);
  if (before) return before;
  let silent = 0;
  while (!gone()) {
    const page = await view.read(next, PAGE);
    for (const event of page) {
      next = event.id + 1;
      await onEvent(event);
      const left = await reactTo(event, turn, view, reacting);
      if (left || gone()) return left ?? cancel(view, promptId, call, deps);
    }
    silent = page.length > 0 ? 0 : silent + 1;
    const over = silent > 0 ? await onSilent(silent, turn, view, onSilence) : undefined;
    if (over) return over;
    if (page.length < PAGE) await view.wait({ cursor: next, until: "event", timeoutMs: KEEPALIVE_MS });
  }
  return cancel(view, promptId, call, deps);
}

/** Ends the wait if the session, or the end of the turn, cannot be read. */
async function onSilent(
  silent: number,
  { promptId }: PromptTurn,
  view: ReadableSession,
  onSilence: Following["onSilence"],
): Promise<FollowEnd | undefined> {
  if (silent > 1) onSilence(silent - 1);
  const { owner, state, unreadable } = await view.record();
  if (unreadable && owner?.alive !== true) return { why: "cancelled", because: unreadableText(unreadable) };
  const isOpen = state.turn !== null || state.queue.some((prompt) => prompt.promptId === promptId);
  // The end may have been stored after the last read: read once more before giving up.
  if (isOpen || unreadable || silent === 1) return undefined;
  return { why: "cancelled", because: "The end of the turn cannot be read." };
}

async function recallEvents(
  end: number,
  turn: PromptTurn,
  view: ReadableSession,
  { cursor, recall }: Following,
): Promise<void> {
  let next = cursor;
  while (next < end) {
    const page = await view.read(next, Math.min(PAGE, end - next));
    for (const event of page) {
      recall(event);
      turn.see(event);
    }
    const last = page.at(-1);
    if (!last) return;
    next = last.id + 1;
  }
}

/** Identifies the turn of a prompt. Claude Code also begins turns itself, and a lost turn may be resumed by a new turn. */
class PromptTurn {
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

  /** True if a lost turn is resumed (`onLost: resume`). The next turn begins in the same step, so the call keeps waiting. */
  async isResumed(view: ReadableSession, { id }: EndOfTurn): Promise<boolean> {
    const [next] = await view.read(id + 1, 1);
    return next !== undefined && this.#isBeginning(next);
  }

  /** Returns why the prompt will never run; `undefined` if it still may. */
  async whyNeverRuns(event: StoredEvent, view: ReadableSession): Promise<string | undefined> {
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

const NEVER_RUN = "The previous turn was stopped, so the prompt was not run. Send it again.";

async function promptAt(view: ReadableSession, cursor: number): Promise<string> {
  return promptIdIn(await view.read(cursor, PAGE));
}

interface Reacting {
  readonly call: ToolCall;
  readonly deps: ToolDeps;
  /** `undefined` if no form can be shown. */
  readonly eliciting: ElicitingWait | undefined;
  readonly onSilence: (beat: number) => void;
}

/** Events after which another approver may have to answer. */
const ABOUT_REQUESTS = new Set<StoredEvent["type"]>(["permission.asked", "question.asked", "request.passed"]);

async function reactTo(
  event: StoredEvent,
  turn: PromptTurn,
  view: ReadableSession,
  reacting: Reacting,
): Promise<FollowEnd | Paused | undefined> {
  turn.see(event);
  if (turn.isEnd(event)) return (await turn.isResumed(view, event)) ? undefined : { why: "ended", end: event };
  const because = await turn.whyNeverRuns(event, view);
  if (because !== undefined) {
    // A held prompt would otherwise run once the queue is released.
    await cancel(view, turn.promptId, reacting.call, reacting.deps);
    return { why: "cancelled", because };
  }
  return ABOUT_REQUESTS.has(event.type) ? reactToRequests(event.id + 1, view, reacting) : undefined;
}

/**
 * Shows a form for a request to the user, returns for a request to the caller, otherwise keeps waiting. Called again after each
 * event in `ABOUT_REQUESTS`, because the approver can change.
 */
async function reactToRequests(
  next: number,
  view: ReadableSession,
  { call, deps, eliciting, onSilence }: Reacting,
): Promise<FollowEnd | Paused | undefined> {
  const { state } = await view.record();
  // Later requests are handled at their own event.
  const requests = state.requests.filter(({ eventId }) => eventId < next);
  const needsInput = await eliciting?.ask(view, requests, next);
  if (needsInput) return { why: "form", needsInput: { ...needsInput, settled: withKeepalive(needsInput, onSilence) } };
  const unanswered = requests.filter(
    (open) => eliciting?.isForUser(view.id, open) === true || open.approver === CALLER,
  );
  if (unanswered.length === 0) return undefined;
  // A task shows its requests itself.
  if (deps.callersAnswer) return call.client.tasks ? undefined : { why: "asked", nextCursor: next };
  for (const open of unanswered) await passOn(view, open, call, deps);
  return undefined;
}

/** Keeps calling `onSilence` while a form is shown during the call, because the client still expects keepalives. */
function withKeepalive({ settled }: NeedsInput, onSilence: (beat: number) => void): NeedsInput["settled"] {
  return async (signal) => {
    let beat = 0;
    const timer = setInterval(() => onSilence((beat += 1)), KEEPALIVE_MS);
    await settled(signal).finally(() => clearInterval(timer));
  };
}

/**
 * Passes the request on as unreachable: neither a form nor a tool can answer, and the call would wait out the approver's time
 * limit.
 */
async function passOn(view: ReadableSession, open: OpenRequest, call: ToolCall, { engine }: ToolDeps): Promise<void> {
  const { requestId } = open;
  await engine.pass(call.principal, view.id, { requestId, from: open.approver, why: "unreachable" });
}

/** Interrupts only the turn of `promptId`: by now another turn may run. */
async function cancel(
  view: ReadableSession,
  promptId: string,
  call: ToolCall,
  { engine }: ToolDeps,
): Promise<FollowEnd> {
  await engine.interrupt(call.principal, view.id, CALLER, promptId).catch((error: unknown) => {
    // A deleted session has nothing to interrupt.
    if (!(error instanceof AppError)) throw error;
  });
  return { why: "cancelled", because: "The query was cancelled." };
}
