import { EventSourceParserStream } from "eventsource-parser/stream";
import type { LiveEvents } from "../../../src/console/wire.ts";
import { send, type Query } from "./api.ts";

/** Live event: `kind` with its `data`. */
export type LiveEvent = {
  [K in keyof LiveEvents]: { readonly kind: K; readonly data: LiveEvents[K] };
}[keyof LiveEvents];

/** Silence after which the server counts as gone, ms. The server sends a comment at least every 15 s. */
const SILENCE_MS = 40_000;

/** Yields live events until the stream breaks off. Throws `ApiProblem` if the request is refused. */
export async function* liveEvents(query: Query, signal: AbortSignal): AsyncGenerator<LiveEvent> {
  const quiet = new AbortController();
  const { body } = await send("live", { query, signal: AbortSignal.any([signal, quiet.signal]) });
  if (!body) return;
  let timer = setTimeout(() => quiet.abort(), SILENCE_MS);
  const heard = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      clearTimeout(timer);
      timer = setTimeout(() => quiet.abort(), SILENCE_MS);
      controller.enqueue(chunk);
    },
  });
  const events = body
    .pipeThrough(heard)
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // Asserts `LiveEvent`: kinds of a newer server are possible, and the page ignores them.
      yield { kind: value.event, data: JSON.parse(value.data) } as LiveEvent;
    }
  } finally {
    clearTimeout(timer);
    quiet.abort();
  }
}
