import { createRequestStateCodec, type RequestStateCodec } from "@modelcontextprotocol/server";
import type { Logger } from "../engine/ports.ts";
import { callerOf } from "./caller.ts";
import { lazy } from "./lazy.ts";

/**
 * What a call that ends with a form leaves with its client, and gets back with the answer: signed, and good for the same
 * principal only. Not encrypted: it holds nothing that its caller may not know.
 */
export type States = Pick<RequestStateCodec, "mint" | "verify">;

/** A form may stay open while its person is away, s. */
const TTL_S = 86_400;

/**
 * Made once for all servers of this process: a request of the later era has a server of its own. `key` is read with the first
 * form; servers that have the same take each other's states.
 */
export function createStates(key: () => Promise<Uint8Array>): States {
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

/** The most clients that are remembered; the oldest is forgotten then, and asked once more. */
const MAX_CLIENTS = 1_000;

/** After this time a person may be there: the same program runs with and without one. ms */
const FORGOTTEN_AFTER_MS = 600_000;

/** Who shows forms, as far as it is known. */
export interface FormClient {
  readonly principal: string;
  /** Of the 2025 era over HTTP; who has no protocol session is known by name: those that have the same are alike. */
  readonly sessionId: string | undefined;
  /** As it introduces itself. */
  readonly name: string | undefined;
  readonly version: string | undefined;
}

/** Clients of this process whose forms no person reads: the program declines each at once. */
export class Unattended {
  readonly #log: Pick<Logger, "info">;
  readonly #now: () => number;
  /** When they were noted, the oldest first. */
  readonly #clients = new Map<string, number>();

  constructor(log: Pick<Logger, "info">, now = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  has(client: FormClient): boolean {
    const key = keyOf(client);
    const notedAt = this.#clients.get(key);
    if (notedAt === undefined) return false;
    if (this.#now() - notedAt < FORGOTTEN_AFTER_MS) return true;
    this.#clients.delete(key);
    return false;
  }

  add(client: FormClient): void {
    const key = keyOf(client);
    this.#clients.delete(key);
    const [oldest] = this.#clients.keys();
    if (oldest !== undefined && this.#clients.size >= MAX_CLIENTS) this.#clients.delete(oldest);
    this.#clients.set(key, this.#now());
    const { name = "", principal, version = "" } = client;
    const said = { principal, client: name.slice(0, MAX_NAME), version: version.slice(0, MAX_NAME) };
    this.#log.info("a client declines forms at once: it is shown none for a while", {
      ...said,
      minutes: FORGOTTEN_AFTER_MS / 60_000,
    });
  }
}

/** Of a name that a client gives itself, in a line of the log. */
const MAX_NAME = 100;

function keyOf({ name, principal, sessionId, version }: FormClient): string {
  return JSON.stringify([principal, sessionId, name, version]);
}
