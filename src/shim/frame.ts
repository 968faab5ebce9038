import { isUtf8 } from "node:buffer";
import type { Writable } from "node:stream";

/**
 * The frames between a shim and its owner: u32 header length, u32 body length (both big-endian), the header as a JSON object in
 * UTF-8 with the kind of the message in `t`, and the body as raw bytes.
 */

/** Bytes: the whole environment of a client, which is in its hello to the daemon, and the arguments of Claude Code. */
export const MAX_HEADER = 8_388_608;
export const MAX_BODY = 134_217_728;
const LENGTHS = 8;

export type Header = Readonly<Record<string, unknown>> & { readonly t: string };

export interface Frame {
  readonly header: Header;
  /** Empty when the frame has none. */
  readonly body: Buffer;
}

/** The other end does not speak this protocol. The connection cannot be used any more. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** The part of a frame before its body. Throws ProtocolError for a header or body above its limit. */
export function frameHead(header: { readonly t: string }, bodyLength: number): Buffer {
  const text = JSON.stringify(header);
  const length = Buffer.byteLength(text);
  checkLengths(length, bodyLength);
  const head = Buffer.allocUnsafe(LENGTHS + length);
  head.writeUInt32BE(length, 0);
  head.writeUInt32BE(bodyLength, 4);
  head.write(text, LENGTHS);
  return head;
}

export function encodeFrame(header: { readonly t: string }, body?: Buffer): Buffer {
  const head = frameHead(header, body?.length ?? 0);
  return body === undefined || body.length === 0 ? head : Buffer.concat([head, body]);
}

/** Bytes of a body up to which a copy is cheaper than a buffer more to write. */
const SMALL = 16_384;

/** Writes a frame, a large body without a copy. `onFlushed` is called when the system has taken it, or with an error. Returns false above the high-water mark. */
export function writeFrame(
  stream: Writable,
  header: { readonly t: string },
  body?: Buffer,
  onFlushed?: (error?: Error | null) => void,
): boolean {
  if (body === undefined || body.length <= SMALL) return stream.write(encodeFrame(header, body), onFlushed);
  // Throws: a stream that stays corked sends nothing of any process.
  const head = frameHead(header, body.length);
  stream.cork();
  stream.write(head);
  const hasRoom = stream.write(body, onFlushed);
  stream.uncork();
  return hasRoom;
}

/** Splits what a connection delivers into frames. Holds one incomplete frame at most. */
export class FrameReader {
  /** Bytes: a frame with a longer body is refused by its first eight bytes. */
  maxBody = MAX_BODY;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Bytes up to the end of the frame, as far as it is known. */
  #needed = LENGTHS;
  #fault: ProtocolError | undefined;

  /** The frames that are complete with this chunk. Throws ProtocolError, then and for every later chunk, for anything else. */
  push(chunk: Buffer): Frame[] {
    if (this.#fault) throw this.#fault;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length < this.#needed) return [];
    try {
      return this.#read();
    } catch (error) {
      this.#chunks = [];
      if (error instanceof ProtocolError) this.#fault = error;
      throw error;
    }
  }

  #read(): Frame[] {
    const frames: Frame[] = [];
    let rest = this.#joined();
    for (;;) {
      this.#needed = neededOf(rest, this.maxBody);
      if (rest.length < this.#needed) break;
      frames.push(frameOf(rest.subarray(0, this.#needed)));
      rest = rest.subarray(this.#needed);
    }
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#length = rest.length;
    return frames;
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    return first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#length);
  }
}

/** The length of the frame that begins here, or of its lengths where these are incomplete. */
function neededOf(bytes: Buffer, maxBody: number): number {
  if (bytes.length < LENGTHS) return LENGTHS;
  const [header, body] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)];
  checkLengths(header, body, maxBody);
  return LENGTHS + header + body;
}

/** Tells whether the bytes begin with a whole frame that has no body. */
export function beginsWithFrame(bytes: Buffer): boolean {
  return bytes.length >= LENGTHS && bytes.readUInt32BE(4) === 0 && bytes.length >= LENGTHS + bytes.readUInt32BE(0);
}

function checkLengths(header: number, body: number, maxBody = MAX_BODY): void {
  if (header > MAX_HEADER) throw new ProtocolError(`a header has ${String(header)} bytes, above ${String(MAX_HEADER)}`);
  if (body > maxBody) throw new ProtocolError(`a body has ${String(body)} bytes, above ${String(maxBody)}`);
}

function frameOf(bytes: Buffer): Frame {
  const end = LENGTHS + bytes.readUInt32BE(0);
  return { header: headerOf(bytes.subarray(LENGTHS, end)), body: bytes.subarray(end) };
}

function headerOf(bytes: Buffer): Header {
  if (!isUtf8(bytes)) throw new ProtocolError("a header is not UTF-8");
  const value = parsed(bytes.toString("utf8"));
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ProtocolError("a header is not a JSON object");
  }
  const { t, ...fields }: Readonly<Record<string, unknown>> = { ...value };
  if (typeof t !== "string") throw new ProtocolError("a header has no `t`");
  return { ...fields, t };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ProtocolError("a header is not JSON");
  }
}
