import { createRequestStateCodec, type RequestStateCodec } from "@modelcontextprotocol/server";
import type { Logger } from "../engine/ports.ts";
import { callerOf } from "./caller.ts";
import { lazy } from "./lazy.ts";

/**
 * State of a call that ends with a form: kept by the client and returned with the answer. Signed, and valid for its principal
 * only. Not encrypted, because its caller may know the content.
 */
export type RequestStates = Pick<RequestStateCodec, "mint" | "verify">;

/** Lifetime of a state, s: a form may stay open while its user is away. */
const TTL_S = 86_400;

/**
 * Created once for all servers of this process, because in the later era each request has a server. `key` is read with the
 * first form; servers with an equal key accept each other's states.
 */
export function createRequestStates(key: () => Promise<Uint8Array>): RequestStates {
  const codec = lazy(async () =>
    createRequestStateCodec({
      key: await key(),
      ttlSeconds: TTL_S,
      bind: (context) => callerOf(context).principal,
    }),
  );
  return {
    mint: async (payload, context) => (await codec()).mint(payload, context),
    verify: async (state, context) => (await codec()).verify(state, context),
  };
}

/** Maximum number of remembered clients. The oldest is dropped, and later gets one more form. */
const MAX_CLIENTS = 1_000;

/** Time after which a client may show forms again, ms: the program may run with a person by then. */
const FORGOTTEN_AFTER_MS = 600_000;

/** Identity of a client that shows forms, as far as known. */
export interface FormClient {
  readonly principal: string;
  /**
   * Protocol session of a 2025 client over HTTP. Clients without a session are identified by name: equal names count as one
   * client.
   */
  readonly sessionId: string | undefined;
  /** Name in the client's own words. */
  readonly name: string | undefined;
  readonly version: string | undefined;
}

/** Clients of this process that decline forms at once because no person reads them. */
export class UnattendedClients {
  readonly #log: Pick<Logger, "info">;
  readonly #now: () => number;
  /** Times of the last `add`, oldest first. */
  readonly #clients = new Map<string, number>();

  constructor(log: Pick<Logger, "info">, now = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  has(client: FormClient): boolean {
    const key = clientKey(client);
    const notedAt = this.#clients.get(key);
    if (notedAt === undefined) return false;
    if (this.#now() - notedAt < FORGOTTEN_AFTER_MS) return true;
    this.#clients.delete(key);
    return false;
  }

  add(client: FormClient): void {
    const key = clientKey(client);
    this.#clients.delete(key);
    const [oldest] = this.#clients.keys();
    if (oldest !== undefined && this.#clients.size >= MAX_CLIENTS) this.#clients.delete(oldest);
    this.#clients.set(key, this.#now());
    const { name = "", principal, version = "" } = client;
    const said = { principal, client: name.slice(0, MAX_NAME), version: version.slice(0, MAX_NAME) };
    this.#log.info("a client declines forms at once: it gets no forms for a while", {
      ...said,
      minutes: FORGOTTEN_AFTER_MS / 60_000,
    });
  }
}

/** Maximum length of a client's own name or version in the log, characters. */
const MAX_NAME = 100;

function clientKey({ name, principal, sessionId, version }: FormClient): string {
  return JSON.stringify([principal, sessionId, name, version]);
}
