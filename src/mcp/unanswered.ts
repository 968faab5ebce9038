import type { Fields } from "./message.ts";

export type Id = string | number;

const CANCELLED = "notifications/cancelled";
/** Says that a request to listen has begun: its result comes with its end. */
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** Requests of one client that were not answered yet, each with an id of its own. */
export class Unanswered {
  readonly #open = new Set<Id>();

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  get ids(): Id[] {
    return [...this.#open];
  }

  has(id: unknown): boolean {
    return isId(id) && this.#open.has(id);
  }

  /** Notes a message of the client. What it cancels is never answered. */
  heard({ id, method, params }: Fields): void {
    if (method === CANCELLED) this.forget(at(params, "requestId"));
    if (isId(id) && method !== undefined) this.#open.add(id);
  }

  /** Notes a message to the client. */
  said({ id, method, params }: Fields): void {
    if (method === undefined) this.forget(id);
    if (method === ACKNOWLEDGED) this.forget(at(at(params, "_meta"), SUBSCRIPTION));
  }

  forget(id: unknown): void {
    if (isId(id)) this.#open.delete(id);
  }
}

/** Why a request is refused whose id is that of another: the SDK would send both answers to one of them, or end only one with its client. */
export function idTaken(where: "batch" | "connection" | "session"): string {
  return `Invalid request: id: another open request of this ${where} has it. Give each request an id of its own.`;
}

export function isId(value: unknown): value is Id {
  return typeof value === "string" || typeof value === "number";
}

function at(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
