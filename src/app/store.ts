import { constants } from "../config/constants.ts";
import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { defaultStore, storeTraits, type StoreLocation } from "../config/store.ts";
import type { Logger, NodeFacts, SessionBackend } from "../engine/ports.ts";
import { findRealPath } from "../security/paths.ts";

/** Finds and opens the session store of the user. Loads modules on first use. */

export interface StoreSettings {
  readonly config: Pick<Config, "store">;
  /** Environment of the server. Secrets in its variables are masked in everything written. */
  readonly environment: NodeJS.ProcessEnv;
}

export function storeLocation({ config: { store }, environment }: StoreSettings): StoreLocation {
  return store ?? defaultStore(stateFolder(environment, process.platform), process.platform);
}

/** True if the packages for a store of this kind are available. SQLite may be part of Node; npm installs the others. */
export async function hasDriver(kind: StoreLocation["kind"] = "sqlite"): Promise<boolean> {
  return (await import("../store/drivers.ts")).missingDrivers(kind).length === 0;
}

async function installDriver(kind: StoreLocation["kind"]): Promise<void> {
  await (await import("../store/drivers.ts")).installDrivers(kind);
}

/** Installs the driver, but stops waiting once `over` aborts. npm continues after the end of this process. */
async function installDriverUntil(kind: StoreLocation["kind"], over?: AbortSignal): Promise<void> {
  const ended = new Promise<never>((_, reject) => {
    over?.addEventListener("abort", () => reject(new Error("The server is shutting down.")));
  });
  await Promise.race([installDriver(kind), ended]);
}

/**
 * Names the store: equal for all servers of a file or database, whatever links lead to the file. A store in memory is named by `nodeId`, because
 * it belongs to one server.
 */
export async function resolveStoreName(location: StoreLocation, { nodeId }: SessionBackend): Promise<string> {
  const { file, identity, isShared } = storeTraits(location);
  if (!isShared) return nodeId;
  const real = file === undefined ? undefined : await findRealPath(file);
  return real ?? identity;
}

export async function thisProcess(): Promise<{ pid: number; startedAt: string }> {
  const { startTime, UNKNOWN_START } = await processes();
  return { pid: process.pid, startedAt: (await startTime(process.pid)) ?? UNKNOWN_START };
}

/** True if process `pid` still runs and started at `startedAt`. */
export async function isRunning(pid: number, startedAt: string): Promise<boolean> {
  return (await processes()).isRunning(pid, startedAt);
}

/** False for `UNKNOWN_START`: the system has not reported a start time. */
export async function isKnownStart(startedAt: string): Promise<boolean> {
  return startedAt !== (await processes()).UNKNOWN_START;
}

/** Loaded on first use, because `initialize` runs without `tree.ts`. */
const processes = async () => import("../claude/supervise/tree.ts");

export interface StoreUse {
  readonly log: Logger;
  readonly over?: AbortSignal;
  readonly urls?: readonly string[] | undefined;
  /** Facts about this server for the other machines of the store; `undefined` for a command, which runs no sessions. */
  readonly facts?: NodeFacts | undefined;
  /** See `OwnNode`. */
  readonly leaseMs?: number;
}

/** Opens the sessions at `location`. If a driver is missing, npm installs it first. */
export async function connectStore(
  location: StoreLocation,
  { log, over, urls = [], ...node }: StoreUse,
): Promise<SessionBackend> {
  if (!(await hasDriver(location.kind))) await installDriverUntil(location.kind, over);
  const [{ openStore }, { systemClock }, process] = await Promise.all([
    import("../store/open.ts"),
    import("./system-clock.ts"),
    thisProcess(),
  ]);
  return openStore(location, {
    nodeId: crypto.randomUUID(),
    process,
    isRunning,
    clock: systemClock,
    urls,
    ...node,
    leaseMs: constants().testLeaseMs || node.leaseMs,
    log,
  });
}
