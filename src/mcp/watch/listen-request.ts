import { isJSONRPCRequest, type JSONRPCRequest, type ServerEventBus } from "@modelcontextprotocol/server";
import { AppError } from "../../domain/error.ts";
import type { Caller } from "../../domain/principal.ts";
import { Subscriptions, type SubscriptionParts } from "./subscriptions.ts";

/**
 * Subscriptions of clients after the 2025 era: one `subscriptions/listen` request names all changes for its stream. The SDK
 * reports changes of any named URI; this module removes URIs of other principals, and follows the named resources.
 */

/** True for a listen request. The SDK checks the form later. */
export function asksToListen(message: unknown): message is JSONRPCRequest {
  return isJSONRPCRequest(message) && message.method === "subscriptions/listen";
}

/** Result of `grant`. */
export interface Granted {
  /** `request` of the client, reduced to resources that the caller may follow. */
  readonly request: JSONRPCRequest;
  readonly uris: readonly string[];
}

/**
 * Subscribes to the resources named in `request` that the caller may follow. Returns the request without the others, so that
 * its acknowledgement lists only granted resources.
 */
export async function grant(request: JSONRPCRequest, caller: Caller, subscriptions: Subscriptions): Promise<Granted> {
  const notifications = asRecord(request.params?.["notifications"]);
  const asked = notifications?.["resourceSubscriptions"];
  if (!Array.isArray(asked)) return { request, uris: [] };
  const uris: string[] = [];
  for (const uri of new Set(asked.filter((each) => typeof each === "string"))) {
    if (await tryAdd(uri, caller, subscriptions)) uris.push(uri);
  }
  const params = { ...request.params, notifications: { ...notifications, resourceSubscriptions: uris } };
  return { request: { ...request, params }, uris };
}

/**
 * Resolves to false for a resource that is unknown, forbidden or over the limit: `grant` leaves the resource out without giving
 * a reason.
 */
async function tryAdd(uri: string, caller: Caller, subscriptions: Subscriptions): Promise<boolean> {
  try {
    await subscriptions.add(uri, caller);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code !== "INTERNAL") return false;
    throw error;
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null ? { ...value } : undefined;
}

/** Event bus of one stream over HTTP. Carries public changes, and changes of the granted resources. */
export class ListenBus implements ServerEventBus {
  readonly #shared: ServerEventBus;
  readonly #subscriptions: Subscriptions;
  readonly #onEnd: () => void;
  readonly #listeners = new Set<Parameters<ServerEventBus["subscribe"]>[0]>();
  #isUsed = false;

  constructor(following: SubscriptionParts, shared: ServerEventBus, onEnd: () => void) {
    this.#shared = shared;
    this.#onEnd = onEnd;
    this.#subscriptions = new Subscriptions(following, (uri) => this.publish({ kind: "resource_updated", uri }));
  }

  get subscriptions(): Subscriptions {
    return this.#subscriptions;
  }

  publish: ServerEventBus["publish"] = (event) => {
    for (const listener of this.#listeners) listener(event);
  };

  subscribe: ServerEventBus["subscribe"] = (listener) => {
    this.#isUsed = true;
    this.#listeners.add(listener);
    const leave = this.#shared.subscribe(listener);
    return () => {
      leave();
      this.#listeners.delete(listener);
      this.close();
    };
  };

  /** Closes the bus of a request that was answered without a stream. */
  closeUnused(): void {
    if (!this.#isUsed) this.close();
  }

  close(): void {
    this.#subscriptions.close();
    this.#onEnd();
  }
}
