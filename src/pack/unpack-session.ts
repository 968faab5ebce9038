import { createReadStream } from "node:fs";
import { lstat, mkdir, mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readPayer } from "../claude/account.ts";
import { identify } from "../claude/child-environment.ts";
import { removeConversation, writeConversation } from "../claude/folder/conversation-writer.ts";
import { partsOf } from "../claude/folder/conversation.ts";
import { AppError, invalidArgument } from "../domain/error.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { SessionOptions } from "../domain/options.ts";
import { LOCAL_PRINCIPAL } from "../domain/principal.ts";
import { isSamePayer, type Identity } from "../domain/process.ts";
import { SessionStatus } from "../domain/session.ts";
import { cutBeyond } from "../engine/policy/bounded-options.ts";
import type { Lease, SessionBackend, WrittenFile } from "../engine/ports.ts";
import { isHalfUnpacked, settleUnpacked, unpackingState } from "../engine/step/unpacked.ts";
import { damaged } from "./container.ts";
import { withoutSecrets } from "./pack-session.ts";
import { readLog, unpackParts, type UnpackedParts } from "./unpack-parts.ts";
import { prepareWork, type PreparedWork } from "./unpack-work.ts";

/**
 * Unpacks a session: into the store, the configuration folder of Claude Code and a folder. Checks the whole file first; after a
 * fault, nothing is left of the session.
 */

export interface UnpackTarget {
  readonly store: SessionBackend;
  /** Folder for the files; default: a new one in `base`, named as the packed one. */
  readonly folder: string | undefined;
  readonly base: string;
  /** Returns the environment of Claude Code for sessions with these options. */
  readonly environmentOf: (options: Pick<SessionOptions, "profile">) => Readonly<Record<string, string>>;
  /** True to keep options that let tools run without asking. */
  readonly keepsApprovals: boolean;
  /** Name of the server that has the folder, on a store of several machines. */
  readonly node: string;
  /** Ends the unpacking as a fault does, until the session is whole. */
  readonly stop: AbortSignal;
}

export interface Unpacked {
  readonly sessionId: string;
  readonly cwd: string;
  /** True for a session that was closed when it was packed. */
  readonly isClosed: boolean;
  /** Sentences on what has changed. */
  readonly notes: readonly string[];
}

export async function unpackSession(file: AsyncIterable<Buffer>, target: UnpackTarget): Promise<Unpacked> {
  const scratch = await mkdtemp(join(tmpdir(), "claude-agents-mcp-unpack-"));
  try {
    const parts = await unpackParts(file, scratch);
    for (const name of parts.conversation.keys()) partsOf(name, parts.manifest.transcriptId ?? "");
    target.stop.throwIfAborted();
    await refuseKnown(target.store, parts);
    return await place(parts, target, scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Throws INVALID_ARGUMENT for a session that the store has. Deletes what an unpacking that died has left. */
async function refuseKnown({ maintenance, rows }: SessionBackend, { manifest }: UnpackedParts): Promise<void> {
  const { sessionId, transcriptId } = manifest;
  const known =
    (await rows.get(sessionId)) ?? (transcriptId === undefined ? undefined : await rows.holderOf(transcriptId));
  if (!known) return;
  if (known.id === sessionId && !known.unreadable && isHalfUnpacked(known.state)) {
    await maintenance.purge({ ...ANY, ids: [sessionId] });
    return;
  }
  const advice = "Go on with that one, or delete it first: claude-agents-mcp sessions delete ID.";
  const what = known.id === sessionId ? `session ${sessionId}` : `its conversation, in session ${known.id}`;
  throw new AppError("INVALID_ARGUMENT", `This store has ${what} already. ${advice}`, { sessionId });
}

const ANY = { before: Number.MAX_SAFE_INTEGER, statuses: SessionStatus.options, limit: 1 };

async function place(parts: UnpackedParts, target: UnpackTarget, scratch: string): Promise<Unpacked> {
  const { bundle, manifest, options: packed } = parts;
  const { sessionId, work } = manifest;
  const { cut, options } = optionsHere(packed, target);
  const environment = target.environmentOf(options);
  const folder = await chooseFolder(parts, target);
  const prepared =
    work && bundle !== undefined
      ? await prepareWork(folder, { sessionId, work, bundle, scratch, environment })
      : await plainFolder(folder);
  const inside = work ? work.folder.split("/").filter((part) => part !== "") : [];
  const cwd = join(folder, ...inside);
  const undo: (() => Promise<unknown>)[] = [async () => prepared.drop()];
  const { stop } = target;
  try {
    stop.throwIfAborted();
    await createRow(parts, { ...options, cwd }, target);
    undo.push(async () => target.store.maintenance.purge({ ...ANY, ids: [sessionId] }));
    const lease = await takeLease(sessionId, target.store);
    undo.push(async () => target.store.leases.release(lease));
    await writeLog(parts, lease, target);
    const files = await prepared.finish();
    stop.throwIfAborted();
    await makeFolder(folder, inside);
    await placeConversation(parts, { configFolder: identify(environment).configFolder, cwd, undo });
    stop.throwIfAborted();
    const notes = [files, ...(await payerNotes(parts, environment)), ...cut];
    await openSession(parts, { environment, lease, notes, store: target.store });
    return { sessionId, cwd, isClosed: parts.state.closed !== undefined, notes };
  } catch (error) {
    // The first fault counts, not one of the clean-up.
    for (const each of undo.toReversed()) await each().catch(() => undefined);
    throw error;
  }
}

function optionsHere(packed: SessionOptions, { keepsApprovals }: UnpackTarget) {
  const { additionalDirectories, debugFile, labels, node, pathToClaudeCodeExecutable, ...here } =
    withoutSecrets(packed);
  const gone = Object.entries({ additionalDirectories, debugFile, labels, node, pathToClaudeCodeExecutable }).flatMap(
    ([name, value]) => (value === undefined ? [] : [name]),
  );
  const { options, parts } = cutBeyond(here, keepsApprovals ? "all" : "none");
  const cut = [
    ...(gone.length === 0
      ? []
      : [`Left out, because they name files or nodes of the other machine: ${gone.join(", ")}.`]),
    ...parts.map((part) => `Left out, because it lets tools run without asking: ${part} (--keep-approvals).`),
  ];
  return { options, cut };
}

async function chooseFolder({ manifest: { work } }: UnpackedParts, { base, folder }: UnpackTarget): Promise<string> {
  if (folder !== undefined) return resolve(base, folder);
  if (!work) throw invalidArgument("--cwd", "is required, because the file holds no files of a folder.");
  // The name is another machine's word.
  if (!/^[^/\\\0]+$/.test(work.name) || work.name.startsWith(".") || work.name === "")
    throw invalidArgument("--cwd", "is required, because the folder has no usual name.");
  return Promise.resolve(join(base, work.name));
}

/** Makes a folder that git has not kept, because it is empty. Throws INVALID_ARGUMENT for a way out of the repository. */
async function makeFolder(top: string, parts: readonly string[]): Promise<void> {
  let folder = top;
  for (const part of parts) {
    folder = join(folder, part);
    await mkdir(folder).catch(() => undefined);
    if (!(await lstat(folder)).isDirectory() || part.toLowerCase() === ".git")
      throw damaged(`its folder ${JSON.stringify(parts.join("/"))} is none of its repository`);
  }
}

/** A folder for a session without files. */
async function plainFolder(folder: string): Promise<PreparedWork> {
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw invalidArgument(
      "--cwd",
      `${folder} cannot be used: ${error instanceof Error ? error.message : ""}. Name another.`,
    );
  });
  const told = `The file holds no files, so the session goes on with those in ${folder}.`;
  return { finish: async () => Promise.resolve(told), drop: async () => Promise.resolve() };
}

async function createRow({ manifest }: UnpackedParts, spec: SessionOptions, target: UnpackTarget): Promise<void> {
  const { node, store } = target;
  const { createdAt, sessionId: id, title } = manifest;
  const at = Math.min(createdAt, Date.now());
  const state = unpackingState(at, 0);
  // Only this machine has the folder. A command is no node, so that the store does not know its name.
  const here = store.machines && { place: { node } };
  const row = { id, principal: LOCAL_PRINCIPAL, spec, state, at, ...here };
  const { created, record } = await store.rows.create(row);
  if (!created) throw new AppError("INVALID_ARGUMENT", `This store has session ${id} already.`, { sessionId: id });
  if (title !== undefined) await store.rows.update(id, record.rev, { title });
}

/** Time of the lease, ms: no other server may take a session while its log is written. */
const LEASE_MS = 3_600_000;

async function takeLease(sessionId: string, { leases }: SessionBackend): Promise<Lease> {
  await leases.heartbeat(LEASE_MS);
  const lease = await leases.claim(sessionId);
  if (!lease) throw new AppError("SESSION_BUSY", "Another server has taken the session. Try again.", { sessionId });
  return lease;
}

async function writeLog({ log }: UnpackedParts, lease: Lease, { stop, store }: UnpackTarget): Promise<void> {
  let batch: { at: number; events: SessionEvent[]; last: number } | undefined;
  const flush = async () => {
    if (!batch) return;
    const { at, events, last } = batch;
    await store.log.append(lease, { at, events, state: unpackingState(at, last) });
  };
  for await (const { at, id, ...event } of readLog(log)) {
    if (batch?.at !== at || batch.events.length >= MAX_BATCH) {
      await flush();
      stop.throwIfAborted();
      batch = { at, events: [], last: id };
    }
    batch.events.push(event);
    batch.last = id;
  }
  await flush();
}

/** Maximum number of events in one transaction. */
const MAX_BATCH = 100;

interface ConversationTarget {
  readonly configFolder: string;
  readonly cwd: string;
  readonly undo: (() => Promise<unknown>)[];
}

async function placeConversation(
  { conversation, manifest: { transcriptId } }: UnpackedParts,
  { configFolder, cwd, undo }: ConversationTarget,
): Promise<void> {
  if (transcriptId === undefined || conversation.size === 0) return;
  const project = await writeConversation({ configFolder, cwd, replaces: false, transcriptId }, filesOf(conversation));
  undo.push(async () => removeConversation({ configFolder, transcriptId }, project));
}

async function* filesOf(conversation: ReadonlyMap<string, string>): AsyncGenerator<WrittenFile> {
  for (const [name, file] of conversation) yield await Promise.resolve({ name, parts: createReadStream(file) });
}

/** Compares the kind of payer and the account; folders differ on every machine. */
async function payerNotes(
  { manifest: { payer } }: UnpackedParts,
  environment: Readonly<Record<string, string>>,
): Promise<string[]> {
  const now = await identityHere(environment);
  const told = `It goes on with the configuration in ${now.configFolder}, paid by ${now.paidBy}`;
  if (!payer) return [`${told}; its payer so far is unknown.`];
  const [before, here] = [payer, now].map((each) => each.payer?.kind ?? each.paidBy);
  if (before !== here) return [`${told}; so far ${String(before)} has paid.`];
  return [isSamePayer(now, payer) ? `${told}, as before.` : `${told}, of another account than before.`];
}

async function identityHere(environment: Readonly<Record<string, string>>): Promise<Identity> {
  return { ...identify(environment), payer: await readPayer(environment) };
}

interface Opening {
  readonly environment: Readonly<Record<string, string>>;
  readonly lease: Lease;
  readonly notes: readonly string[];
  readonly store: SessionBackend;
}

/** Makes the session a whole one, in one transaction. */
async function openSession(parts: UnpackedParts, { environment, lease, notes, store }: Opening): Promise<void> {
  const at = Date.now();
  const { manifest, state: packed } = parts;
  const when = new Date(manifest.packedAt).toISOString();
  const message = [`The session was packed at ${when} and unpacked on ${hostname()}.`, ...notes].join(" ");
  const { events, state } = settleUnpacked(packed, { at, identity: await identityHere(environment), message });
  await store.log.append(lease, { at, events, state, acted: true });
  await store.leases.release(lease);
}
