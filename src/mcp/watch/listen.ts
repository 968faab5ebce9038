import { isJSONRPCRequest, type JSONRPCRequest, type ServerEventBus } from "@modelcontextprotocol/server";
import { AppError } from "../../domain/error.ts";
import type { Caller } from "../../domain/principal.ts";
import { Subscriptions, type Following } from "./subscriptions.ts";

/**
 * Subscriptions in the era of 2026: one request names all changes that its stream reports. The SDK reports changes of any named
 * URI; this module refuses URIs of other principals, and follows the named resources.
 */

/** Whether a message is a listen request. The code that serves it checks its form. */
export function asksToListen(message: unknown): message is JSONRPCRequest {
  return isJSONRPCRequest(message) && message.method === "subscriptions/listen";
}

/** What a stream was granted. */
export interface Granted {
  /** The request, with those resources that its caller may follow. */
  readonly request: JSONRPCRequest;
  readonly uris: readonly string[];
}

/** Follows what the request names, as far as the caller may: the answer to it says how far that is. */
export async function grant(request: JSONRPCRequest, caller: Caller, subscriptions: Subscriptions): Promise<Granted> {
  const notifications = record(request.params?.["notifications"]);
  const asked = notifications?.["resourceSubscriptions"];
  if (!Array.isArray(asked)) return { request, uris: [] };
  const uris: string[] = [];
  for (const uri of new Set(asked.filter((each) => typeof each === "string"))) {
    if (await isAdded(uri, caller, subscriptions)) uris.push(uri);
  }
  const params = { ...request.params, notifications: { ...notifications, resourceSubscriptions: uris } };
  return { request: { ...request, params }, uris };
}

/** Not there, another's, not allowed or one too many: it is left out of what is granted, which says no more. */
async function isAdded(uri: string, caller: Caller, subscriptions: Subscriptions): Promise<boolean> {
  try {
    await subscriptions.add(uri, caller);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code !== "INTERNAL") return false;
    throw error;
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null ? { ...value } : undefined;
}

/** The changes that one stream over HTTP gets: public ones, and those of the resources that it was granted. */
export class ListenBus implements ServerEventBus {
  readonly #shared: ServerEventBus;
  readonly #subscriptions: Subscriptions;
  readonly #onEnd: () => void;
  readonly #listeners = new Set<Parameters<ServerEventBus["subscribe"]>[0]>();
  #isUsed = false;

  constructor(following: Following, shared: ServerEventBus, onEnd: () => void) {
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

  /** A request that was answered without a stream needs no notification. */
  closeUnused(): void {
    if (!this.#isUsed) this.close();
  }

  close(): void {
    this.#subscriptions.close();
    this.#onEnd();
  }
}
