import { createHash, type Hash } from "node:crypto";
import { AppError } from "../../domain/error.ts";
import type {
  ConversationFile,
  ConversationPlace,
  Conversations,
  Lease,
  StoredFile,
  StoredTranscripts,
  TranscriptManifest,
  WrittenFile,
} from "../ports.ts";

/** Copies single files of a conversation between a configuration folder and the store, in chunks and with digests. */

/** Bytes of one statement of the store. */
const CHUNK_BYTES = 262_144;
/** Bytes at the end of a transcript in which the last message is searched. */
const TAIL_BYTES = 1_048_576;
const NEWLINE = 10;

/** A conversation in the configuration folder of this node. */
export interface LocalConversation {
  readonly conversations: Conversations;
  readonly place: ConversationPlace;
}

/** Returns the name of a stored file in a configuration folder. A name has no colon. */
export function nameOf({ path }: Pick<StoredFile, "path">): string {
  return path.split(":", 1)[0] ?? path;
}

/** Returns the path for a file that no longer begins as stored: the former bytes stay, because the sealed manifest names them. */
function nextPath({ path }: StoredFile): string {
  const [name = path, version = "1"] = path.split(":");
  return `${name}:${String(Number(version) + 1)}`;
}

/** Stores what a file has more than `before`; all of a file that is new, or that no longer begins as stored. */
export async function storeFile(
  local: LocalConversation,
  { lease, store }: { readonly lease: Lease; readonly store: StoredTranscripts },
  { name, size }: Pick<ConversationFile, "name" | "size">,
  before: StoredFile | undefined,
): Promise<StoredFile> {
  const { hash, offset, path } = await findPrefix(local, { name, size }, before);
  let at = offset;
  const { conversations, place } = local;
  for await (const chunk of inChunks(conversations.read(place, name, { offset, length: size - offset }))) {
    hash.update(chunk);
    await store.write(lease, path, at, chunk);
    at += chunk.length;
  }
  if (at !== size) throw new Error(`${name} became shorter while it was read`);
  return { path, size, digest: hash.digest("hex") };
}

interface Prefix {
  readonly hash: Hash;
  /** bytes */
  readonly offset: number;
  readonly path: string;
}

async function findPrefix(
  { conversations, place }: LocalConversation,
  { name, size }: Pick<ConversationFile, "name" | "size">,
  before: StoredFile | undefined,
): Promise<Prefix> {
  if (!before) return { hash: createHash("sha256"), offset: 0, path: name };
  const fresh = () => ({ hash: createHash("sha256"), offset: 0, path: nextPath(before) });
  if (before.size > size) return fresh();
  const hash = createHash("sha256");
  for await (const part of conversations.read(place, name, { length: before.size })) hash.update(part);
  const isKept = hash.copy().digest("hex") === before.digest;
  return isKept ? { hash, offset: before.size, path: before.path } : fresh();
}

async function* inChunks(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let length = 0;
  for await (const part of parts) {
    held.push(part);
    length += part.length;
    if (length < CHUNK_BYTES) continue;
    yield Buffer.concat(held);
    [held, length] = [[], 0];
  }
  if (length > 0) yield Buffer.concat(held);
}

/** Returns the files of a manifest, for `Conversations.write`. Their parts throw if a file is not stored as the manifest says. */
export function storedFiles(
  store: Pick<StoredTranscripts, "read">,
  sessionId: string,
  { files }: TranscriptManifest,
): WrittenFile[] {
  return files.map((file) => ({ name: nameOf(file), parts: storedParts(store, sessionId, file) }));
}

async function* storedParts(
  store: Pick<StoredTranscripts, "read">,
  sessionId: string,
  { digest, path, size }: StoredFile,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let at = 0;
  while (at < size) {
    const part = await store.read(sessionId, path, at, Math.min(CHUNK_BYTES, size - at));
    if (part.length === 0) break;
    hash.update(part);
    at += part.length;
    yield part;
  }
  if (at === size && hash.digest("hex") === digest) return;
  const problem = `The stored copy of the conversation is damaged (${nameOf({ path })}), so it is not resumed.`;
  throw new AppError("INTERNAL", `${problem} Continue at the node that ran it last, or start a new session.`, {
    sessionId,
  });
}

/** Returns the file up to its last whole line, because Claude Code may be writing the next. */
export async function withoutPartialLine(
  { conversations, place }: LocalConversation,
  { name, size, ...rest }: ConversationFile,
): Promise<ConversationFile> {
  for (let end = size; end > 0;) {
    const offset = Math.max(0, end - CHUNK_BYTES);
    const tail = await readAll(conversations.read(place, name, { offset, length: end - offset }));
    const last = tail.lastIndexOf(NEWLINE);
    if (last >= 0) return { name, size: offset + last + 1, ...rest };
    end = offset;
  }
  return { name, size: 0, ...rest };
}

/** True if the end of the file has `text`. */
export async function endsWithText(
  { conversations, place }: LocalConversation,
  { name, size }: ConversationFile,
  text: string,
): Promise<boolean> {
  const tail = await readAll(conversations.read(place, name, { offset: Math.max(0, size - TAIL_BYTES) }));
  return tail.includes(text);
}

async function readAll(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(part);
  return Buffer.concat(all);
}
