import { createHash, type Hash } from "node:crypto";
import { join } from "node:path";
import { exists, fileAccess } from "../../security/files/limited.ts";
import { close, openPlainFile } from "../../security/files/plain-file.ts";
import type { Repository } from "../../security/git/repository.ts";

/** Reads what git's index claims about files: which ones git does not look at, and which ones it has taken as unchanged. */

/** Maximum bytes of an index that is read. */
const MAX_BYTES = 64 * 1024 * 1024;

const [ASSUME_UNCHANGED, EXTENDED, SKIP_WORKTREE] = [0x8000, 0x4000, 0x4000];
const HEADER_BYTES = 12;
/** Bytes of times, inode, mode, owner and size before the id of an entry, and place of the mode among them. */
const [STAT_BYTES, MODE_AT, PLAIN_FILE] = [40, 24, 0o10];

/** Paths are from the root of the work tree. */
export interface IndexClaims {
  /** Paths marked as not to be looked at: `assume-unchanged` and, without a sparse checkout, `skip-worktree`. */
  readonly marked: readonly string[];
  /** Digest of the paths that a sparse checkout leaves out; "" if there are none. */
  readonly leftOut: string;
  /** Ids of plain files by path, whose entries git has written since the time asked for, as the change times in them tell. */
  readonly written: ReadonlyMap<string, string>;
}

/** `since`: time in ms; absent for no `written`. Resolves to `undefined` if the index cannot be read. */
export async function readClaims({ gitDir }: Repository, since = Infinity): Promise<IndexClaims | undefined> {
  const file = join(gitDir, "index");
  // A repository without commits need not have one.
  if (!(await exists(file))) return { marked: [], leftOut: "", written: new Map() };
  const [index, isSparse] = await Promise.all([
    readIndex(file).catch(() => undefined),
    exists(join(gitDir, "info", "sparse-checkout")),
  ]);
  if (index === undefined) return undefined;
  // A reader of 20-byte ids fails on an index with longer ones.
  const reading = { isSparse, since };
  return parseIndex(index, { idBytes: 20, ...reading }) ?? parseIndex(index, { idBytes: 32, ...reading });
}

async function readIndex(file: string): Promise<Buffer | undefined> {
  const handle = await openPlainFile(file);
  try {
    return await fileAccess.run(file, async () => {
      const { size } = await handle.stat();
      return size <= MAX_BYTES ? handle.readFile() : undefined;
    });
  } finally {
    await close(file, handle);
  }
}

interface Layout {
  readonly idBytes: number;
  readonly isSparse: boolean;
  readonly since: number;
}

/** Parses versions 2 to 4. `undefined` if the bytes are laid out in another way, or if another file has the rest. */
function parseIndex(index: Buffer, { idBytes, isSparse, since }: Layout): IndexClaims | undefined {
  if (index.length < HEADER_BYTES || index.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  const claims = new Claims(isSparse);
  let previous = index.subarray(0, 0);
  let at = HEADER_BYTES;
  for (let entry = 0; entry < count; entry += 1) {
    const flagsAt = at + STAT_BYTES + idBytes;
    if (flagsAt + 4 > index.length) return undefined;
    const flags = index.readUInt16BE(flagsAt);
    const isExtended = (flags & EXTENDED) !== 0;
    const nameAt = flagsAt + (isExtended ? 4 : 2);
    const named = version === 4 ? shortName(index, nameAt, previous) : wholeName(index, nameAt, flags & MAX_LENGTH);
    if (!named) return undefined;
    if (isExtended && (index.readUInt16BE(flagsAt + 2) & SKIP_WORKTREE) !== 0) claims.skip(named.name);
    else if ((flags & ASSUME_UNCHANGED) !== 0) claims.mark(named.name);
    else if (changedAt(index, at) >= since && index.readUInt32BE(at + MODE_AT) >> 12 === PLAIN_FILE)
      claims.written.set(named.name.toString(), index.toString("hex", at + STAT_BYTES, flagsAt));
    previous = named.name;
    // Entries of earlier versions are padded to a multiple of eight, with at least one NUL.
    at = version === 4 ? named.end + 1 : at + Math.floor((named.end - at + 8) / 8) * 8;
  }
  return index.toString("latin1", at, at + 4) === "link" ? undefined : claims.done();
}

/** Collects claims of entries. */
class Claims {
  readonly written = new Map<string, string>();
  readonly #marked: string[] = [];
  readonly #isSparse: boolean;
  #leftOut: Hash | undefined;

  constructor(isSparse: boolean) {
    this.#isSparse = isSparse;
  }

  mark(name: Buffer): void {
    this.#marked.push(name.toString());
  }

  skip(name: Buffer): void {
    if (!this.#isSparse) return this.mark(name);
    this.#leftOut ??= createHash("sha256");
    this.#leftOut.update(name).update("\0");
  }

  done(): IndexClaims {
    const leftOut = this.#leftOut?.digest("base64url").slice(0, 16) ?? "";
    return { marked: this.#marked, leftOut, written: this.written };
  }
}

/** Time of change of the file when git wrote the entry, ms. No program sets this time of a file. */
function changedAt(index: Buffer, at: number): number {
  return index.readUInt32BE(at) * 1_000 + index.readUInt32BE(at + 4) / 1_000_000;
}

/** Length of a name, or of a longer one. */
const MAX_LENGTH = 0xfff;

interface Named {
  readonly name: Buffer;
  readonly end: number;
}

function wholeName(index: Buffer, start: number, length: number): Named | undefined {
  const end = index.indexOf(0, start);
  if (end < 0 || (length < MAX_LENGTH && end - start !== length)) return undefined;
  return { name: index.subarray(start, end), end };
}

/** Reads a name that begins as the previous one. */
function shortName(index: Buffer, start: number, previous: Buffer): Named | undefined {
  const strip = readVarint(index, start);
  const end = index.indexOf(0, strip.end);
  if (end < 0 || strip.value > previous.length) return undefined;
  const kept = previous.subarray(0, previous.length - strip.value);
  return { name: Buffer.concat([kept, index.subarray(strip.end, end)]), end };
}

/** Decodes git's variable-length numbers, as for offsets in packs. */
function readVarint(bytes: Buffer, start: number): { value: number; end: number } {
  let end = start;
  let byte = bytes[end++] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0 && end < bytes.length) {
    byte = bytes[end++] ?? 0;
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, end };
}
