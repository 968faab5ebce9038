import { stat } from "node:fs/promises";
import type { connectStore, StoreSettings } from "../../app/store.ts";
import { ConfigError } from "../../config/error.ts";
import { serverSettings } from "../../config/server-settings.ts";
import { storeTraits } from "../../config/store.ts";
import { AppError } from "../../domain/error.ts";
import { LOCAL_PRINCIPAL } from "../../domain/principal.ts";
import { createLogger } from "../../log/logger.ts";
import { createMasker } from "../../log/mask.ts";
import { escapeControlChars } from "../../security/control-chars.ts";
import type { StoreFlags } from "./arguments.ts";

/** Opens the store and reads sessions, by default those of the local user (`LOCAL_PRINCIPAL`). */

export type Store = Awaited<ReturnType<typeof connectStore>>;
export type SessionRecord = NonNullable<Awaited<ReturnType<Store["rows"]["get"]>>>;
export type SessionQuery = Parameters<Store["rows"]["list"]>[0];

/** Number of sessions read at once; each has its whole state in memory. */
const PAGE = 200;
/** Number of sessions named in the message about an ambiguous id. */
const MAX_NAMED = 4;

/** Throws AppError if there is no store, because reading must not create one. */
export async function withStore<T>(flags: StoreFlags, work: (store: Store) => Promise<T>): Promise<T> {
  return withStoreIfAny(flags, work, (file) => {
    throw new AppError("SESSION_NOT_FOUND", `No sessions yet: there is no store at ${file}.`);
  });
}

/** Runs a command on the store. Resolves to exit code 1 after a fault, which is written as one line. */
export async function withFaultLines(run: () => Promise<number>): Promise<number> {
  process.stdout.off("error", exitOnWriteError).on("error", exitOnWriteError);
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    console.error(`claude-agents-mcp: ${escapeControlChars(error.message.replaceAll(/\s+/g, " "))}`);
    return 1;
  }
}

/** Exits with 0 if the reader has closed the output early, as `head` does; with 1 after other write errors. */
export function exitOnWriteError(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") console.error(`claude-agents-mcp: the output could not be written: ${error.message}`);
  process.exit(error.code === "EPIPE" ? 0 : 1);
}

export async function withStoreIfAny<T>(
  flags: StoreFlags,
  work: (store: Store) => Promise<T>,
  none: (file: string) => T,
): Promise<T> {
  return withStoreAt(readStoreSettings(flags), work, none);
}

/** Without `none`, creates a missing store. */
export async function withStoreAt<T>(
  settings: StoreSettings,
  work: (store: Store) => Promise<T>,
  none?: (file: string) => T,
): Promise<T> {
  // Loaded only after the flags are read, because loading takes half a second.
  const { connectStore, storeLocation } = await import("../../app/store.ts");
  const masker = createMasker(settings.environment);
  const location = storeLocation(settings);
  const { file, isShared, text } = storeTraits(location);
  if (!isShared) {
    const problem = `The store is "${text}": its sessions exist only in the server that runs them.`;
    throw new ConfigError(`${problem} Name the file of a store with --store.`);
  }
  if (none && file !== undefined && !(await exists(file))) return none(file);
  const store = await connectStore(location, { log: createLogger({ level: "error", masker }) });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

interface NodeFlag {
  readonly node?: string | undefined;
}

export function readStoreSettings({ config, node, store, "store-password-file": password }: StoreFlags & NodeFlag) {
  const argv = flagsOfServe({ store, "store-password-file": password, config, node });
  return { config: serverSettings({ argv, env: process.env }).config, environment: process.env };
}

/** Returns the values given as arguments of `serve`. */
export function flagsOfServe(values: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(values).flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}=${value}`]));
}

/** True unless `file` is missing. Opening the store reports any other problem better. */
async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}

/** Yields all sessions of a principal, newest first, page by page. */
export async function* allSessions(
  store: Store,
  query: Partial<Omit<SessionQuery, "limit">> = {},
): AsyncGenerator<SessionRecord> {
  let next: SessionQuery = { principal: LOCAL_PRINCIPAL, ...query, limit: PAGE };
  for (;;) {
    const page = await store.rows.list(next);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    next = { ...next, before: { updatedAt: last.updatedAt, id: last.id } };
  }
}

/** Returns the session with this `id`, or the only session with this prefix. Throws AppError. */
export async function findSession(store: Store, id: string): Promise<SessionRecord> {
  const exact = await store.rows.get(id);
  // Accepts an unreadable session with an unknown principal.
  if (exact?.principal === LOCAL_PRINCIPAL || (exact?.unreadable && exact.principal === "")) return exact;
  const found: SessionRecord[] = [];
  for await (const record of allSessions(store)) {
    if (!record.id.toLowerCase().startsWith(id.toLowerCase())) continue;
    found.push(record);
    if (found.length > MAX_NAMED) break;
  }
  const [only, ...others] = found;
  if (only && others.length === 0) return only;
  if (!only) {
    const advice = `"claude-agents-mcp sessions list" lists all sessions.`;
    throw new AppError("SESSION_NOT_FOUND", `There is no session ${id}. ${advice}`);
  }
  const named = found.slice(0, MAX_NAMED).map((record) => record.id);
  const more = found.length > MAX_NAMED ? " and others" : "";
  const problem = `"${id}" is ambiguous: ${named.join(", ")}${more}`;
  throw new AppError("INVALID_ARGUMENT", `${problem}. Give a longer prefix of the id.`);
}

/** Returns the event `eventId`, if the state names one. */
export async function readEvent(store: Store, sessionId: string, eventId: number | null | undefined) {
  if (typeof eventId !== "number") return undefined;
  const [event] = await store.log.read(sessionId, eventId, 1);
  return event?.id === eventId ? event : undefined;
}

/** Number of events to search for the first prompt, which is among the first. */
const FIRST_EVENTS = 5;

/** Returns the first prompt; "" if the session died before. */
export async function readFirstPrompt(store: Store, sessionId: string): Promise<string> {
  const first = await store.log.read(sessionId, 1, FIRST_EVENTS);
  return first.find((event) => event.type === "prompt.queued")?.data.text ?? "";
}
