import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPackage } from "../config/version.ts";
import { AppError } from "../domain/error.ts";
import type { StoredEvent } from "../domain/event.ts";
import type { SessionOptions } from "../domain/options.ts";
import { hasSpoken, optionsOf, type SessionState } from "../domain/session.ts";
import { requireReadable, type ConversationListing, type FileRange, type SessionRecord } from "../engine/ports.ts";
import type { GitContext } from "../security/git/read-only-git.ts";
import { EVENT, OPTIONS, STATE } from "../store/format.ts";
import { writePack, type Part } from "./container.ts";
import { CONVERSATION, Manifest, PARTS } from "./manifest.ts";
import { packWork, type PackedWork } from "./pack-work.ts";

/** Packs a session into a file: log, conversation, options, and the work in progress of its folder. */

export interface PackSource {
  readonly record: SessionRecord;
  /** Returns events from `from` on, at most `limit`. */
  readonly readLog: (from: number, limit: number) => Promise<readonly StoredEvent[]>;
  readonly listConversation: (transcriptId: string) => Promise<ConversationListing>;
  readonly readConversation: (transcriptId: string, name: string, range: FileRange) => AsyncIterable<Uint8Array>;
  readonly payer: Manifest["payer"] | undefined;
  /** Place of the folder; `undefined` to leave its files out. */
  readonly place: GitContext | undefined;
}

export interface PackedSession {
  /** Bytes of the file. */
  readonly bytes: AsyncIterable<Buffer>;
  /** Sentences on what the file lacks, and on what it holds. */
  readonly notes: readonly string[];
}

const UNMASKED =
  "The transcript is not masked: it holds everything that Claude Code has read, secrets included. Keep the file as safe as the session's folder.";

/** Throws SESSION_BUSY while a turn runs, INVALID_ARGUMENT for a session that cannot go on elsewhere. */
export function refusePack({ id: sessionId, spec, state }: SessionRecord): void {
  if (state.turn) {
    const advice = "Wait for its end, or interrupt it.";
    throw new AppError("SESSION_BUSY", `A turn is running in the session, so it cannot be packed now. ${advice}`, {
      sessionId,
    });
  }
  if (spec.persistSession === false)
    throw new AppError("INVALID_ARGUMENT", "The session keeps no transcript (persistSession: false).", { sessionId });
}

/** Passes the packed session to `take`, and removes the temporary files afterwards. */
export async function packSession<T>(source: PackSource, take: (packed: PackedSession) => Promise<T>): Promise<T> {
  refusePack(requireReadable(source.record));
  const scratch = await mkdtemp(join(tmpdir(), "claude-agents-mcp-pack-"));
  try {
    const work = source.place && (await packWork(source.place, scratch));
    const { listing, transcriptId } = await findConversation(source);
    const leftOut = [
      ...optionNotes(source.record.spec),
      ...conversationNotes(source.record.state, listing),
      ...workNotes(source, work),
    ];
    const manifest = createManifest(source, { leftOut, transcriptId, work });
    const parts = partsOf(source, { listing, manifest, transcriptId, work });
    return await take({ bytes: writePack(parts), notes: [...leftOut, UNMASKED] });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Finds the session's own conversation, or that of its origin if nothing was said yet. */
async function findConversation({ listConversation, record }: PackSource) {
  const { transcriptId = record.id, origin } = record.state;
  for (const id of [transcriptId, ...(origin ? [origin.transcriptId] : [])]) {
    const listing = await listConversation(id);
    if (listing.files.length > 0) return { listing, transcriptId: id };
  }
  return { listing: { files: [], leftOut: [] }, transcriptId: undefined };
}

function optionNotes({ agents = {}, env = {}, mcpServers = {} }: SessionOptions): string[] {
  const inline = Object.entries(agents).filter(([, { mcpServers: servers = [] }]) =>
    servers.some((each) => typeof each !== "string"),
  );
  return [
    ...note("Values of env are not packed", Object.keys(env)),
    ...note("MCP servers of the session are not packed", Object.keys(mcpServers)),
    ...note(
      "MCP servers of its agents are not packed",
      inline.map(([name]) => name),
    ),
  ];
}

const note = (what: string, names: readonly string[]) => (names.length === 0 ? [] : [`${what}: ${names.join(", ")}.`]);

function conversationNotes(state: SessionState, { files, leftOut }: ConversationListing): string[] {
  const isMissing = files.length === 0 && hasSpoken(state);
  return [
    ...(isMissing ? ["Claude Code's transcript is gone, so the session can be read elsewhere, but not go on."] : []),
    ...note("Not packed, because a resumed conversation does not need them", leftOut),
    ...note(
      "Background tasks stay here",
      state.background.map(({ description }) => description),
    ),
    ...(state.queue.length > 0 ? ["Waiting prompts stay here; their texts are in the log."] : []),
  ];
}

function workNotes({ place, record }: PackSource, work: PackedWork | undefined): string[] {
  if (work) return [...work.leftOut];
  const why = place ? ": it is in no git repository" : "";
  return [`The files of ${record.spec.cwd} are not packed${why}.`];
}

interface Chosen {
  readonly leftOut: string[];
  readonly transcriptId: string | undefined;
  readonly work: PackedWork | undefined;
}

function createManifest({ payer, record }: PackSource, { leftOut, transcriptId, work }: Chosen): Manifest {
  const { createdAt, id, spec, state, title } = record;
  const manifest: Manifest = {
    version: readPackage().version,
    packedAt: Date.now(),
    sessionId: id,
    createdAt,
    options: OPTIONS.write(withoutSecrets(optionsOf(spec, state))),
    state: STATE.write(state),
    leftOut,
    ...(title !== undefined && { title }),
    ...(payer && { payer }),
    ...(transcriptId !== undefined && { transcriptId }),
    ...(work && { work: work.work }),
  };
  const [issue] = Manifest.safeParse(manifest).error?.issues ?? [];
  if (!issue) return manifest;
  // A file that no `unpack` takes must not be written.
  throw new AppError(
    "INVALID_ARGUMENT",
    `The session cannot be packed: its ${issue.path.join(".")}: ${issue.message}.`,
  );
}

/** Removes values that may be secrets. Also applied to unpacked options, because servers and variables start programs. */
export function withoutSecrets(given: SessionOptions): SessionOptions {
  const options = { ...given };
  delete options.env;
  delete options.mcpServers;
  if (!options.agents) return options;
  const kept = Object.entries(options.agents).map(([name, { mcpServers, ...agent }]) => {
    const named = mcpServers?.filter((each) => typeof each === "string");
    return [name, { ...agent, ...(named && { mcpServers: named }) }] as const;
  });
  return { ...options, agents: Object.fromEntries(kept) };
}

interface Content extends Omit<Chosen, "leftOut"> {
  readonly listing: ConversationListing;
  readonly manifest: Manifest;
}

async function* partsOf(
  source: PackSource,
  { listing, manifest, transcriptId = "", work }: Content,
): AsyncGenerator<Part> {
  yield await Promise.resolve({ name: PARTS.manifest, bytes: only(JSON.stringify(manifest)) });
  yield { name: PARTS.log, bytes: logLines(source) };
  for (const { name, size } of listing.files) {
    const bytes = source.readConversation(transcriptId, name, { length: size });
    yield { name: CONVERSATION + name, bytes };
  }
  if (work) yield { name: PARTS.work, bytes: createReadStream(work.bundle) };
}

async function* only(text: string): AsyncGenerator<Buffer> {
  yield await Promise.resolve(Buffer.from(text));
}

/** Number of events held at a time. */
const PAGE = 32;

async function* logLines({ readLog, record: { id, state } }: PackSource): AsyncGenerator<Buffer> {
  for (let next = 1; next <= state.lastEventId;) {
    const page = await readLog(next, Math.min(PAGE, state.lastEventId - next + 1));
    if (page.length === 0) throw new AppError("SESSION_NOT_FOUND", `Session ${id} was deleted in the meantime.`);
    for (const { at, id: eventId, ...event } of page) {
      yield Buffer.from(`${JSON.stringify({ id: eventId, at, event: EVENT.write(event) })}\n`);
      next = eventId + 1;
    }
  }
}
