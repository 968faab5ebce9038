import type { JsonObject } from "../../domain/json.ts";
import type { OpenRequest } from "../../domain/permission.ts";
import type { SessionState } from "../../domain/session.ts";
import type { WaitUntil } from "../../engine/api.ts";
import { nothingRuns } from "../../engine/session/wait.ts";
import type { ReadableSession } from "../readable-session.ts";
import type { NeedsInput } from "./needs-input.ts";
import { MAX_FORMS, requestKey, previousRound, type Round, type Time } from "./rounds.ts";
import {
  canAnswerByForm,
  canShowForms,
  showForm,
  takeForm,
  untilSettled,
  type FormContext,
  type FormResult,
} from "./user.ts";
import { MAX_TIMER_MS } from "../../domain/timer.ts";

/** Parameters of a wait, with or without forms. */
export interface Waiting {
  readonly tool: string;
  /** State of the tool, restored when the client repeats the call. */
  readonly work: JsonObject;
  /** Requested wait, ms. 0: no form is shown. Without `waitMs` the call lasts as long as its turn. */
  readonly waitMs?: number;
  /** Shorter wait in place of `waitMs`, ms. Forms are shown all the same. */
  readonly left?: number;
}

export interface Awaited {
  readonly view: ReadableSession;
  readonly cursor: number;
}

/** Waits for sessions without showing forms. Resolves with the session that ended the wait. */
export type PlainWait = (targets: readonly Awaited[], until: WaitUntil, ms: number) => Promise<string | undefined>;

interface News {
  readonly targets: readonly Awaited[];
  readonly until: WaitUntil;
}

export type Outcome = { readonly woke: string | undefined } | { readonly needsInput: NeedsInput };

/** Waits for news. If the client can show forms, requests to the user come first. */
export async function waitEliciting(
  plain: PlainWait,
  news: News,
  waiting: Waiting,
  context: FormContext,
): Promise<Outcome> {
  const eliciting = ElicitingWait.of(waiting, context);
  if (eliciting) return eliciting.wait(plain, news);
  return { woke: await plain(news.targets, news.until, waiting.left ?? waiting.waitMs ?? 0) };
}

/**
 * Wait with forms. A request to the user ends the call with a form; the client repeats the call with the answer, and the wait
 * continues (`rounds.ts`).
 */
export class ElicitingWait {
  readonly #waiting: Waiting;
  readonly #context: FormContext;
  readonly #before: Round | undefined;
  readonly #from: Record<string, number>;
  readonly #time: Time | undefined;
  /** Id of a request whose form came back unclear. */
  #again: string | undefined;
  #elicits: boolean;

  /** Returns `undefined` if no form can be shown. */
  static of(waiting: Waiting, context: FormContext): ElicitingWait | undefined {
    const elicits = waiting.waitMs !== 0 && canShowForms(context);
    return elicits || context.call.resumeState !== undefined ? new ElicitingWait(waiting, context) : undefined;
  }

  private constructor(waiting: Waiting, context: FormContext) {
    this.#waiting = waiting;
    this.#context = context;
    this.#before = previousRound(waiting.tool, context.call);
    this.#from = { ...this.#before?.from };
    this.#time = this.#before?.time ?? timeOf(waiting, context);
    this.#elicits = canShowForms(context);
  }

  /** Returns the cursor of a repeated call. */
  from(sessionId: string): number | undefined {
    return this.#from[sessionId];
  }

  isForUser(sessionId: string, open: OpenRequest): boolean {
    return this.#elicits && canAnswerByForm(sessionId, open, this.#context);
  }

  /** Processes the form answer of a repeated call. Returns `undefined` without an answer. */
  async take(views: readonly ReadableSession[]): Promise<FormResult | undefined> {
    const { call } = this.#context;
    if (!this.#before || !this.#elicits) return undefined;
    const { forms, shown } = this.#before;
    const view = views.find(({ id }) => id === shown.sessionId);
    const answer = call.inputResponses[requestKey(shown.requestId, shown.second)];
    if (!view || !answer) return undefined;
    const taken = await takeForm(view, { ...shown, last: forms >= MAX_FORMS }, answer, this.#context);
    if (taken === "unclear") this.#again = shown.requestId;
    if (taken === "unattended") this.#elicits = false;
    return taken;
  }

  /** Ends the round with a form for the first request to the user. The repeated call reads on at `next`. */
  async ask(view: ReadableSession, requests: readonly OpenRequest[], next?: number): Promise<NeedsInput | undefined> {
    if (this.#isOver) return undefined;
    for (const open of requests.filter((each) => this.isForUser(view.id, each))) {
      const needsInput = await this.#endWith(view, open, next);
      if (needsInput) return needsInput;
    }
    return undefined;
  }

  async wait(plain: PlainWait, { targets, until }: News): Promise<Outcome> {
    await this.#takeAmong(targets.map(({ view }) => view));
    let waiting = targets.map(({ cursor, view }) => ({ view, cursor: this.from(view.id) ?? cursor }));
    for (let woken: { woke: string | undefined } | undefined; ;) {
      const outcome = (await this.#askAmong(waiting)) ?? woken;
      if (outcome) return outcome;
      const woke = await this.#waitPlainly(plain, { targets: waiting, until });
      const target = waiting.find(({ view }) => view.id === woke);
      // Skip news settled by a form. Until the first form, a call wakes as in a plain wait.
      const isPlain = until === "event" || (until === "news" && this.#forms === 0);
      const moved = target && this.#elicits && !isPlain ? await skipNews(target, until) : undefined;
      if (moved) waiting = waiting.map((each) => (each === target ? moved : each));
      else woken = { woke };
    }
  }

  async #takeAmong(views: readonly ReadableSession[]): Promise<void> {
    const taken = await this.take(views);
    if (taken === undefined || !this.#before) return;
    // No answer came within the time of the call.
    if (taken === "late") {
      this.#elicits = false;
      return this.#waitAtMost(0);
    }
    const { eventId, sessionId } = this.#before.shown;
    // Another approver has to answer now, so the answer shows the request at once.
    const isLeft = taken === "dismissed" || taken === "unattended";
    this.#from[sessionId] = isLeft ? eventId : eventId + 1;
    if (this.#context.call.client.elicitation === "during") this.#waitAtMost(this.#withinMs);
  }

  async #askAmong(targets: readonly Awaited[]): Promise<Outcome | undefined> {
    if (!this.#elicits) return undefined;
    for (const { view } of targets) {
      const { requests } = (await view.record()).state;
      if (this.#isOver && requests.some((open) => this.isForUser(view.id, open))) return { woke: view.id };
      const needsInput = await this.ask(view, requests);
      if (needsInput) return { needsInput };
    }
    return undefined;
  }

  async #waitPlainly(plain: PlainWait, { targets, until }: News): Promise<string | undefined> {
    const began = performance.now();
    const { left = 0 } = this.#time ?? {};
    // To show forms, wake for requests even with `until: end`.
    const woke = await plain(targets, this.#elicits && until === "end" ? "news" : until, left);
    this.#waitAtMost(Math.max(0, Math.ceil(left - (performance.now() - began))));
    return woke;
  }

  async #endWith(view: ReadableSession, open: OpenRequest, next: number | undefined): Promise<NeedsInput | undefined> {
    const { eventId, filled, requestId } = open;
    const [again, second] = [requestId === this.#again, filled !== undefined];
    const form = await showForm(view, open, again, this.#context);
    if (!form) return undefined;
    const { tool, work } = this.#waiting;
    const state: Round = {
      tool,
      work,
      forms: this.#forms + 1,
      shown: { sessionId: view.id, requestId, eventId, again, second, at: this.#context.deps.now() },
      from: next === undefined ? this.#from : { ...this.#from, [view.id]: next },
      ...(this.#time && { time: { ...this.#time } }),
    };
    return {
      requests: { [requestKey(requestId, second)]: form },
      state,
      sessionId: view.id,
      withinMs: this.#withinMs,
      settled: async (signal) => untilSettled(view, requestId, signal, this.#context),
    };
  }

  get #forms(): number {
    return this.#before?.forms ?? 0;
  }

  /** True if the call has shown the maximum number of forms. */
  get #isOver(): boolean {
    return this.#forms >= MAX_FORMS;
  }

  #waitAtMost(ms: number): void {
    if (this.#time) this.#time.left = Math.min(this.#time.left, ms);
  }

  get #withinMs(): number {
    // In a call as long as its turn, a form stays open until another approver has the request.
    if (!this.#time) return MAX_TIMER_MS;
    // At most a whole wait, in case the clock was set back.
    const { deps } = this.#context;
    return Math.min(Math.max(0, this.#time.until - deps.now()), deps.limits.maxWaitMs);
  }
}

function timeOf({ left, waitMs }: Waiting, { deps }: FormContext): Time | undefined {
  if (waitMs === undefined) return undefined;
  return { left: left ?? waitMs, until: deps.now() + deps.limits.maxWaitMs };
}

/** Returns a target behind the news if `until` does not include them. */
async function skipNews({ cursor, view }: Awaited, until: WaitUntil): Promise<Awaited | undefined> {
  const { state } = await view.record();
  return isAwaited(state, cursor, until) ? undefined : { view, cursor: state.lastEventId + 1 };
}

function isAwaited(state: SessionState, from: number, until: WaitUntil): boolean {
  if (nothingRuns(state)) return true;
  if (until === "end") return false;
  return (state.lastTurnEventId ?? 0) >= from || state.requests.some(({ eventId }) => eventId >= from);
}
