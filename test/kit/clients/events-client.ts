import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { expect, vi } from "vitest";
import { z } from "zod";
import type { Connection } from "./connection.ts";

/**
 * Client of the Events extension, on a client of either SDK. The schemas are written from the specification (SEP-3415), not from
 * the server; each result and each notification is checked against them.
 */

const JsonSchema = z.looseObject({ type: z.literal("object"), properties: z.record(z.string(), z.looseObject({})) });

const EventType = z.strictObject({
  name: z.string(),
  description: z.string(),
  delivery: z.array(z.enum(["poll", "push", "webhook"])).min(1),
  inputSchema: JsonSchema,
  payloadSchema: JsonSchema,
});
export type EventType = z.infer<typeof EventType>;

const Occurrence = z.strictObject({
  eventId: z.string().min(1),
  name: z.string(),
  timestamp: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
});
export type Occurrence = z.infer<typeof Occurrence>;

/** Fields that the base protocol of the later era adds to each result. */
const BASE = { _meta: z.looseObject({}).optional(), resultType: z.literal("complete").optional() };

const Listed = z.strictObject({ ...BASE, events: z.array(EventType), nextCursor: z.string().optional() });

const Polled = z.strictObject({
  ...BASE,
  events: z.array(Occurrence),
  cursor: z.string(),
  truncated: z.boolean(),
  hasMore: z.boolean(),
  nextPollMs: z.number().int().min(0),
});
export type Polled = z.infer<typeof Polled>;

const StreamEnd = z.strictObject(BASE);

const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
const Id = z.union([z.string(), z.number()]);
const meta = z.strictObject({ [SUBSCRIPTION_ID]: Id });
const cursor = z.string();

const NOTICES = {
  active: z.strictObject({ cursor, truncated: z.boolean(), _meta: meta }),
  event: Occurrence.extend({ cursor, _meta: meta }),
  heartbeat: z.strictObject({ cursor, _meta: meta }),
  error: z.strictObject({
    error: z.looseObject({ code: z.number().int(), message: z.string(), data: z.unknown().optional() }),
    _meta: meta,
  }),
};
type Kind = keyof typeof NOTICES;

const Notice = z.looseObject({
  _meta: meta,
  cursor: cursor.optional(),
  error: z.unknown().optional(),
  truncated: z.boolean().optional(),
});

export interface Heard {
  readonly kind: Kind;
  readonly cursor?: string;
  readonly truncated?: boolean;
  readonly event?: Occurrence;
}

export interface EventParams {
  readonly name?: string;
  readonly arguments?: object;
  readonly cursor?: string | null;
  readonly maxAgeMs?: number;
  readonly maxEvents?: number;
  readonly timeoutMs?: number;
}

export interface OpenedStream {
  /** Notifications so far, in order. */
  readonly heard: readonly Heard[];
  events(): Occurrence[];
  /** Returns the last cursor heard. */
  cursor(): string;
  /** Resolves once `fits` is true for the notifications. */
  until(fits: (heard: readonly Heard[]) => boolean): Promise<void>;
  /** Cancels the request. */
  cancel(): Promise<void>;
  /** Resolves with the result of the request, or with its error. */
  readonly ended: Promise<unknown>;
}

const NO_LIMIT_MS = 3_600_000;
const WAIT = { timeout: 40_000, interval: 10 };

export class EventsClient {
  readonly #client: Connection["client"];
  /** Notifications by the id of their stream. */
  readonly #heard = new Map<string | number, Heard[]>();
  /** Ids of the streams sent, in order. */
  readonly #sent: (string | number)[] = [];
  #asked = 0;

  constructor({ client }: Pick<Connection, "client">) {
    this.#client = client;
    client.fallbackNotificationHandler = async ({ method, params }) => Promise.resolve(this.#hear(method, params));
    const { transport } = client;
    const send = transport?.send.bind(transport);
    // Notes the id of a stream, which the library does not tell.
    if (transport && send) {
      transport.send = (message: object, ...options: []): Promise<void> => {
        if ("method" in message && message.method === "events/stream" && "id" in message)
          this.#sent.push(Id.parse(message.id));
        return Reflect.apply(send, transport, [message, ...options]) as Promise<void>;
      };
    }
  }

  #hear(method: string, given: unknown): void {
    const kind = method.replace("notifications/events/", "");
    if (!isKind(kind)) throw new Error(`a notification of another kind: ${method}`);
    const { _meta: about, cursor: at, error: _, truncated, ...event } = Notice.parse(NOTICES[kind].parse(given));
    const heard: Heard = {
      kind,
      ...(at !== undefined && { cursor: at }),
      ...(truncated !== undefined && { truncated }),
      ...(kind === "event" && { event: Occurrence.parse(event) }),
    };
    this.#of(about[SUBSCRIPTION_ID]).push(heard);
  }

  #of(id: string | number): Heard[] {
    const known = this.#heard.get(id) ?? [];
    this.#heard.set(id, known);
    return known;
  }

  async #ask<T extends z.ZodType>(method: string, params: object, result: T, signal?: AbortSignal) {
    if (method === "events/stream") this.#asked += 1;
    const request = { method, params: { ...params } };
    const options = { timeout: NO_LIMIT_MS, ...(signal && { signal }) };
    const client = this.#client;
    if (client instanceof V1Client) return result.parse(await client.request(request, z.looseObject({}), options));
    return result.parse(await client.request(request, z.looseObject({}), options));
  }

  async list(): Promise<EventType[]> {
    return (await this.#ask("events/list", {}, Listed)).events;
  }

  async poll(params: EventParams): Promise<Polled> {
    return this.#ask("events/poll", params, Polled);
  }

  /** Resolves with the error of a request. */
  async refusal(method: string, params: EventParams): Promise<{ code: number; message: string; data: unknown }> {
    const error: unknown = await this.#ask(method, params, z.unknown()).then(
      (result: unknown) => Promise.reject(new Error(`${method} was not refused: ${JSON.stringify(result)}`)),
      (reason: unknown) => reason,
    );
    return z.object({ code: z.number(), message: z.string(), data: z.unknown() }).parse(error);
  }

  /** Opens a stream; resolves when it is active. */
  async stream(params: EventParams): Promise<OpenedStream> {
    const stop = new AbortController();
    const at = this.#asked;
    const ended = this.#ask("events/stream", params, StreamEnd, stop.signal).catch((error: unknown) => error);
    await vi.waitUntil(() => this.#sent.length > at, WAIT);
    const heard = this.#of(this.#sent[at]!);
    const opened: OpenedStream = {
      heard,
      ended,
      events: () => heard.flatMap(({ event }) => event ?? []),
      cursor: () => heard.findLast((each) => each.cursor !== undefined)?.cursor ?? "",
      until: async (fits) => void (await vi.waitUntil(() => fits(heard), WAIT)),
      cancel: async () => {
        stop.abort();
        await ended;
      },
    };
    await Promise.race([
      opened.until(([first]) => first?.kind === "active"),
      ended.then((end) => Promise.reject(end instanceof Error ? end : new Error("the stream has ended"))),
    ]);
    return opened;
  }
}

function isKind(kind: string): kind is Kind {
  return Object.hasOwn(NOTICES, kind);
}

/** Checks a payload against the schema that the server lists for its event. */
export function expectPayload({ data, name }: Occurrence, listed: readonly EventType[]): void {
  const schema = listed.find((each) => each.name === name)?.payloadSchema;
  expect(schema).toBeDefined();
  z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]).parse(data);
  // Lists every field, so that a new field of a payload is not forgotten.
  expect(Object.keys(schema!.properties)).toEqual(expect.arrayContaining(Object.keys(data)));
}
