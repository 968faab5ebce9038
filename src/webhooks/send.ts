import { lookup as lookUp } from "node:dns/promises";
import { request as requestPlain, type IncomingMessage } from "node:http";
import { request as requestSecure } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { WebhookReach } from "../domain/feed.ts";
import type { Delivery, DeliveryFault } from "../engine/ports.ts";
import { isPublicAddress } from "../security/public-address.ts";
import { parseRetryAfter, sign } from "./signing.ts";

/** HTTP request to the receiver of a webhook. */

export interface OutgoingMessage {
  /** An http or https URL. */
  readonly url: string;
  /** Keys that sign. */
  readonly keys: readonly Buffer[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Equal at each attempt, so that a receiver recognizes a repetition. */
  readonly id: string;
  readonly body: string;
  /** `public` refuses all addresses but those of the public internet, because a client has named the URL. */
  readonly reach: WebhookReach;
}

/** Makes the message of a delivery. Resolves with `undefined` if there is none any more: its session was deleted, for example. */
export type Receiver = (delivery: Delivery) => Promise<OutgoingMessage | undefined>;

interface Address {
  readonly address: string;
  readonly family: number;
}

export interface SendOptions {
  /** Time limit for the whole attempt, ms. */
  readonly timeoutMs: number;
  /** Aborts the attempt. */
  readonly signal: AbortSignal;
  /** True to read the response's body, up to `MAX_BODY_BYTES`; otherwise the body is not awaited. */
  readonly readsBody?: boolean;
  /** Returns all addresses of a name. Tests replace it. */
  readonly resolve?: (name: string) => Promise<readonly Address[]>;
}

export interface Attempt {
  /** `undefined` if the receiver has accepted the message, with a status 2xx. */
  readonly fault: DeliveryFault | undefined;
  /** Status of the response, if one came. */
  readonly status?: number;
  /** Result in words, for logs. Contains nothing that the receiver has written. */
  readonly answer: string;
  readonly retryAfterMs?: number | undefined;
  /** Body of the response, with `readsBody`. */
  readonly text?: string;
}

const MAX_BODY_BYTES = 8_192;

/** Sends `message` once. Never rejects. */
export async function send(message: OutgoingMessage, { signal, timeoutMs, ...options }: SendOptions): Promise<Attempt> {
  // Uses one `AbortController` with a strong reference: Node 20 can garbage-collect a signal of `AbortSignal.any` or
  // `AbortSignal.timeout` while the signal is pending.
  const enough = new AbortController();
  const stop = () => enough.abort();
  const timer = setTimeout(stop, timeoutMs);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const addresses = await unlessStopped(findAddresses(message, options.resolve), enough.signal);
    return await post(message, { addresses, readsBody: options.readsBody === true, signal: enough.signal });
  } catch (error) {
    return enough.signal.aborted ? { fault: "timeout", answer: "no answer in time" } : failureOf(error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/**
 * Resolves the host of the URL once and checks the addresses, so that no second look-up can lead elsewhere between the check
 * and the connection. Throws without a permitted address.
 */
async function findAddresses({ reach, url }: OutgoingMessage, resolve = resolveName): Promise<readonly Address[]> {
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(host);
  const found = family === 0 ? await resolve(host) : [{ address: host, family }];
  const permitted = reach === "any" ? found : found.filter(({ address }) => isPublicAddress(address));
  if (permitted.length === 0) throw Object.assign(new Error("no permitted address"), { code: "no permitted address" });
  return permitted;
}

async function resolveName(name: string): Promise<readonly Address[]> {
  return lookUp(name, { all: true });
}

/** Rejects once `signal` aborts, because a look-up of a name cannot be ended. */
async function unlessStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const stopped = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error("stopped"));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
  });
  return Promise.race([work, stopped]);
}

interface Connecting {
  readonly addresses: readonly Address[];
  readonly readsBody: boolean;
  readonly signal: AbortSignal;
}

/** Follows no redirect, uses no proxy, and shares no connection (`agent: false`) with a request that was checked otherwise. */
async function post(
  { body, headers, id, keys, url }: OutgoingMessage,
  { addresses, readsBody, signal }: Connecting,
): Promise<Attempt> {
  const address = new URL(url);
  const request = address.protocol === "https:" ? requestSecure : requestPlain;
  return new Promise((resolve, reject) => {
    const sent = request(address, {
      method: "POST",
      agent: false,
      lookup: pinned(addresses),
      signal,
      headers: {
        ...headers,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "user-agent": "claude-agents-mcp",
        ...sign(keys, { id, body, at: Date.now() }),
      },
    });
    sent.on("error", reject);
    sent.on("close", () => reject(new Error("no response")));
    sent.on("response", (response) => {
      const done = (text?: string) => {
        resolve({ ...resultOf(response), ...(text !== undefined && { text }) });
        // Ends the connection, so that an endless response does not keep it.
        response.destroy();
      };
      response.on("error", reject);
      if (readsBody) readBody(response, done);
      else done();
    });
    sent.end(body);
  });
}

/** Returns a look-up for a connection that gives `addresses` and asks nobody. */
function pinned(addresses: readonly Address[]): LookupFunction {
  return (_, { all }, callback) => {
    const [first] = addresses;
    process.nextTick(() => {
      if (all === true) callback(null, [...addresses]);
      else callback(null, first?.address ?? "", first?.family);
    });
  };
}

function readBody(response: IncomingMessage, done: (text: string) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = () => done(Buffer.concat(chunks).toString("utf8").slice(0, MAX_BODY_BYTES));
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= MAX_BODY_BYTES) finish();
  });
  response.on("end", finish);
}

function resultOf({ headers, statusCode: status = 0 }: IncomingMessage): Attempt {
  const retryAfterMs = parseRetryAfter(headers["retry-after"], Date.now());
  const isAccepted = status >= 200 && status < 300;
  const refused = status >= 500 ? "http_5xx" : "http_4xx";
  return { fault: isAccepted ? undefined : refused, status, answer: `status ${String(status)}`, retryAfterMs };
}

const TLS_CODE = /^(?:ERR_(?:SSL|TLS)_|CERT_|CRL_|DEPTH_ZERO_|EPROTO$|SELF_SIGNED_|UNABLE_TO_)/;

/** Returns the code of a failure, because messages can contain addresses of a network that the client should not learn. */
function failureOf(error: unknown): Attempt {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "no response";
  if (code === "ETIMEDOUT") return { fault: "timeout", answer: code };
  return { fault: TLS_CODE.test(code) ? "tls_error" : "connection_refused", answer: code };
}
