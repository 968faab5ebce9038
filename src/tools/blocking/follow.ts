import { CALLER } from "../../domain/approvals/answer-source.ts";
import type { StoredEvent } from "../../domain/event.ts";
import { AppError } from "../../domain/error.ts";
import { type OpenRequest } from "../../domain/permission.ts";
import { unreadableText } from "../../domain/unreadable.ts";
import type { NeedsInput } from "../elicitation/needs-input.ts";
import { ElicitingWait, type Waiting } from "../elicitation/eliciting-wait.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import { promptIdIn } from "../prompt.ts";
import type { EndOfTurn, SessionView } from "../session-view.ts";

/** Calls that block until their turn has ended: they follow the log as it grows. */

export interface Following {
  /** Where the events of the prompt begin. */
  readonly cursor: number;
  readonly waiting: Omit<Waiting, "waitMs">;
  /** Told each event in order, and waited for: a slow client slows the reading, and nothing piles up. */
  readonly onEvent: (event: StoredEvent) => Promise<void>;
  /** The same for what was told before a form: once more, for the answer alone. */
  readonly recall: (event: StoredEvent) => void;
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

/** The person at the client has to answer, and the call returns with the answer. */
export interface Paused {
  readonly why: "form";
  readonly needsInput: NeedsInput;
}

const PAGE = 64;
const BEAT_MS = 5_000;

/**
 * Follows the turn that the prompt at `cursor` begins. A call that is cancelled interrupts it; so does the end of the client while
 * no call of it waits for the turn: behind a form, or until a request is answered. The session stays.
 */
export async function followTurn(
  view: SessionView,
  following: Following,
  call: ToolCall,
  deps: ToolDeps,
): Promise<Left | Paused> {
  const left = await follow(view, following, call, deps);
  const { leaving } = call.client;
  if (!deps.outlivesClients || !leaving || left.why === "ended" || left.why === "cancelled") return left;
  const promptId = await promptAt(view, following.cursor);
  leaving.add(promptId, async () => deps.engine.clientGone(call.principal, view.id, promptId));
  return left;
}

async function follow(view: SessionView, following: Following, call: ToolCall, deps: ToolDeps): Promise<Left | Paused> {
  const { cursor, onSilence, onEvent, waiting } = following;
  const eliciting = ElicitingWait.of(waiting, { call, deps });
  const promptId = await promptAt(view, cursor);
  const turn = new Turn(promptId);
  const reacting = { call, deps, eliciting, onSilence };
  const resumeAt = eliciting?.from(view.id) ?? cursor;
  await recallTo(resumeAt, turn, view, following);
  await eliciting?.take([view]);
  // A function, because the compiler takes a property that it has seen false for false ever after.
  const gone = (): boolean => call.signal.aborted;
  let next = resumeAt;
  // What was asked before, in a turn that the prompt waits for, would keep it waiting; and what the last form was about.
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
    if (page.length < PAGE) await view.wait({ cursor: next, until: "event", timeoutMs: BEAT_MS });
  }
  return cancel(view, promptId, call, deps);
}

/** Nothing more comes of a turn whose session, or whose end, cannot be read. */
async function onSilent(
  silent: number,
  { promptId }: Turn,
  view: SessionView,
  onSilence: Following["onSilence"],
): Promise<Left | undefined> {
  if (silent > 1) onSilence(silent - 1);
  const { owner, state, unreadable } = await view.record();
  if (unreadable && owner?.alive !== true) return { why: "cancelled", because: unreadableText(unreadable) };
  const isOpen = state.turn !== null || state.queue.some((prompt) => prompt.promptId === promptId);
  // The end may have come after the events were read: it is looked for once more.
  if (isOpen || unreadable || silent === 1) return undefined;
  return { why: "cancelled", because: "The end of the turn cannot be read." };
}

async function recallTo(end: number, turn: Turn, view: SessionView, { cursor, recall }: Following): Promise<void> {
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

  /** A lost turn that is resumed (onLost: resume) has not ended for a waiting call: the next begins in the same step. */
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

const NEVER_RUN = "The previous turn was stopped, so the prompt was not run. Send it again.";

async function promptAt(view: SessionView, cursor: number): Promise<string> {
  return promptIdIn(await view.read(cursor, PAGE));
}

interface Reacting {
  readonly call: ToolCall;
  readonly deps: ToolDeps;
  /** Undefined if the client is not asked. */
  readonly eliciting: ElicitingWait | undefined;
  readonly onSilence: (beat: number) => void;
}

/** After these events another approver may have to answer. */
const ABOUT_REQUESTS = new Set<StoredEvent["type"]>(["permission.asked", "question.asked", "request.passed"]);

async function reactTo(
  event: StoredEvent,
  turn: Turn,
  view: SessionView,
  reacting: Reacting,
): Promise<Left | Paused | undefined> {
  turn.see(event);
  if (turn.isEnd(event)) return (await turn.goesOn(view, event)) ? undefined : { why: "ended", end: event };
  const because = await turn.whyOver(event, view);
  if (because !== undefined) {
    // A held prompt would run when the queue is released.
    await cancel(view, turn.promptId, reacting.call, reacting.deps);
    return { why: "cancelled", because };
  }
  return ABOUT_REQUESTS.has(event.type) ? reactToRequests(event.id + 1, view, reacting) : undefined;
}

/** What is asked is the user's to answer, or the caller's, or it is waited for: whom it is with can change meanwhile. */
async function reactToRequests(
  next: number,
  view: SessionView,
  { call, deps, eliciting, onSilence }: Reacting,
): Promise<Left | Paused | undefined> {
  const { state } = await view.record();
  // What comes behind is told in its place.
  const requests = state.requests.filter(({ eventId }) => eventId < next);
  const needsInput = await eliciting?.ask(view, requests, next);
  if (needsInput) return { why: "form", needsInput: { ...needsInput, settled: whileAlive(needsInput, onSilence) } };
  const unanswered = requests.filter((open) => eliciting?.isForUser(open) === true || open.approver === CALLER);
  if (unanswered.length === 0) return undefined;
  if (deps.callersAnswer) return { why: "asked", nextCursor: next };
  for (const open of unanswered) await giveUp(view, open, call, deps);
  return undefined;
}

/** Where the form is shown while the call runs, its client counts on a sign of life all the same. */
function whileAlive({ settled }: NeedsInput, onSilence: (beat: number) => void): NeedsInput["settled"] {
  return async (signal) => {
    let beat = 0;
    const timer = setInterval(() => onSilence((beat += 1)), BEAT_MS);
    await settled(signal).finally(() => clearInterval(timer));
  };
}

/** No approver here can answer it: the call must not hang for as long as another approver might take. */
async function giveUp(view: SessionView, open: OpenRequest, call: ToolCall, { engine }: ToolDeps): Promise<void> {
  const { requestId } = open;
  await engine.pass(call.principal, view.id, { requestId, from: open.approver, why: "unreachable" });
}

/** Ends what came of the prompt and nothing else: by now another turn may run. */
async function cancel(view: SessionView, promptId: string, call: ToolCall, { engine }: ToolDeps): Promise<Left> {
  await engine.interrupt(call.principal, view.id, CALLER, promptId).catch((error: unknown) => {
    // A session that is gone has nothing left to end.
    if (!(error instanceof AppError)) throw error;
  });
  return { why: "cancelled", because: "The query was cancelled." };
}
