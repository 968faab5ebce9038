import { join } from "node:path";
import { exists, fileAccess } from "../../security/files/limited.ts";
import { close, openPlainFile } from "../../security/files/plain-file.ts";
import type { Repository } from "../../security/git/repository.ts";

/** Finds paths that git's index marks as not to be looked at: `assume-unchanged` and, without a sparse checkout, `skip-worktree`. */

/** Maximum bytes of an index that is read. */
const MAX_BYTES = 64 * 1024 * 1024;

const [ASSUME_UNCHANGED, EXTENDED, SKIP_WORKTREE] = [0x8000, 0x4000, 0x4000];
const HEADER_BYTES = 12;
/** Bytes of times, inode, mode, owner and size before the id of an entry. */
const STAT_BYTES = 40;

/** Returns paths from the root of the work tree. `undefined` if the index cannot be read. */
export async function markedPaths({ gitDir }: Repository): Promise<string[] | undefined> {
  const file = join(gitDir, "index");
  // A repository without commits need not have one.
  if (!(await exists(file))) return [];
  const [index, isSparse] = await Promise.all([
    readIndex(file).catch(() => undefined),
    exists(join(gitDir, "info", "sparse-checkout")),
  ]);
  if (index === undefined) return undefined;
  // A reader of 20-byte ids fails on an index with longer ones.
  return parseIndex(index, { idBytes: 20, isSparse }) ?? parseIndex(index, { idBytes: 32, isSparse });
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
}

/** Parses versions 2 to 4. `undefined` if the bytes are laid out in another way, or if another file has the rest. */
function parseIndex(index: Buffer, { idBytes, isSparse }: Layout): string[] | undefined {
  if (index.length < HEADER_BYTES || index.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  const marked: string[] = [];
  let previous = index.subarray(0, 0);
  let at = HEADER_BYTES;
  for (let entry = 0; entry < count; entry += 1) {
    const flagsAt = at + STAT_BYTES + idBytes;
    if (flagsAt + 4 > index.length) return undefined;
    const flags = index.readUInt16BE(flagsAt);
    const isExtended = (flags & EXTENDED) !== 0;
    const isSkipped = isExtended && !isSparse && (index.readUInt16BE(flagsAt + 2) & SKIP_WORKTREE) !== 0;
    const nameAt = flagsAt + (isExtended ? 4 : 2);
    const named = version === 4 ? shortName(index, nameAt, previous) : wholeName(index, nameAt, flags & MAX_LENGTH);
    if (!named) return undefined;
    if (isSkipped || (flags & ASSUME_UNCHANGED) !== 0) marked.push(named.name.toString());
    previous = named.name;
    // Entries of earlier versions are padded to a multiple of eight, with at least one NUL.
    at = version === 4 ? named.end + 1 : at + Math.floor((named.end - at + 8) / 8) * 8;
  }
  return index.toString("latin1", at, at + 4) === "link" ? undefined : marked;
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
