import { closeSync, openSync, readSync, statSync } from "node:fs";

/**
 * Checks the files of an open store: the database, its write-ahead log and the index of that log. SQLite assumes that no other
 * program changes them: otherwise it continues, reports success, and the data is lost.
 *
 * The file and the index are never opened and closed here: that would end the locks which SQLite holds on them. The index is
 * kept open as long as the connection is.
 */

export type Loss = "moved" | "log";

/** Of the index (walformat.html): the header, and its two numbers that are in the order of bytes of this machine. */
const [INDEX_BYTES, PAGE_SIZE_AT, LAST_FRAME_AT, CHECKSUM_AT, SALT_AT] = [48, 14, 16, 24, 32];
const [LOG_HEADER, FRAME_HEADER] = [32, 24];
/** Frames that are looked at each time, the last ones: older ones are soon in the file. */
const FRAMES = 1000;

export class StoreFiles {
  readonly #file: string;
  readonly #known: ReadonlyMap<string, string>;
  #index: number | undefined;

  /** Right after the database was opened and read for the first time: then all of them are there. */
  constructor(file: string) {
    this.#file = file;
    const beside = [`${file}-wal`, `${file}-shm`].filter((path) => identityOf(path) !== NONE);
    this.#known = new Map([file, ...beside].map((path) => [path, identityOf(path)]));
    this.#index = this.#known.has(`${file}-shm`) ? openSync(`${file}-shm`, "r") : undefined;
  }

  /** Whether all of them are the files that they were. Cheap enough for each transaction. */
  loss(): Loss | undefined {
    const gone = [...this.#known].find(([path, identity]) => identityOf(path) !== identity);
    if (gone === undefined) return undefined;
    return gone[0] === this.#file ? "moved" : "log";
  }

  /** Whether the log is gone by its name: then SQLite still has it, and can save what it holds. */
  get isLogDeleted(): boolean {
    return identityOf(`${this.#file}-wal`) === NONE && this.#known.has(`${this.#file}-wal`);
  }

  /** Whether the log holds what the index says that it does: it was not cut off or overwritten. */
  isLogWhole(): boolean {
    for (let look = 0; look < 3; look += 1) {
      const before = this.#readIndex();
      if (before === undefined || isLogOf(`${this.#file}-wal`, before)) return true;
      // Another connection may have restarted the log meanwhile.
      if (this.#readIndex()?.equals(before)) return false;
    }
    return true;
  }

  /** Once the connection is closed. */
  close(): void {
    if (this.#index !== undefined) closeSync(this.#index);
    this.#index = undefined;
  }

  #readIndex(): Buffer | undefined {
    if (this.#index === undefined) return undefined;
    const both = Buffer.alloc(2 * INDEX_BYTES);
    try {
      if (readSync(this.#index, both, 0, both.length, 0) < both.length) return undefined;
    } catch {
      return undefined;
    }
    const [one, other] = [both.subarray(0, INDEX_BYTES), both.subarray(INDEX_BYTES)];
    // While it is being written they differ.
    return one.equals(other) ? one : undefined;
  }
}

const NONE = "none";

function identityOf(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found ? `${String(found.dev)} ${String(found.ino)}` : NONE;
}

const isLittle = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const read16 = (buffer: Buffer, at: number) => (isLittle ? buffer.readUInt16LE(at) : buffer.readUInt16BE(at));
const read32 = (buffer: Buffer, at: number) => (isLittle ? buffer.readUInt32LE(at) : buffer.readUInt32BE(at));

function isLogOf(path: string, index: Buffer): boolean {
  const last = read32(index, LAST_FRAME_AT);
  if (last === 0) return true;
  const size = read16(index, PAGE_SIZE_AT);
  const frameBytes = FRAME_HEADER + (size === 1 ? 65_536 : size);
  const salt = index.subarray(SALT_AT, SALT_AT + 8);
  const log = openSync(path, "r");
  try {
    const header = readExactly(log, LOG_HEADER, 0);
    if (!header?.subarray(16, 24).equals(salt)) return false;
    const first = Math.max(1, last - FRAMES + 1);
    // What the checksum of the first frame goes on from: the header, or the frame before.
    const before = first === 1 ? header.subarray(24, 32) : frameSum(log, first - 1, frameBytes);
    if (before === undefined) return false;
    const frames = readExactly(log, (last - first + 1) * frameBytes, LOG_HEADER + (first - 1) * frameBytes);
    const isBig = (header.readUInt32BE(0) & 1) === 1;
    const sum = frames && sumOf(frames, { before, frameBytes, isBig, salt });
    if (!sum) return false;
    return sum[0] === read32(index, CHECKSUM_AT) && sum[1] === read32(index, CHECKSUM_AT + 4);
  } finally {
    closeSync(log);
  }
}

/** Undefined where a frame is of another log, or was changed. Changes `frames`. */
function sumOf(frames: Buffer, { before, frameBytes, isBig, salt }: FramesOf): Sum | undefined {
  let sum: Sum = [before.readUInt32BE(0), before.readUInt32BE(4)];
  const isNative = isBig !== isLittle;
  // All at once as words of this machine: this code runs every few seconds, and is never hot.
  if (!isNative) frames.swap32();
  const words = new Uint32Array(frames.buffer, frames.byteOffset, frames.length / 4);
  for (let at = 0; at < frames.length; at += frameBytes) {
    sum = checksum(words.subarray(at / 4, at / 4 + 2), sum);
    sum = checksum(words.subarray((at + FRAME_HEADER) / 4, (at + frameBytes) / 4), sum);
    const header = frames.subarray(at, at + FRAME_HEADER);
    if (!isNative) header.swap32();
    if (!header.subarray(8, 16).equals(salt)) return undefined;
    if (sum[0] !== header.readUInt32BE(16) || sum[1] !== header.readUInt32BE(20)) return undefined;
  }
  return sum;
}

interface FramesOf {
  /** What the checksum of the first goes on from. */
  readonly before: Buffer;
  readonly frameBytes: number;
  /** The order of bytes in checksums. */
  readonly isBig: boolean;
  readonly salt: Buffer;
}

function frameSum(log: number, n: number, frameBytes: number): Buffer | undefined {
  return readExactly(log, FRAME_HEADER, LOG_HEADER + (n - 1) * frameBytes)?.subarray(16, 24);
}

function readExactly(file: number, bytes: number, at: number): Buffer | undefined {
  const buffer = Buffer.alloc(bytes);
  return readSync(file, buffer, 0, bytes, at) === bytes ? buffer : undefined;
}

type Sum = readonly [number, number];

/** SQLite's, over pairs of words. */
function checksum(words: Uint32Array, [a, b]: Sum): Sum {
  let [one, two] = [a, b];
  for (let at = 0; at < words.length; at += 2) {
    one = (one + (words[at] ?? 0) + two) >>> 0;
    two = (two + (words[at + 1] ?? 0) + one) >>> 0;
  }
  return [one, two];
}
