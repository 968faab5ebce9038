import { randomBytes } from "node:crypto";
import { createRequestStateCodec, type RequestStateCodec } from "@modelcontextprotocol/server";
import { callerOf } from "./caller.ts";

/**
 * What a call that ends with a form leaves with its client, and gets back with the answer: signed, and good for the same
 * principal only. Not encrypted: it holds nothing that its caller may not know.
 */
export type States = RequestStateCodec;

/** A form may stay open while its person is away, s. */
const TTL_S = 86_400;

/** Made once for all servers of this process: a request of the later era has a server of its own. */
export function createStates(): States {
  return createRequestStateCodec({
    key: randomBytes(32),
    ttlSeconds: TTL_S,
    bind: (context) => callerOf(context).principal,
  });
}

/** The most clients that are remembered; the oldest is forgotten then, and asked once more. */
const CLIENTS_MOST = 1_000;

/** Clients of this process whose forms nobody reads: a program of theirs declines each at once. */
export class Unattended {
  readonly #clients = new Set<string>();

  has(client: string): boolean {
    return this.#clients.has(client);
  }

  add(client: string): void {
    const [oldest] = this.#clients;
    if (oldest !== undefined && this.#clients.size >= CLIENTS_MOST) this.#clients.delete(oldest);
    this.#clients.add(client);
  }
}
