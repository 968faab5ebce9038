import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { LOCAL_CALLER } from "../../domain/principal.ts";
import { lazy } from "../lazy.ts";
import type { SubscriptionParts, Subscriptions } from "./subscriptions.ts";

/**
 * Subscriptions of the client on stdio. The SDK assigns changes to listen requests; this class follows the named resources.
 * Loads its modules with the first request.
 */
export class StdioSubscriptions {
  readonly #subscriptions: () => Promise<Subscriptions>;
  /** URIs granted to each listen request, by request id. */
  readonly #uris = new Map<unknown, readonly string[]>();
  #opened: Subscriptions | undefined;
  #closed = false;

  constructor(following: () => Promise<SubscriptionParts>, onUpdated: (uri: string) => void) {
    this.#subscriptions = lazy(async () => {
      const [{ Subscriptions: Made }, all] = await Promise.all([import("./subscriptions.ts"), following()]);
      return (this.#opened = new Made(all, onUpdated));
    });
  }

  /** True if `message` begins or ends listening. */
  concerns(message: JSONRPCMessage): boolean {
    if (!("method" in message)) return false;
    if (message.method === "subscriptions/listen") return "id" in message;
    return message.method === "notifications/cancelled" && this.#uris.has(message.params?.["requestId"]);
  }

  /** Follows or drops the resources named in `message`. Resolves to the message for the SDK, reduced to granted resources. */
  async take(message: JSONRPCMessage): Promise<JSONRPCMessage> {
    if (!this.concerns(message) || !("method" in message)) return message;
    const { asksToListen, grant } = await import("./listen-request.ts");
    if (!asksToListen(message)) {
      this.#end(message.params?.["requestId"]);
      return message;
    }
    const { request, uris } = await grant(message, LOCAL_CALLER, await this.#subscriptions());
    this.#end(message.id);
    this.#uris.set(message.id, uris);
    if (this.#closed) this.close();
    return request;
  }

  close(): void {
    this.#closed = true;
    this.#opened?.close();
  }

  #end(id: unknown): void {
    for (const uri of this.#uris.get(id) ?? []) this.#opened?.drop(uri);
    this.#uris.delete(id);
  }
}
