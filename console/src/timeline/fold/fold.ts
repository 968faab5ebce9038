import type { ShownEvent } from "../../../../src/console/wire.ts";
import { glimpse } from "../../parts/glimpse.ts";
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
    const { type } = event;
    if (type === "message") return this.#messages.take(event);
    if (type === "turn.started") return this.#startTurn(event);
    if (type === "turn.ended") return this.#endTurn(event);
    if (type === "permission.asked" || type === "question.asked") return this.#ask(event);
    if (type === "permission.answered" || type === "question.answered") return this.#answer(event);
    if (type === "request.passed") return this.#pass(event);
    if (type === "prompt.queued" || type === "prompt.steered" || type === "prompt.dropped")
      return this.#takePrompt(event);
    this.#heed(event);
    this.#addLine(event);
  }

  #addLine(event: ShownEvent, text = lineOf(event).text): void {
    this.#shelf.add({ kind: "line", ...baseOf(event), ...lineOf(event), text }, "");
  }

  /** What changes the look of something else, too. */
  #heed({ data, type }: ShownEvent): void {
    if (type === "background.changed") this.#messages.runInBackground(data.tasks.map(({ id }) => id));
    if (type === "notice" && data.kind === "denial") this.#deny(textAt(data.details ?? {}, "tool_use_id"));
  }

  #takePrompt(event: Of<"prompt.queued" | "prompt.steered" | "prompt.dropped">): void {
    const { data, type } = event;
    if (type === "prompt.queued") return this.#addPrompt(event);
    this.#movePrompt(
      data.promptId,
      type === "prompt.steered" ? { state: "steered" } : { state: "dropped", why: data.reason },
    );
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
    if (isPlain) return;
    const words = event.data.promptIds.flatMap((id) => {
      const prompt = this.#shelf.get(promptKey(id));
      return prompt?.kind === "prompt" && prompt.text !== "" ? `“${glimpse(prompt.text, 80)}”` : [];
    });
    this.#addLine(event, words.length > 0 ? `${words.join(" and ")} began` : undefined);
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
