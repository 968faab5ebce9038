import type { ShownEvent } from "../../../../src/console/wire.ts";
import { textAt } from "../../parts/json.ts";
import { isUndecided } from "../../state/answer-source.ts";
import { EvidenceReducer, isEvidence } from "./evidence.ts";
import { baseOf, type Item, type PromptItem, withCut } from "./item.ts";
import { summaryOf } from "./summaries.ts";
import { MessageReducer } from "./messages.ts";
import { callKey, TimelineIndex } from "./timeline-index.ts";

type EventOf<T extends ShownEvent["type"]> = Extract<ShownEvent, { type: T }>;

/** Types of events that become a line of their own. */
type LineType =
  | "session.opened"
  | "session.configured"
  | "session.closed"
  | "background.changed"
  | "notice"
  | "process.started"
  | "process.exited";

/**
 * Builds timeline items from events in order of id. The events may begin anywhere: an item that began earlier is shown as far
 * as known. Unknown events become lines with JSON.
 */
export class TimelineReducer {
  readonly #index = new TimelineIndex();
  readonly #messages = new MessageReducer(this.#index);
  readonly #evidence = new EvidenceReducer(this.#index);

  /** Queued prompts by id, shown at the end until Claude Code receives or drops them. */
  readonly #queued = new Map<string, PromptItem>();
  /** Id of a prompt sent while no turn ran: shown where it was sent. Later prompts are queued until it begins. */
  #next: string | undefined;
  /** True if a turn runs, as far as known: the loaded events may begin in the middle of a turn. */
  #isAtWork = false;
  /** Notice of a wait for a slot, shown only if longer than `SHORT_WAIT_MS`. */
  #wait: EventOf<"notice"> | undefined;

  get items(): readonly Item[] {
    return this.#queued.size === 0 ? this.#index.top : [...this.#index.top, ...this.#queued.values()];
  }

  take(event: ShownEvent): void {
    const { type } = event;
    this.#trackState(event);
    if (type === "message") return this.#messages.take(event);
    if (type === "turn.started") return this.#startTurn(event);
    if (type === "turn.ended") return this.#endTurn(event);
    if (type === "permission.asked" || type === "question.asked") return this.#ask(event);
    if (type === "permission.answered" || type === "question.answered") return this.#answer(event);
    if (type === "request.passed") return this.#pass(event);
    if (type === "prompt.queued" || type === "prompt.steered" || type === "prompt.dropped")
      return this.#takePrompt(event);
    if (isEvidence(event)) return this.#evidence.take(event);
    this.#takeLine(event);
  }

  /** Does not compile if a new event type is in neither `take` nor `LineType`. */
  #takeLine(event: EventOf<LineType>): void {
    this.#applyEffects(event);
    if (event.type === "notice" && isForSlot(event.data)) this.#wait = event;
    else this.#addLine(event);
  }

  #trackState({ at, type }: ShownEvent): void {
    if (type === "process.started" || type === "turn.ended") this.#endWait(at);
    if (type === "message" || type === "turn.started") this.#isAtWork = true;
    if (type === "turn.ended") this.#isAtWork = false;
  }

  #addLine(event: ShownEvent): void {
    this.#index.add({ kind: "line", ...baseOf(event), ...summaryOf(event) }, "");
  }

  /** Updates other items that the event affects: calls in the background, and denied calls. */
  #applyEffects({ data, type }: ShownEvent): void {
    if (type === "background.changed") this.#messages.runInBackground(data.tasks.map(({ id }) => id));
    if (type === "notice" && data.kind === "denial") this.#deny(textAt(data.details ?? {}, "tool_use_id"));
  }

  #endWait(at: number): void {
    const wait = this.#wait;
    this.#wait = undefined;
    if (wait && at - wait.at > SHORT_WAIT_MS) this.#addLine(wait);
  }

  #takePrompt(event: EventOf<"prompt.queued" | "prompt.steered" | "prompt.dropped">): void {
    const { data, type } = event;
    if (type === "prompt.queued") return data.via === REPAIR ? this.#addLine(event) : this.#addPrompt(event);
    const change = type === "prompt.steered" ? STEERED : { state: "dropped" as const, why: data.reason };
    this.#movePrompt(event, data.promptId, change);
  }

  #addPrompt(event: EventOf<"prompt.queued">): void {
    const { attachments, promptId, text } = event.data;
    const pictures = (attachments ?? []).map((_, at) => ({
      eventId: event.id,
      at: ["data", "attachments", at, "data"],
    }));
    const base = { ...baseOf(event), key: promptKey(promptId) };
    // Ignores a repeated event.
    if (this.#index.get(base.key)) return;
    const prompt: PromptItem = { kind: "prompt", ...base, promptId, text, pictures, state: "waiting" };
    if (this.#isAtWork || this.#next !== undefined || this.#queued.size > 0) this.#queued.set(promptId, prompt);
    else {
      this.#next = promptId;
      this.#index.add(prompt, "");
    }
  }

  /**
   * Moves the prompt to the event at which Claude Code received or dropped the prompt. Returns false if the prompt lies before
   * the loaded events.
   */
  #movePrompt({ at, id }: ShownEvent, promptId: string, change: Pick<PromptItem, "state" | "why">): boolean {
    const queued = this.#queued.get(promptId);
    const prompt = queued ?? this.#index.get(promptKey(promptId));
    if (prompt?.kind !== "prompt") return false;
    this.#queued.delete(promptId);
    if (this.#next === promptId) this.#next = undefined;
    if (queued) this.#index.add({ ...queued, ...change, eventId: id, at, queuedAt: queued.at }, "");
    else this.#index.put({ ...prompt, ...change });
    return true;
  }

  #startTurn(event: EventOf<"turn.started">): void {
    const { promptIds } = event.data;
    this.#evidence.startTurn(event.id);
    const known = promptIds.filter((promptId) => this.#movePrompt(event, promptId, { state: "begun" }));
    // Adds a line only if no prompt marks the start of the turn.
    if (promptIds.length === 0 || known.length < promptIds.length) this.#addLine(event);
  }

  #endTurn(event: EventOf<"turn.ended">): void {
    this.#messages.stopCalls();
    this.#evidence.stopRun();
    const result = this.#messages.takeResult();
    const failure = this.#messages.takeFailure(event.data.outcome === "failed");
    const base = { ...baseOf(event), ended: event.data, ...(result && { result }) };
    if (!failure) return this.#index.add({ kind: "turn", ...base }, "");
    this.#index.add({ kind: "turn", ...base, cause: failure.text, cutIn: withCut(failure.cutIn, event) }, "");
  }

  #ask(event: EventOf<"permission.asked" | "question.asked">): void {
    const { requestId, toolUseId } = event.data;
    const base = { ...baseOf(event), key: requestKey(requestId) };
    const call = this.#index.call(toolUseId);
    const parent = call ? this.#index.parentOf(call.key) : "";
    this.#index.add({ kind: "request", ...base, request: event.data, passed: [] }, parent);
    if (call?.state === "running") this.#index.put({ ...call, state: "asked" });
  }

  #answer(event: EventOf<"permission.answered" | "question.answered">): void {
    const request = this.#index.get(requestKey(event.data.requestId));
    if (request?.kind !== "request") return this.#addLine(event);
    this.#index.put({ ...request, answer: { ...event.data, at: event.at }, cutIn: withCut(request.cutIn, event) });
    const call = this.#index.call(request.request.toolUseId);
    if (call?.state !== "asked") return;
    const denied = isUndecided(event.data.by) ? "stopped" : "denied";
    this.#index.put({ ...call, state: event.data.behavior === "allow" ? "running" : denied });
  }

  #pass(event: EventOf<"request.passed">): void {
    const request = this.#index.get(requestKey(event.data.requestId));
    if (request?.kind !== "request") return this.#addLine(event);
    const { from, to, why } = event.data;
    this.#index.put({ ...request, passed: [...request.passed, { from, to, why, at: event.at }] });
  }

  #deny(toolUseId: string | undefined): void {
    const call = toolUseId === undefined ? undefined : this.#index.get(callKey(toolUseId));
    if (call?.kind === "call") this.#index.put({ ...call, state: "denied" });
  }
}

/** `via` of a prompt of the server itself, which sends a red verification back. It joins the turn at once. */
const REPAIR = "verification";

const STEERED = { state: "steered" } as const;

/** True for a notice of a wait for a slot. Notices of waits at a limit have details. */
function isForSlot({ details, kind }: EventOf<"notice">["data"]): boolean {
  return kind === "waiting" && details === undefined;
}

/** Shortest wait for a slot that is shown as a line, ms. */
const SHORT_WAIT_MS = 2_000;

function promptKey(promptId: string): string {
  return `prompt ${promptId}`;
}

function requestKey(requestId: string): string {
  return `request ${requestId}`;
}
