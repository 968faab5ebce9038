import type { ShownEvent } from "../../../../src/console/wire.ts";
import { textAt } from "../../parts/json.ts";
import { baseOf, withCut } from "./base.ts";
import type { Item, PromptItem } from "./item.ts";
import { lineOf } from "./lines.ts";
import { MessageFold } from "./messages.ts";
import { callKey, Shelf } from "./shelf.ts";

type Of<T extends ShownEvent["type"]> = Extract<ShownEvent, { type: T }>;

/**
 * Makes items of events, which come in the order of their ids. It may begin anywhere: what is told of something that began
 * before is shown as far as it is known. What it does not know is a line with its JSON.
 */
export class Fold {
  readonly #shelf = new Shelf();
  readonly #messages = new MessageFold(this.#shelf);

  get items(): readonly Item[] {
    return this.#shelf.top;
  }

  take(event: ShownEvent): void {
    switch (event.type) {
      case "message":
        return this.#messages.take(event);
      case "prompt.queued":
        return this.#addPrompt(event);
      case "prompt.steered":
        return this.#movePrompt(event.data.promptId, { state: "steered" });
      case "prompt.dropped":
        return this.#movePrompt(event.data.promptId, { state: "dropped", why: event.data.reason });
      case "turn.started":
        return this.#startTurn(event);
      case "turn.ended":
        return this.#endTurn(event);
      case "permission.asked":
      case "question.asked":
        return this.#ask(event);
      case "permission.answered":
      case "question.answered":
        return this.#answer(event);
      case "request.passed":
        return this.#pass(event);
      case "background.changed":
        this.#messages.runInBackground(event.data.tasks.map(({ id }) => id));
        return this.#addLine(event);
      case "notice":
        if (event.data.kind === "denial") this.#deny(textAt(event.data.details ?? {}, "tool_use_id"));
        return this.#addLine(event);
      default:
        return this.#addLine(event);
    }
  }

  #addLine(event: ShownEvent): void {
    this.#shelf.add({ kind: "line", ...baseOf(event), ...lineOf(event) }, "");
  }

  #addPrompt(event: Of<"prompt.queued">): void {
    const { attachments, promptId, text } = event.data;
    const images = attachments?.length ?? 0;
    const base = { ...baseOf(event), key: promptKey(promptId) };
    this.#shelf.add({ kind: "prompt", ...base, promptId, text, images, state: "waiting" }, "");
  }

  #movePrompt(promptId: string, change: Pick<PromptItem, "state" | "why">): void {
    const prompt = this.#shelf.get(promptKey(promptId));
    if (prompt?.kind === "prompt") this.#shelf.put({ ...prompt, ...change });
  }

  #startTurn(event: Of<"turn.started">): void {
    for (const promptId of event.data.promptIds) this.#movePrompt(promptId, { state: "begun" });
    const last = this.#shelf.top.at(-1);
    // Where it follows its prompt at once there is nothing more to say.
    const isPlain = last?.kind === "prompt" && event.data.promptIds.includes(last.promptId);
    if (!isPlain) this.#addLine(event);
  }

  #endTurn(event: Of<"turn.ended">): void {
    this.#messages.stopCalls();
    const result = this.#messages.takeResult();
    this.#shelf.add({ kind: "turn", ...baseOf(event), ended: event.data, ...(result && { result }) }, "");
  }

  #ask(event: Of<"permission.asked" | "question.asked">): void {
    const { requestId, toolUseId } = event.data;
    const base = { ...baseOf(event), key: requestKey(requestId) };
    const call = this.#shelf.call(toolUseId);
    const parent = call ? this.#shelf.parentOf(call.key) : "";
    this.#shelf.add({ kind: "request", ...base, ask: event.data, passed: [] }, parent);
    if (call?.state === "running") this.#shelf.put({ ...call, state: "asked" });
  }

  #answer(event: Of<"permission.answered" | "question.answered">): void {
    const request = this.#shelf.get(requestKey(event.data.requestId));
    if (request?.kind !== "request") return this.#addLine(event);
    this.#shelf.put({ ...request, answer: { ...event.data, at: event.at }, cutIn: withCut(request.cutIn, event) });
    const call = this.#shelf.call(request.ask.toolUseId);
    if (call?.state !== "asked") return;
    this.#shelf.put({ ...call, state: event.data.behavior === "allow" ? "running" : "denied" });
  }

  #pass(event: Of<"request.passed">): void {
    const request = this.#shelf.get(requestKey(event.data.requestId));
    if (request?.kind !== "request") return this.#addLine(event);
    const { from, to, why } = event.data;
    this.#shelf.put({ ...request, passed: [...request.passed, { from, to, why, at: event.at }] });
  }

  #deny(toolUseId: string | undefined): void {
    const call = toolUseId === undefined ? undefined : this.#shelf.get(callKey(toolUseId));
    if (call?.kind === "call") this.#shelf.put({ ...call, state: "denied" });
  }
}

function promptKey(promptId: string): string {
  return `prompt ${promptId}`;
}

function requestKey(requestId: string): string {
  return `request ${requestId}`;
}
