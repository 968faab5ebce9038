import { exceededText, JsonSize, MESSAGE_BOUNDS, type JsonBounds } from "../security/json-size.ts";
import { refuse } from "./guards.ts";

/** The body of a request: read once, after authentication, and counted before it is parsed. */

export type Body =
  | { readonly value: unknown; readonly bytes: number }
  | { readonly notJson: true }
  /** It is too much: the answer that says so. */
  | { readonly refusal: Response };

/** No body is undefined. */
export async function readJson({ body, headers }: Request, mostBytes: number): Promise<Body> {
  if (body === null) return { value: undefined, bytes: 0 };
  // What says that it is too long is not read at all.
  if (Number(headers.get("content-length") ?? 0) > mostBytes) return tooLong(mostBytes);
  const parts: Uint8Array[] = [];
  const size = new JsonSize();
  let bytes = 0;
  let bound: keyof JsonBounds | undefined;
  const stream: AsyncIterable<Uint8Array> = body;
  for await (const part of stream) {
    bytes += part.length;
    if (bytes > mostBytes) return tooLong(mostBytes);
    bound ??= boundPassed(size, part);
    // Read on all the same: a client that is still sending does not hear an answer.
    if (bound) parts.length = 0;
    else parts.push(part);
  }
  if (bound) return tooMuch(bound);
  if (bytes === 0) return { value: undefined, bytes };
  try {
    // `trim` removes a byte order mark too, which Codex on Windows writes.
    return { value: JSON.parse(Buffer.concat(parts).toString("utf8").trim()), bytes };
  } catch {
    return { notJson: true };
  }
}

function boundPassed(size: JsonSize, part: Uint8Array): keyof JsonBounds | undefined {
  size.take(part);
  return size.exceeded(MESSAGE_BOUNDS);
}

function tooMuch(bound: keyof JsonBounds): Body {
  const text = exceededText(bound, MESSAGE_BOUNDS);
  const isDeep = bound === "depth";
  return { refusal: isDeep ? refuse(400, "invalid_request", text) : refuse(413, "body_too_large", text) };
}

function tooLong(mostBytes: number): Body {
  const most = String(mostBytes);
  return {
    refusal: refuse(413, "body_too_large", `The body has more than ${most} bytes. Send less at once.`),
  };
}
