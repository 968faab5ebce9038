import { z } from "zod";
import type { SessionState } from "../../domain/session.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { WaitUntil } from "../../engine/api.ts";
import { nothingRuns } from "../../engine/verbs/waiting.ts";
import type { SessionView } from "../session-view.ts";
import type { NeedsInput } from "./needs-input.ts";
import { endWithForm, FORMS_MOST, resumed, Round, takeShown } from "./rounds.ts";
import { isForForm, reachesUser, type Asker } from "./user.ts";

/** A call that waits for news, as long as it was told to, and asks the person at its client meanwhile. */

const Waited = Round.extend({
  /** ms that it still waits; the time in which a form is looked at does not count. */
  left: z.number(),
  /** When a call that runs while its form is shown must be over, ms since the epoch. */
  until: z.number(),
  /** Where the news of a session begins, once a request in it was dealt with. */
  from: z.record(z.string(), z.int()),
});
type Waited = z.infer<typeof Waited>;

export interface Awaited {
  readonly view: SessionView;
  readonly cursor: number;
}

interface Waiting {
  readonly targets: readonly Awaited[];
  readonly until: WaitUntil;
  /** Waits as it would without forms: the session that woke it. */
  readonly plainly: (targets: readonly Awaited[], until: WaitUntil, ms: number) => Promise<string | undefined>;
}

export type Outcome = { readonly woke: string | undefined } | { readonly needsInput: NeedsInput };

export class Asking {
  readonly #round: Omit<Waited, "shown" | "work">;
  #work: JsonObject | undefined;
  readonly #asker: Asker;
  readonly #resumed: Waited | undefined;
  /** Of a request whose form came back unclear. */
  #again: string | undefined;
  #asks: boolean;

  constructor(tool: string, asker: Asker) {
    const { call, deps } = asker;
    this.#asker = asker;
    this.#resumed = resumed(Waited, tool, call);
    const until = deps.now() + deps.limits.maxWaitMs;
    this.#round = this.#resumed ?? { tool, left: 0, until, forms: 0, from: {} };
    this.#work = this.#resumed?.work;
    this.#asks = reachesUser(asker);
  }

  /** What the tool has done; undefined until it begins, unless the call comes back. */
  get work(): JsonObject | undefined {
    return this.#work;
  }

  /** What was done, to be known when the call comes back, and how long it is to wait for what comes of it. */
  begin(work: JsonObject, waitMs: number, left = waitMs): void {
    this.#work = work;
    this.#round.left = left;
    this.#asks &&= waitMs > 0;
  }

  /** Waits for what the caller is after; a request that is the user's to answer comes before. */
  async wait({ plainly, targets, until }: Waiting): Promise<Outcome> {
    if (this.#resumed) await this.#take(targets, this.#resumed);
    let waiting = targets.map(({ cursor, view }) => ({ view, cursor: this.#round.from[view.id] ?? cursor }));
    for (;;) {
      const asked = await this.#ask(waiting);
      if (asked) return asked;
      const began = performance.now();
      // Whoever waits for the end alone is not woken by a request.
      const woke = await plainly(waiting, this.#asks && until === "end" ? "news" : until, this.#round.left);
      this.#round.left = Math.max(0, Math.ceil(this.#round.left - (performance.now() - began)));
      const now = await this.#ask(waiting);
      if (now) return now;
      const target = waiting.find(({ view }) => view.id === woke);
      // What was dealt with in a form is no news; else a call is woken by what it would be woken by without forms.
      const isPlain = until === "event" || (until === "news" && this.#round.forms === 0);
      if (!target || !this.#asks || isPlain) return { woke };
      const { state } = await target.view.record();
      if (isAwaited(state, target.cursor, until)) return { woke };
      waiting = waiting.map((each) => (each === target ? { ...each, cursor: state.lastEventId + 1 } : each));
    }
  }

  async #take(targets: readonly Awaited[], { forms, shown }: Waited): Promise<void> {
    const { eventId, requestId, sessionId } = shown;
    const view = targets.find((each) => each.view.id === sessionId)?.view;
    const taken = view && this.#asks ? await takeShown(view, { forms, shown }, this.#asker) : undefined;
    if (taken === undefined) return;
    if (taken === "late") return this.#stop();
    if (taken === "unattended") this.#asks = false;
    // It is for somebody else to answer then: the call tells of it at once.
    const isLeft = taken === "dismissed" || taken === "unattended";
    this.#round.from[sessionId] = isLeft ? eventId : eventId + 1;
    if (taken === "unclear") this.#again = requestId;
    if (this.#asker.call.client.elicitation === "during") this.#hurry();
  }

  /** Nobody has answered in the time that the call has. */
  #stop(): void {
    this.#asks = false;
    this.#round.left = 0;
  }

  #hurry(): void {
    this.#round.left = Math.min(this.#round.left, this.#withinMs());
  }

  #withinMs(): number {
    // Not longer than a whole call, should the clock have been set back.
    const { deps } = this.#asker;
    return Math.min(Math.max(0, this.#round.until - deps.now()), deps.limits.maxWaitMs);
  }

  async #ask(targets: readonly Awaited[]): Promise<Outcome | undefined> {
    if (!this.#asks) return undefined;
    for (const { view } of targets) {
      const { state } = await view.record();
      const open = state.asks.find((each) => isForForm(each, this.#asker));
      if (!open) continue;
      if (this.#round.forms === FORMS_MOST) return { woke: view.id };
      const round = { ...this.#round, work: this.#work ?? {} };
      const showing = { again: this.#again, round, withinMs: this.#withinMs() };
      const needsInput = await endWithForm<Waited>(view, open, showing, this.#asker);
      if (needsInput) return { needsInput };
    }
    return undefined;
  }
}

function isAwaited(state: SessionState, from: number, until: WaitUntil): boolean {
  if (nothingRuns(state)) return true;
  if (until === "end") return false;
  return (state.lastTurnEventId ?? 0) >= from || state.asks.some(({ eventId }) => eventId >= from);
}
