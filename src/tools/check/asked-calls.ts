import { CALLER } from "../../domain/approvals/answer-source.ts";
import { requestOf, type StoredEvent } from "../../domain/event.ts";
import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import { briefInput } from "../../view/brief.ts";
import type { ShownEvent } from "../../view/event.ts";
import { callOfEvent, endCall, partsOf, type ListForm } from "../../view/event-list.ts";
import type { ReadableSession } from "../readable-session.ts";

/** Request with the event that has its full input. */
interface FullRequest {
  readonly request: PermissionRequest;
  readonly eventId: number;
}

/**
 * Tool calls shown as requests by an earlier answer. Outcomes are shown with their call, so that the caller need not join two
 * answers by id. The reason of a denial is left out, because the event of the denial has the reason.
 */
export class AskedCalls {
  readonly #view: ReadableSession;
  readonly #from: number;
  readonly #form: ListForm;
  readonly #requests = new Map<string, FullRequest>();
  /** Denials with a reason in an event: ids of requests, and of calls denied without a request. */
  readonly #denied = new Set<string>();
  #isLookedUp = false;

  /** `from` is the first event of the answer. */
  constructor(view: ReadableSession, from: number, form: ListForm) {
    this.#view = view;
    this.#from = from;
    this.#form = form;
  }

  note(event: StoredEvent): void {
    const request = requestOf(event);
    if (request) this.#requests.set(request.toolUseId, { request, eventId: event.id });
    const denied = deniedBy(event, this.#form);
    if (denied !== undefined) this.#denied.add(denied);
  }

  /** Adds the calls to outcomes in `told`, if no call is in `list` and every call was a request. */
  async complete(told: ShownEvent, list: readonly ShownEvent[]): Promise<ShownEvent> {
    if (this.#form.mode !== "minimal" || told.type !== "progress") return told;
    const event = await this.#withoutReasons(told);
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

  async #withoutReasons(event: ShownEvent): Promise<ShownEvent> {
    const failed = partsOf(event.data).filter(({ ok, toolUseId }) => ok === false && toolUseId !== undefined);
    if (failed.length === 0) return event;
    await this.#lookUp();
    const [first, ...others] = partsOf(event.data).map((part) => {
      const { output: _, outputCut: __, ...bare } = part;
      return this.#isDenied(part) ? bare : part;
    });
    return { ...event, data: { ...first, ...(others.length > 0 && { others }) } };
  }

  #isDenied({ ok, toolUseId }: JsonObject): boolean {
    const call = String(toolUseId);
    const { requestId = call } = this.#requests.get(call)?.request ?? {};
    return ok === false && (this.#denied.has(requestId) || this.#denied.has(call));
  }

  /** Leaves out the input of a call just answered by the caller. */
  #callOf({ request, eventId }: FullRequest): JsonObject {
    const { input, requestId, toolName: tool, toolUseId } = request;
    if (requestId === this.#form.answered) return { toolUseId, tool };
    const brief = briefInput(tool, input);
    return callOfEvent({ toolUseId, tool, input: brief.value, inputCut: brief.cut }, eventId);
  }

  /** Reads the events shortly before `from`, because requests are answered soon. */
  async #lookUp(): Promise<void> {
    if (this.#isLookedUp) return;
    this.#isLookedUp = true;
    const first = Math.max(1, this.#from - PAGE);
    const before = first < this.#from ? await this.#view.read(first, this.#from - first) : [];
    for (const event of before) this.note(event);
  }
}

const Denied = z.object({ tool_use_id: z.string() });

/** Returns the id of the request, or else of the call, if the event shows the reason of a denial in minimal mode. */
function deniedBy({ data, type }: StoredEvent, { include }: ListForm): string | undefined {
  if (type === "notice" && data.kind === "denial")
    return include.progressEvents ? Denied.safeParse(data.details).data?.tool_use_id : undefined;
  if (type !== "permission.answered" && type !== "question.answered") return undefined;
  const hasReason = data.message !== undefined && data.by !== CALLER;
  return data.behavior === "deny" && hasReason ? data.requestId : undefined;
}

/** Maximum number of events to search. */
const PAGE = 200;
