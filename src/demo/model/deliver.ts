/** Sends a reply: waits, gates, faults, and the message in the requested form. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { GARBAGE, hang, headOf, sendError } from "./faults.ts";
import type { Gates } from "./conversations.ts";
import { planHeaders } from "./plan.ts";
import type { FaultKind, Reply } from "./script.ts";
import { encode, eventsOf, freshId, messageOf, type StreamEvent } from "./stream.ts";

/** Everything for one answer. `signal` aborts when the client leaves or the server closes. */
export interface Delivery {
  readonly reply: Reply;
  readonly fault: FaultKind | undefined;
  readonly model: string;
  readonly stream: boolean;
  readonly gates: Gates;
  readonly signal: AbortSignal;
}

/** Resolves when the response is written. Rejects when `signal` aborts. */
export async function deliver(response: ServerResponse, delivery: Delivery): Promise<void> {
  const { reply, fault, gates, signal } = delivery;
  if (reply.gateBefore !== undefined) await gates.pass(reply.gateBefore, signal);
  if (reply.delayMs !== undefined) await sleep(reply.delayMs, undefined, { signal });
  if (fault === "error" && reply.error) {
    sendError(response, reply.error);
    return;
  }
  if (fault === "hang" && reply.hang === "before-headers") await hang(signal);
  await (delivery.stream ? streamed(response, delivery) : whole(response, delivery));
}

async function streamed(response: ServerResponse, { reply, fault, model, gates, signal }: Delivery): Promise<void> {
  const [start, ...events] = fault ? headOf(eventsOf(reply, model)) : eventsOf(reply, model);
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "request-id": freshId("req"),
    ...planHeaders(reply.plan, "allowed"),
  });
  if (start) await write(response, encode(start), signal);
  if (reply.gate !== undefined) await gates.pass(reply.gate, signal);
  await writeEvents(response, events, { chunkDelayMs: reply.chunkDelayMs ?? 0, signal });
  if (fault === "hang") await hang(signal);
  if (fault === "malformed") await write(response, GARBAGE, signal);
  if (fault === "cut") await cut(response);
  else response.end();
}

async function writeEvents(
  response: ServerResponse,
  events: readonly StreamEvent[],
  { chunkDelayMs, signal }: { readonly chunkDelayMs: number; readonly signal: AbortSignal },
): Promise<void> {
  let deltas = 0;
  for (const event of events) {
    const wait = event.type === "content_block_delta" && deltas++ > 0 ? chunkDelayMs : 0;
    if (wait > 0) await sleep(wait, undefined, { signal });
    await write(response, encode(event), signal);
  }
}

async function whole(response: ServerResponse, { reply, fault, model, gates, signal }: Delivery): Promise<void> {
  const body = JSON.stringify(messageOf(reply, model));
  const headers = { "content-type": "application/json", "request-id": freshId("req") };
  response.writeHead(200, { ...headers, ...planHeaders(reply.plan, "allowed") });
  response.flushHeaders();
  if (reply.gate !== undefined) await gates.pass(reply.gate, signal);
  if (!fault) {
    response.end(body);
    return;
  }
  await write(response, body.slice(0, body.length / 2), signal);
  if (fault === "hang") await hang(signal);
  if (fault === "cut") await cut(response);
  else response.end();
}

async function write(response: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!response.write(text)) await once(response, "drain", { signal });
}

/** Breaks the connection once all written data has left. */
async function cut(response: ServerResponse): Promise<void> {
  await new Promise((resolve) => {
    response.write("", resolve);
  });
  response.destroy();
}
