import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { JsonObject } from "../../domain/json.ts";
import type { SessionState } from "../../domain/session.ts";
import type { WaitUntil } from "../../engine/api.ts";
import { nothingRuns } from "../../engine/verbs/waiting.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import type { SessionView } from "../session-view.ts";
import type { NeedsInput } from "./needs-input.ts";
import { forUser, isAlone, passOn, reachesUser, showForm, takeForm, untilSettled } from "./user.ts";

/**
 * A call that waits and asks the person at its client meanwhile: it ends with a form, and comes back with what was filled
 * in. What it has to know then it takes along in its state, so that any server instance can go on with it.
 */

/** Clients give a call up after so many rounds as it takes to look like a loop (ten, and less before 2026-07-28). */
const FORMS_MOST = 7;

const Shown = z.object({ sessionId: z.string(), requestId: z.string(), eventId: z.int(), again: z.boolean() });

const Round = z.object({
  tool: z.string(),
  /** What the tool has done so far. */
  work: JsonObject,
  /** ms that it still waits; the time in which a form is looked at does not count. */
  left: z.number(),
  /** When a call that runs while its form is shown must be over, ms since the epoch. */
  until: z.number(),
  forms: z.int(),
  /** Where the news of a session begins, once a request in it was dealt with. */
  from: z.record(z.string(), z.int()),
  shown: Shown,
});
type Round = z.infer<typeof Round>;

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

export type Waited = { readonly woke: string | undefined } | { readonly needsInput: NeedsInput };

export class Asking {
  readonly #round: Omit<Round, "shown" | "work">;
  #work: JsonObject | undefined;
  readonly #call: ToolCall;
  readonly #deps: ToolDeps;
  readonly #resumed: Round | undefined;
  /** Of a request whose form came back unclear. */
  #again: string | undefined;
  #asks: boolean;
  #passes: boolean;

  constructor(tool: string, { call, deps }: { call: ToolCall; deps: ToolDeps }) {
    this.#call = call;
    this.#deps = deps;
    this.#resumed = resumed(tool, call);
    const until = deps.now() + deps.limits.maxWaitMs;
    this.#round = this.#resumed ?? { tool, left: 0, until, forms: 0, from: {} };
    this.#work = this.#resumed?.work;
    this.#asks = reachesUser({ call, deps });
    this.#passes = !this.#asks && isAlone({ call, deps });
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
    this.#passes &&= waitMs > 0;
  }

  /** Waits for what the caller is after; a request that is the user's to answer comes before. */
  async wait({ plainly, targets, until }: Waiting): Promise<Waited> {
    if (this.#resumed) await this.#take(targets, this.#resumed);
    let waiting = targets.map(({ cursor, view }) => ({ view, cursor: this.#round.from[view.id] ?? cursor }));
    for (;;) {
      const asked = await this.#ask(waiting);
      if (asked) return asked;
      const began = this.#deps.now();
      // Whoever waits for the end alone is not woken by a request.
      const woke = await plainly(waiting, this.#asks && until === "end" ? "news" : until, this.#round.left);
      this.#round.left = Math.max(0, this.#round.left - (this.#deps.now() - began));
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

  async #take(targets: readonly Awaited[], { shown }: Round): Promise<void> {
    const { eventId, requestId, sessionId } = shown;
    const view = targets.find((each) => each.view.id === sessionId)?.view;
    const answer = this.#call.inputResponses[requestKey(requestId)];
    // A client that sends none has not shown it.
    if (!view || !answer || !this.#asks) return;
    const taken = await takeForm(view, shown, answer, { call: this.#call, deps: this.#deps });
    if (taken === "late") return this.#stop();
    // It is for somebody else to answer then: the call tells of it at once.
    this.#round.from[sessionId] = taken === "dismissed" ? eventId : eventId + 1;
    if (taken === "unclear") this.#again = requestId;
    if (this.#call.client.elicitation === "during") this.#hurry();
  }

  /** Nobody has answered in the time that the call has. */
  #stop(): void {
    this.#asks = false;
    this.#round.left = 0;
  }

  #hurry(): void {
    const { left, until } = this.#round;
    this.#round.left = Math.min(left, Math.max(0, until - this.#deps.now()));
  }

  async #ask(targets: readonly Awaited[]): Promise<Waited | undefined> {
    if (this.#passes) await passOn(targets, { call: this.#call, deps: this.#deps });
    if (!this.#asks) return undefined;
    for (const { view } of targets) {
      const { state } = await view.record();
      const open = state.asks.find(forUser);
      if (!open) continue;
      if (this.#round.forms === FORMS_MOST) return { woke: view.id };
      const again = open.requestId === this.#again;
      const form = await showForm(view, open, again, { call: this.#call, deps: this.#deps });
      if (!form) continue;
      const { eventId, requestId } = open;
      const shown = { sessionId: view.id, requestId, eventId, again };
      return {
        needsInput: {
          requests: { [requestKey(requestId)]: form },
          state: { ...this.#round, work: this.#work ?? {}, forms: this.#round.forms + 1, shown } satisfies Round,
          sessionId: view.id,
          withinMs: Math.max(0, this.#round.until - this.#deps.now()),
          settled: async (signal) => untilSettled(view, requestId, signal, { call: this.#call, deps: this.#deps }),
        },
      };
    }
    return undefined;
  }
}

/** Under which the form for a request is shown, and its answer comes back. */
export function requestKey(requestId: string): string {
  return `perm_${requestId}`;
}

/** The state is ours, but a client can send it with another call. */
function resumed(tool: string, { resumeState }: ToolCall): Round | undefined {
  if (resumeState === undefined) return undefined;
  const round = Round.safeParse(resumeState).data;
  if (round?.tool === tool) return round;
  throw invalidArgument("requestState", "is of another call. Send the call without it.");
}

function isAwaited(state: SessionState, from: number, until: WaitUntil): boolean {
  if (nothingRuns(state)) return true;
  if (until === "end") return false;
  return (state.lastTurnEventId ?? 0) >= from || state.asks.some(({ eventId }) => eventId >= from);
}
