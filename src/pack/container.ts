import { createHash } from "node:crypto";
import { pipeline, Readable } from "node:stream";
import { createGunzip, createGzip } from "node:zlib";
import { AppError } from "../domain/error.ts";

/**
 * File of a packed session: the line `claude-agents-mcp session 1` (1 is the version), then gzip of parts. A part is its name, its
 * bytes in chunks, and their SHA-256; lengths are 32-bit and big-endian, and an empty chunk ends a part. The part `end`, which
 * counts the others, is the last. Names are no paths: the reader of a part decides where it is written.
 */

const WORDS = "claude-agents-mcp session";
const VERSION = 1;
const FIRST_LINE = `${WORDS} ${String(VERSION)}\n`;
const END = "end";
const DIGEST_BYTES = 32;
const MAX_NAME_BYTES = 4_096;
const CHUNK_BYTES = 65_536;

/** Bounds of the unpacked bytes: in all, and as a multiple of the packed ones, because gzip can hide 1,000 bytes in one. */
const MAX_BYTES = 16 * 1024 ** 3;
const [FREE_BYTES, MAX_RATIO] = [256 * 1024 ** 2, 200];
const MAX_PARTS = 50_000;

export interface Part {
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Returns the bytes of the file. Holds one chunk at a time. */
export async function* writePack(parts: AsyncIterable<Part>): AsyncGenerator<Buffer> {
  const packed: AsyncIterable<Buffer> = pipeline(
    Readable.from(framed(parts), { objectMode: false }),
    createGzip({ level: 3 }),
    () => undefined,
  );
  yield Buffer.from(FIRST_LINE);
  yield* packed;
}

async function* framed(parts: AsyncIterable<Part>): AsyncGenerator<Buffer> {
  let count = 0;
  for await (const part of parts) {
    yield* framedPart(part);
    count += 1;
  }
  yield* framedPart({ name: END, bytes: Readable.from([Buffer.from(String(count))]) });
}

async function* framedPart({ bytes, name }: Part): AsyncGenerator<Buffer> {
  yield lengthAnd(Buffer.from(name));
  const digest = createHash("sha256");
  for await (const piece of bytes) {
    for (let at = 0; at < piece.length; at += CHUNK_BYTES) {
      const chunk = piece.subarray(at, at + CHUNK_BYTES);
      digest.update(chunk);
      yield lengthAnd(chunk);
    }
  }
  yield Buffer.concat([lengthAnd(Buffer.alloc(0)), digest.digest()]);
}

function lengthAnd(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/**
 * Yields the parts of a file; each must be read before the next is asked for. Throws INVALID_ARGUMENT for a file that is no packed
 * session, of another version, cut, changed or too large. A part is whole only once the next has come, or the end.
 */
export async function* readPack(file: AsyncIterable<Buffer>): AsyncGenerator<Part> {
  const source = new ByteReader(file);
  await checkFirstLine(source);
  const size = { packed: FIRST_LINE.length };
  const inflated = pipeline(Readable.from(rest(source, size), { objectMode: false }), createGunzip(), () => undefined);
  const reader = new ByteReader(bounded(inflated, size));
  try {
    for (let count = 0; ; count += 1) {
      const name = await readName(reader);
      if (name === END) return await checkEnd(reader, count);
      if (count >= MAX_PARTS) throw damaged("it has too many parts");
      yield { name, bytes: readBytes(reader, name) };
    }
  } finally {
    inflated.destroy();
  }
}

async function checkFirstLine(source: ByteReader): Promise<void> {
  const line = (await source.take(FIRST_LINE.length, true)).toString("latin1");
  if (line === FIRST_LINE) return;
  const [, version] = /^claude-agents-mcp session (\d+)/.exec(line) ?? [];
  throw version === undefined
    ? refused("is not a packed session. Pack one with: claude-agents-mcp sessions pack ID > FILE")
    : refused(`has version ${version} of the format, and this claude-agents-mcp reads ${String(VERSION)}. Update it.`);
}

async function* rest(source: ByteReader, size: { packed: number }): AsyncGenerator<Buffer> {
  for await (const bytes of source.rest()) {
    size.packed += bytes.length;
    yield bytes;
  }
}

async function* bounded(bytes: AsyncIterable<Buffer>, size: { readonly packed: number }): AsyncGenerator<Buffer> {
  let all = 0;
  try {
    for await (const piece of bytes) {
      all += piece.length;
      if (all > Math.min(MAX_BYTES, Math.max(FREE_BYTES, size.packed * MAX_RATIO)))
        throw refused("would be too large unpacked. Nothing was unpacked.");
      yield piece;
    }
  } catch (error) {
    const isOfGzip = error instanceof Error && "code" in error && String(error.code).startsWith("Z_");
    throw isOfGzip ? damaged("its compressed data cannot be read") : error;
  }
}

async function readName(reader: ByteReader): Promise<string> {
  const length = await reader.length();
  if (length === 0 || length > MAX_NAME_BYTES) throw damaged("a name has no valid length");
  return (await reader.take(length)).toString();
}

async function* readBytes(reader: ByteReader, name: string): AsyncGenerator<Buffer> {
  const digest = createHash("sha256");
  for (;;) {
    const length = await reader.length();
    if (length > CHUNK_BYTES) throw damaged(`a chunk of ${JSON.stringify(name)} is too long`);
    if (length === 0) break;
    const chunk = await reader.take(length);
    digest.update(chunk);
    yield chunk;
  }
  if (!digest.digest().equals(await reader.take(DIGEST_BYTES))) throw damaged(`${JSON.stringify(name)} was changed`);
}

async function checkEnd(reader: ByteReader, count: number): Promise<void> {
  let text = "";
  for await (const chunk of readBytes(reader, END)) text += chunk.toString();
  if (text !== String(count) || !(await reader.isOver())) throw damaged("its end does not fit");
}

async function* piecesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  for await (const piece of source) yield piece;
}

/** Takes exact numbers of bytes from a stream of buffers. */
class ByteReader {
  readonly #source: AsyncGenerator<Buffer, void>;
  #left: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = piecesOf(source);
  }

  async length(): Promise<number> {
    return (await this.take(4)).readUInt32BE();
  }

  /** Throws INVALID_ARGUMENT at an earlier end, unless `mayEnd`. */
  async take(length: number, mayEnd = false): Promise<Buffer> {
    const pieces = [this.#left];
    let had = this.#left.length;
    while (had < length) {
      const next = await this.#source.next();
      if (next.done === true && !mayEnd) throw damaged("it is cut");
      if (next.done === true) break;
      pieces.push(next.value);
      had += next.value.length;
    }
    const all = pieces.length === 1 ? this.#left : Buffer.concat(pieces);
    this.#left = all.subarray(length);
    return all.subarray(0, length);
  }

  async isOver(): Promise<boolean> {
    return this.#left.length === 0 && (await this.#source.next()).done === true;
  }

  async *rest(): AsyncGenerator<Buffer> {
    yield this.#left;
    for (let next = await this.#source.next(); next.done !== true; next = await this.#source.next()) yield next.value;
  }
}

/** `problem` follows the word "file:". */
export function refused(problem: string): AppError {
  return new AppError("INVALID_ARGUMENT", `file: ${problem}`);
}

export function damaged(problem: string): AppError {
  return refused(`is damaged: ${problem}. Nothing was unpacked. Pack the session again.`);
}
