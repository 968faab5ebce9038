import { requestOf, type StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import { briefInput } from "../../view/brief.ts";
import type { ShownEvent } from "../../view/event.ts";
import { callOfEvent, endCall, partsOf, type Form } from "../../view/event-list.ts";
import type { SessionView } from "../session-view.ts";

/** A request, and the event that has it whole. */
interface FullRequest {
  readonly request: PermissionRequest;
  readonly eventId: number;
}

/**
 * Tool calls that an earlier answer showed as requests. Their outcomes are shown with the call, so that the caller need not join
 * two answers by an id.
 */
export class AskedCalls {
  readonly #view: SessionView;
  readonly #from: number;
  readonly #form: Form;
  readonly #requests = new Map<string, FullRequest>();
  #isLookedUp = false;

  /** `from` is where the answer begins. */
  constructor(view: SessionView, from: number, form: Form) {
    this.#view = view;
    this.#from = from;
    this.#form = form;
  }

  note(event: StoredEvent): void {
    const request = requestOf(event);
    if (request) this.#requests.set(request.toolUseId, { request, eventId: event.id });
  }

  /** The outcomes of calls that are not in the list, each with its call where that was asked for. */
  async complete(event: ShownEvent, list: readonly ShownEvent[]): Promise<ShownEvent> {
    if (this.#form.mode !== "minimal" || event.type !== "progress") return event;
    const outcomes = partsOf(event.data);
    const listed = new Set(list.flatMap(({ data }) => partsOf(data).map(({ toolUseId }) => toolUseId)));
    const isAlone = outcomes.every(({ toolUseId }) => toolUseId !== undefined && !listed.has(toolUseId));
    if (!isAlone) return event;
    await this.#lookUp();
    const asked = outcomes.map(({ toolUseId }) => this.#requests.get(String(toolUseId)));
    if (asked.includes(undefined)) return event;
    const [first, ...others] = outcomes.map((outcome, index) => {
      const call = asked[index];
      return call ? endCall(this.#callOf(call), outcome, event.id) : outcome;
    });
    const { agentId } = event.data;
    const beside = { ...(others.length > 0 && { others }), ...(agentId !== undefined && { agentId }) };
    return { ...event, type: "output", data: { ...first, ...beside } };
  }

  /** What the caller has decided on in this very call it need not be told. */
  #callOf({ request, eventId }: FullRequest): JsonObject {
    const { input, requestId, toolName: tool, toolUseId } = request;
    if (requestId === this.#form.answered) return { toolUseId, tool };
    const brief = briefInput(tool, input);
    return callOfEvent({ toolUseId, tool, input: brief.value, inputCut: brief.cut }, eventId);
  }

  /** Requests are answered soon after they came, so they stand shortly before. */
  async #lookUp(): Promise<void> {
    if (this.#isLookedUp) return;
    this.#isLookedUp = true;
    const first = Math.max(1, this.#from - PAGE);
    const before = first < this.#from ? await this.#view.read(first, this.#from - first) : [];
    for (const event of before) this.note(event);
  }
}

/** Events that are looked through, at most. */
const PAGE = 200;
