import type { Fields } from "./message.ts";

export type Id = string | number;

const CANCELLED = "notifications/cancelled";
/** Notification that accepts a listen request. The result follows only when listening ends. */
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** Unanswered requests of one client. Callers refuse a request with the id of an open request, so ids are unique. */
export class UnansweredRequests {
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

  /** Notes a message from the client. Forgets a cancelled request, which is never answered. */
  noteReceived({ id, method, params }: Fields): void {
    if (method === CANCELLED) this.forget(readField(params, "requestId"));
    if (isId(id) && method !== undefined) this.#open.add(id);
  }

  /** Notes a message to the client. Forgets a listen request once acknowledged. */
  noteSent({ id, method, params }: Fields): void {
    if (method === undefined) this.forget(id);
    if (method === ACKNOWLEDGED) this.forget(readField(readField(params, "_meta"), SUBSCRIPTION));
  }

  forget(id: unknown): void {
    if (isId(id)) this.#open.delete(id);
  }
}

/**
 * Error text for a duplicate id. The SDK would send both answers to one request, or end only one request when the client
 * leaves.
 */
export function duplicateIdText(where: "batch" | "connection" | "session"): string {
  return `Invalid request: id: used by another open request of this ${where}. Give each request its own id.`;
}

export function isId(value: unknown): value is Id {
  return typeof value === "string" || typeof value === "number";
}

/** Returns the field `key` of `value`, or `undefined` if `value` is not an object. */
export function readField(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
