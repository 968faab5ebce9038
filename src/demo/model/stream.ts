/** Builds a reply in both forms of the Messages API: a whole message, and server-sent events. */
import { randomUUID } from "node:crypto";

import type { Reply } from "./script.ts";

/** Content block: in a whole message, at its start event, and as deltas. */
interface Block {
  readonly whole: object;
  readonly start: object;
  readonly deltas: readonly object[];
}

/** Server-sent event. `type` is also the event name. */
export interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

const SIGNATURE = "c2NyaXB0ZWQ=";

/** Returns the message as the API sends it without `stream`. */
export function messageOf(reply: Reply, model: string): object {
  const content = blocksOf(reply).map((block) => block.whole);
  return { ...frame(model), content, stop_reason: stopReason(reply), usage: usageOf(reply) };
}

/** Returns the events of a streamed message. */
export function eventsOf(reply: Reply, model: string): StreamEvent[] {
  const usage = usageOf(reply);
  const message = { ...frame(model), content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  return [
    { type: "message_start", message },
    ...blocksOf(reply).flatMap((block, index) => [
      { type: "content_block_start", index, content_block: block.start },
      ...block.deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason: stopReason(reply), stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
}

/** Encodes an event for the wire. `JSON.stringify` escapes control characters and lone surrogates. */
export function encode(event: StreamEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** Returns an id like those of the API: `prefix` and 24 unique characters. */
export function freshId(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll("-", "").slice(0, 24)}`;
}

function frame(model: string) {
  return { id: freshId("msg"), type: "message", role: "assistant", model, stop_sequence: null };
}

function blocksOf({ thinking, text, tools = [] }: Reply): Block[] {
  return [
    ...(thinking === undefined ? [] : [thinkingBlock(thinking)]),
    ...(text === undefined ? [] : [textBlock(typeof text === "string" ? [text] : text)]),
    ...tools.map(({ name, input, id = freshId("toolu") }) => {
      const call = { type: "tool_use", id, name };
      const delta = { type: "input_json_delta", partial_json: JSON.stringify(input) };
      return { whole: { ...call, input }, start: { ...call, input: {} }, deltas: [delta] };
    }),
  ];
}

function thinkingBlock(thinking: string): Block {
  return {
    whole: { type: "thinking", thinking, signature: SIGNATURE },
    start: { type: "thinking", thinking: "", signature: "" },
    deltas: [
      { type: "thinking_delta", thinking },
      { type: "signature_delta", signature: SIGNATURE },
    ],
  };
}

function textBlock(chunks: readonly string[]): Block {
  return {
    whole: { type: "text", text: chunks.join("") },
    start: { type: "text", text: "" },
    deltas: chunks.map((text) => ({ type: "text_delta", text })),
  };
}

function stopReason({ stopReason: given, tools = [] }: Reply): string {
  return given ?? (tools.length > 0 ? "tool_use" : "end_turn");
}

/** Fixed numbers, so that tests can predict costs. */
function usageOf({ usage }: Reply) {
  return {
    input_tokens: usage?.input_tokens ?? 100,
    output_tokens: usage?.output_tokens ?? 20,
    cache_read_input_tokens: usage?.cache_read_input_tokens ?? 0,
    cache_creation_input_tokens: usage?.cache_creation_input_tokens ?? 0,
  };
}
