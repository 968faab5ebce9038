import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { parseJson } from "../domain/json.ts";
import { SessionEvent, type StoredEvent } from "../domain/event.ts";
import { SessionOptions } from "../domain/options.ts";
import { SessionState } from "../domain/session.ts";
import { readLines } from "../claude/folder/transcript.ts";
import { faultIn, EVENT, OPTIONS, STATE, type Format } from "../store/format.ts";
import { damaged, readPack, refused } from "./container.ts";
import { CONVERSATION, LogLine, Manifest, MAX_MANIFEST_BYTES, PARTS } from "./manifest.ts";

/** Reads the parts of a packed session into a temporary folder, and checks all of them before anything else is done. */

/** Bounds of single parts, bytes; the container bounds the sum. */
const MAX_LOG_BYTES = 4 * 1024 ** 3;
const MAX_FILE_BYTES = 4 * 1024 ** 3;
const MAX_BUNDLE_BYTES = 12 * 1024 ** 3;

export interface UnpackedParts {
  readonly manifest: Manifest;
  readonly options: SessionOptions;
  readonly state: SessionState;
  /** File of the log, checked. */
  readonly log: string;
  /** Temporary file of each file of the conversation, by portable name. */
  readonly conversation: ReadonlyMap<string, string>;
  readonly bundle: string | undefined;
}

/** Throws INVALID_ARGUMENT for a file that is no whole packed session. */
export async function unpackParts(file: AsyncIterable<Buffer>, scratch: string): Promise<UnpackedParts> {
  const places = new Map<string, string>();
  let manifest: Manifest | undefined;
  for await (const { bytes, name } of readPack(file)) {
    if (places.has(name)) throw damaged(`${JSON.stringify(name)} comes twice`);
    const limit = limitOf(name);
    if (limit === undefined || (name === PARTS.manifest) !== (places.size === 0))
      throw damaged(`${JSON.stringify(name)} does not belong there`);
    // Names of parts are never names of files.
    const place = join(scratch, createHash("sha256").update(name).digest("hex"));
    places.set(name, place);
    const text = await keep(bytes, place, { limit, name });
    if (text !== undefined) manifest = parseManifest(text);
  }
  const log = places.get(PARTS.log);
  if (!manifest || log === undefined) throw damaged("its description or its log is missing");
  const bundle = places.get(PARTS.work);
  if ((bundle === undefined) !== (manifest.work === undefined)) throw damaged("its repository is missing");
  const options = parseStored(OPTIONS, { schema: SessionOptions, text: manifest.options, what: "options" });
  const state = parseStored(STATE, { schema: SessionState, text: manifest.state, what: "state" });
  if (state.turn) throw damaged("a turn was running");
  await checkLog(log, state.lastEventId);
  const conversation = [...places].filter(([name]) => name.startsWith(CONVERSATION));
  return {
    manifest,
    options,
    state,
    log,
    conversation: new Map(conversation.map(([name, place]) => [name.slice(CONVERSATION.length), place])),
    bundle,
  };
}

function limitOf(name: string): number | undefined {
  if (name === PARTS.manifest) return MAX_MANIFEST_BYTES;
  if (name === PARTS.log) return MAX_LOG_BYTES;
  if (name === PARTS.work) return MAX_BUNDLE_BYTES;
  return name.startsWith(CONVERSATION) ? MAX_FILE_BYTES : undefined;
}

interface Kept {
  readonly limit: number;
  readonly name: string;
}

/** Writes a part into a file. Returns the text of the manifest. */
async function keep(
  bytes: AsyncIterable<Uint8Array>,
  place: string,
  { limit, name }: Kept,
): Promise<string | undefined> {
  const handle = await open(place, "wx", 0o600);
  const text: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of bytes) {
      size += chunk.length;
      if (size > limit) throw refused(`has too large a part ${JSON.stringify(name)}. Nothing was unpacked.`);
      if (name === PARTS.manifest) text.push(chunk);
      await handle.writeFile(chunk);
    }
  } finally {
    await handle.close();
  }
  return name === PARTS.manifest ? Buffer.concat(text).toString() : undefined;
}

function parseManifest(text: string): Manifest {
  const parsed = Manifest.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw damaged(`its description has no valid ${z.core.toDotPath(parsed.error.issues[0]?.path ?? [])}`);
}

interface StoredText {
  readonly schema: z.ZodType;
  readonly text: string;
  readonly what: string;
}

/** Reads a stored form strictly by shape: what a newer server has added is kept. */
function parseStored<T>(format: Format<T>, { schema, text, what }: StoredText): T {
  let value: T;
  try {
    value = format.read(text);
  } catch (error) {
    throw refused(`cannot be read: its ${what}: ${error instanceof Error ? error.message : String(error)}.`);
  }
  if (faultIn(schema, value) !== undefined) throw damaged(`its ${what} are not valid`);
  return value;
}

/** Reads the events of a checked or unchecked log. Throws INVALID_ARGUMENT for a gap or an invalid event. */
export async function* readLog(file: string): AsyncGenerator<StoredEvent> {
  let expected = 1;
  for await (const line of readLines(file)) {
    const parsed = LogLine.safeParse(parseJson(line));
    if (!parsed.success || parsed.data.id !== expected)
      throw damaged(`event ${String(expected)} of its log is missing`);
    const { at, event, id } = parsed.data;
    yield { id, at, ...parseStored(EVENT, { schema: SessionEvent, text: event, what: `event ${String(id)}` }) };
    expected += 1;
  }
}

async function checkLog(file: string, lastEventId: number): Promise<void> {
  let last = 0;
  for await (const { id } of readLog(file)) last = id;
  if (last !== lastEventId) throw damaged("its log ends early");
}
