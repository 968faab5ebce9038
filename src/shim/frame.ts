import { isUtf8 } from "node:buffer";
import type { Writable } from "node:stream";

/**
 * Frames between a shim and its owner: u32 header length, u32 body length (both big-endian), header as a JSON object in UTF-8
 * with the kind of message in `t`, body as raw bytes.
 */

/**
 * Maximum size of a header, bytes. Large, because a header may hold the arguments of Claude Code and the whole environment of a
 * client.
 */
export const MAX_HEADER = 8_388_608;
export const MAX_BODY = 134_217_728;
const LENGTHS = 8;

export type Header = Readonly<Record<string, unknown>> & { readonly t: string };

export interface Frame {
  readonly header: Header;
  /** Empty for a frame without a body. */
  readonly body: Buffer;
}

/** Thrown if the other end does not speak this protocol. The connection is then unusable. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** Returns the bytes of a frame before its body. Throws `ProtocolError` for a header or body above its limit. */
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

/** Maximum size of a body that is copied, bytes. A copy is cheaper than another buffer to write. */
const MAX_COPIED = 16_384;

/**
 * Writes a frame, without copying a large body. Calls `onFlushed` after the system has taken the frame, or with an error.
 * Returns false above the high-water mark.
 */
export function writeFrame(
  stream: Writable,
  header: { readonly t: string },
  body?: Buffer,
  onFlushed?: (error?: Error | null) => void,
): boolean {
  if (body === undefined || body.length <= MAX_COPIED) return stream.write(encodeFrame(header, body), onFlushed);
  // Before `cork`, because `frameHead` may throw: a stream left corked would hold back the frames of all processes.
  const head = frameHead(header, body.length);
  stream.cork();
  stream.write(head);
  const hasRoom = stream.write(body, onFlushed);
  stream.uncork();
  return hasRoom;
}

/** Splits the input of a connection into frames. Holds one incomplete frame at most. */
export class FrameReader {
  /** Maximum size of a body, bytes. A longer body is refused once its length is read, before any of its content. */
  maxBody = MAX_BODY;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Bytes up to the end of the frame, as far as known. */
  #needed = LENGTHS;
  #fault: ProtocolError | undefined;

  /** Returns the frames completed by `chunk`. Throws `ProtocolError` for anything else, and again for every later chunk. */
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
      this.#needed = frameLength(rest, this.maxBody);
      if (rest.length < this.#needed) break;
      frames.push(decodeFrame(rest.subarray(0, this.#needed)));
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

/** Returns the length of the first frame, or `LENGTHS` if its lengths are incomplete. */
function frameLength(bytes: Buffer, maxBody: number): number {
  if (bytes.length < LENGTHS) return LENGTHS;
  const [header, body] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)];
  checkLengths(header, body, maxBody);
  return LENGTHS + header + body;
}

/** True if `bytes` begin with a whole frame without a body. */
export function beginsWithFrame(bytes: Buffer): boolean {
  return bytes.length >= LENGTHS && bytes.readUInt32BE(4) === 0 && bytes.length >= LENGTHS + bytes.readUInt32BE(0);
}

function checkLengths(header: number, body: number, maxBody = MAX_BODY): void {
  if (header > MAX_HEADER) throw new ProtocolError(`a header has ${String(header)} bytes, above ${String(MAX_HEADER)}`);
  if (body > maxBody) throw new ProtocolError(`a body has ${String(body)} bytes, above ${String(maxBody)}`);
}

function decodeFrame(bytes: Buffer): Frame {
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
