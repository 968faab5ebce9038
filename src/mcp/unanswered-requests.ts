import type { Fields } from "./message.ts";

export type Id = string | number;

const CANCELLED = "notifications/cancelled";
/** Notifications that accept a listen request or a stream. The result follows only at the end. */
const ACCEPTED = ["notifications/subscriptions/acknowledged", "notifications/events/active"];
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** Unanswered requests of one client. Callers refuse a request with the id of an open request, so ids are unique. */
export class UnansweredRequests {
  readonly #open = new Set<Id>();
  /** Accepted listen requests and streams, which nobody waits for. */
  readonly #standing = new Set<Id>();

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  get ids(): Id[] {
    return [...this.#open];
  }

  has(id: unknown): boolean {
    return isId(id) && (this.#open.has(id) || this.#standing.has(id));
  }

  /** Notes a message from the client. Forgets a cancelled request, which is never answered. */
  noteReceived({ id, method, params }: Fields): void {
    if (method === CANCELLED) this.forget(readField(params, "requestId"));
    if (isId(id) && method !== undefined) this.#open.add(id);
  }

  /** Notes a message to the client. */
  noteSent({ id, method, params }: Fields): void {
    if (method === undefined) this.forget(id);
    if (typeof method !== "string" || !ACCEPTED.includes(method)) return;
    const accepted = readField(readField(params, "_meta"), SUBSCRIPTION);
    if (isId(accepted) && this.#open.delete(accepted)) this.#standing.add(accepted);
  }

  forget(id: unknown): void {
    if (!isId(id)) return;
    this.#open.delete(id);
    this.#standing.delete(id);
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
