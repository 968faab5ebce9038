import { AppError } from "../../domain/error.ts";
import { hasSpoken, type SessionState } from "../../domain/session.ts";
import type { StoreMachines, TranscriptManifest } from "../ports.ts";
import { nameOf, storedFiles, type LocalConversation } from "./copies.ts";
import { keepingStore, localConversation, ranLastAt, type KeeperOptions } from "./kept.ts";
import { type MissingTurns, readMissingTurns } from "./missing.ts";

/** A conversation that was written into the configuration folder of this node. */
export interface Restored extends MissingTurns {
  /** Absent for the conversation of a session that was forked. */
  readonly manifest?: TranscriptManifest;
}

/** A start of a process. */
interface Start {
  readonly state: SessionState;
  readonly environmentId: string;
}

/**
 * Makes the files of the conversation here the ones to go on with, before a process starts:
 *
 * - The node that has run the last process uses its own files, which may be ahead of the store. If they are gone or shorter than
 *   the store says, the disk is another one, and the next rule holds.
 * - Any other node replaces whatever it has by the sealed manifest, because its own files end before the last turns, or go on
 *   with a turn that was lost. Later turns are missing, and the result says which.
 * - A conversation that another node has run, and of which nothing is stored, is not resumed.
 *
 * All files are written or none, each as long and with the digest that the manifest says. Resolves with `undefined` if nothing
 * had to be written.
 */
export async function restoreConversation(options: KeeperOptions, start: Start): Promise<Restored | undefined> {
  const machines = keepingStore(options);
  if (!machines) return undefined;
  const { sessionId } = options.lease;
  const { state } = start;
  const local = localConversation(options, state, start.environmentId);
  const manifest = await readManifest(machines, sessionId, local.place.transcriptId);
  if (!manifest && !hasSpoken(state)) return restoreOrigin(options, machines, local, state);
  const isHere = ranLastAt(machines.self.name, state);
  if (isHere && (!manifest || (await hasWhole(local, manifest)))) return undefined;
  if (manifest) {
    await local.conversations.write(local.place, storedFiles(machines.transcripts, sessionId, manifest), REPLACE);
    return { manifest, ...(await readMissingTurns(options.backend.log, { sessionId, state }, manifest.eventId)) };
  }
  throw notStored(sessionId, state);
}

const REPLACE = { replaces: true };

/** Returns the stored copy of a transcript. After a `/clear` whose turn was not stored, the copy is of another transcript. */
async function readManifest(
  { transcripts }: StoreMachines,
  sessionId: string,
  transcriptId: string,
): Promise<TranscriptManifest | undefined> {
  const manifest = await transcripts.manifest(sessionId);
  return manifest?.transcriptId === transcriptId ? manifest : undefined;
}

/** True if the transcript is at least as long as stored. */
async function hasWhole({ conversations, place }: LocalConversation, { files }: TranscriptManifest): Promise<boolean> {
  const name = `${place.transcriptId}.jsonl`;
  const stored = files.find((file) => nameOf(file) === name);
  const found = (await conversations.list(place)).files.find((file) => file.name === name);
  return !stored || (found?.size ?? -1) >= stored.size;
}

function notStored(sessionId: string, { identity }: SessionState): AppError {
  const place = identity?.node === undefined ? "at another node" : `at node ${identity.node}`;
  const problem = `The conversation was held ${place}, and no copy of it is stored. The prompt was not sent`;
  const reason = "Claude would not remember the earlier turns";
  return new AppError("INTERNAL", `${problem}: ${reason}. Continue there, or start a new session.`, { sessionId });
}

/** Writes the conversation that a new session begins with, if another session of this store has held it at another node. */
async function restoreOrigin(
  { backend }: KeeperOptions,
  machines: StoreMachines,
  { conversations, place }: LocalConversation,
  { origin }: SessionState,
): Promise<Restored | undefined> {
  const holder = origin && (await backend.rows.holderOf(origin.transcriptId));
  // A process of this node may be writing the conversation.
  if (!origin || !holder || ranLastAt(machines.self.name, holder.state) || holder.owner?.nodeId === backend.nodeId)
    return undefined;
  const { id: sessionId, state } = holder;
  const manifest = await readManifest(machines, sessionId, origin.transcriptId);
  if (!manifest) return undefined;
  const target = { ...place, transcriptId: origin.transcriptId };
  await conversations.write(target, storedFiles(machines.transcripts, sessionId, manifest), REPLACE);
  return readMissingTurns(backend.log, { sessionId, state }, manifest.eventId);
}
