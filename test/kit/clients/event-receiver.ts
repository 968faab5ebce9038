import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { Webhook } from "standardwebhooks";
import { vi } from "vitest";
import { z } from "zod";
import type { Connection } from "./connection.ts";

/** Receiver of event webhooks (SEP-3415) on loopback, written from the specification, and the requests of a subscriber. */

const Occurrence = z.strictObject({
  eventId: z.string().min(1),
  name: z.string(),
  timestamp: z.iso.datetime(),
  data: z.looseObject({ sessionId: z.string(), status: z.string() }),
  cursor: z.string(),
});

const Verification = z.strictObject({ type: z.literal("verification"), challenge: z.string().min(20) });

export interface Got {
  readonly headers: IncomingHttpHeaders;
  readonly event: z.infer<typeof Occurrence>;
  readonly response: ServerResponse;
}

export function newSecret(seed: string): string {
  return `whsec_${Buffer.from(seed.padEnd(32, "-")).toString("base64")}`;
}

export class EventReceiver {
  /** Deliveries with a valid signature, oldest first. */
  readonly got: Got[] = [];
  /** Paths of all requests, verifications included. */
  readonly paths: string[] = [];
  /** Accepted secrets. A delivery must be signed with the first of them, and may be with the others. */
  secrets: string[];
  /** Answers an event. */
  answer: (got: Got) => void = ({ response }) => void response.end();
  /** Answers a verification. */
  consent: (challenge: string, response: ServerResponse) => void = (challenge, response) =>
    void response.end(JSON.stringify({ challenge }));
  #port = 0;
  #server = createServer();

  constructor(...secrets: string[]) {
    this.secrets = secrets;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.#port)}/hook`;
  }

  /** Listens at the port of the last time, if any. */
  async open(): Promise<this> {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        this.paths.push(request.url ?? "");
        this.#take(request.headers, Buffer.concat(chunks).toString("utf8"), response);
      });
    });
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #take(headers: IncomingHttpHeaders, text: string, response: ServerResponse): void {
    const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    try {
      for (const secret of this.secrets) new Webhook(secret).verify(text, plain);
    } catch {
      return void response.writeHead(401).end();
    }
    const body: unknown = JSON.parse(text);
    const verification = Verification.safeParse(body);
    if (verification.success) return this.consent(verification.data.challenge, response);
    const got = { headers, event: Occurrence.parse(body), response };
    this.got.push(got);
    this.answer(got);
  }

  /** Resolves once there are `count` deliveries. */
  async until(count: number): Promise<void> {
    await vi.waitUntil(() => this.got.length >= count, { timeout: 40_000, interval: 20 });
  }

  /** Ids of the deliveries as the receiver tells repetitions. */
  ids(): string[] {
    return [...new Set(this.got.map(({ headers }) => String(headers["webhook-id"])))];
  }
}

const Subscribed = z.looseObject({
  id: z.string().regex(/^sub_[\da-f]{32}$/),
  refreshBefore: z.iso.datetime(),
  cursor: z.string(),
  truncated: z.boolean(),
  deliveryStatus: z
    .strictObject({
      active: z.boolean(),
      lastDeliveryAt: z.iso.datetime().nullable(),
      lastError: z.string().nullable(),
      failedSince: z.iso.datetime().optional(),
    })
    .optional(),
});

export interface Refusal {
  readonly code: number;
  readonly message: string;
  readonly data: Record<string, unknown>;
}

/** Sends a request of the extension as a client of either SDK. */
async function ask({ client }: Pick<Connection, "client">, method: string, params: object): Promise<object> {
  const request = { method, params: { ...params } };
  if (client instanceof V1Client) return client.request(request, z.looseObject({}));
  return client.request(request, z.looseObject({}));
}

export class Subscriber {
  readonly #connection: Pick<Connection, "client">;
  readonly #usual: { readonly name: string; readonly url: string; readonly secret: string };

  constructor(connection: Pick<Connection, "client">, { secrets, url }: EventReceiver) {
    this.#connection = connection;
    this.#usual = { name: "turn.ended", url, secret: secrets[0] ?? "" };
  }

  #params({ mode = "webhook", name, secret, url, ...more }: Given): object {
    const usual = this.#usual;
    const delivery = { mode, url: url ?? usual.url, secret: secret ?? usual.secret };
    return { name: name ?? usual.name, delivery, ...more };
  }

  async subscribe(given: Given = {}) {
    return Subscribed.parse(await ask(this.#connection, "events/subscribe", this.#params(given)));
  }

  async unsubscribe(given: Given = {}): Promise<void> {
    await ask(this.#connection, "events/unsubscribe", this.#params(given));
  }

  /** Resolves with the error of a request. */
  async refusal(given: Given, method = "events/subscribe"): Promise<Refusal> {
    const error: unknown = await ask(this.#connection, method, this.#params(given)).then(
      (result: unknown) => Promise.reject(new Error(`${method} was not refused: ${JSON.stringify(result)}`)),
      (reason: unknown) => reason,
    );
    const Refused = z.object({ code: z.number(), message: z.string(), data: z.looseObject({}).default({}) });
    return Refused.parse(error);
  }

  /** Returns the modes of delivery that the server offers for an event. */
  async modes(): Promise<unknown> {
    const Listed = z.looseObject({ events: z.array(z.looseObject({ delivery: z.array(z.string()) })) });
    return Listed.parse(await ask(this.#connection, "events/list", {})).events[0]?.delivery;
  }
}

interface Given {
  readonly mode?: string;
  readonly name?: string;
  readonly url?: string;
  readonly secret?: string;
  readonly arguments?: object;
  readonly cursor?: string | null;
  readonly ttlMs?: number | null;
  readonly maxAgeMs?: number;
}
