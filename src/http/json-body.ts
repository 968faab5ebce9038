import { exceededText, JsonSize, MESSAGE_BOUNDS, type JsonBounds } from "../security/json-size.ts";
import { refuse } from "./request-guards.ts";

/** Reads the body of a request once, after authentication. Checks the size before parsing. */

export type Body =
  | { readonly value: unknown; readonly bytes: number }
  | { readonly notJson: true }
  /** `refusal` is the response to a body that exceeds a limit. */
  | { readonly refusal: Response };

/** `value` is `undefined` for a request without a body. */
export async function readJson({ body, headers }: Request, mostBytes: number): Promise<Body> {
  if (body === null) return { value: undefined, bytes: 0 };
  // Refuses by `content-length`, without reading the body.
  if (Number(headers.get("content-length") ?? 0) > mostBytes) return refuseLength(mostBytes);
  const parts: Uint8Array[] = [];
  const size = new JsonSize();
  let bytes = 0;
  let bound: keyof JsonBounds | undefined;
  const stream: AsyncIterable<Uint8Array> = body;
  for await (const part of stream) {
    bytes += part.length;
    if (bytes > mostBytes) return refuseLength(mostBytes);
    bound ??= exceededBound(size, part);
    // Continues to read, because a client that is still sending does not read the response.
    if (bound) parts.length = 0;
    else parts.push(part);
  }
  if (bound) return refuseBound(bound);
  if (bytes === 0) return { value: undefined, bytes };
  try {
    // `trim` also removes a byte order mark, which Codex on Windows writes.
    return { value: JSON.parse(Buffer.concat(parts).toString("utf8").trim()), bytes };
  } catch {
    return { notJson: true };
  }
}

function exceededBound(size: JsonSize, part: Uint8Array): keyof JsonBounds | undefined {
  size.take(part);
  return size.exceeded(MESSAGE_BOUNDS);
}

function refuseBound(bound: keyof JsonBounds): Body {
  const text = exceededText(bound, MESSAGE_BOUNDS);
  const isDeep = bound === "depth";
  return { refusal: isDeep ? refuse(400, "invalid_request", text) : refuse(413, "body_too_large", text) };
}

function refuseLength(mostBytes: number): Body {
  const most = String(mostBytes);
  return {
    refusal: refuse(413, "body_too_large", `The body has more than ${most} bytes. Send less at once.`),
  };
}
