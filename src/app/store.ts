import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { defaultStore, storeTraits, type StoreLocation } from "../config/store.ts";
import type { Logger, SessionBackend } from "../engine/ports.ts";
import { realPathOf } from "../security/paths.ts";

/** Where the sessions of this user are, and the way to them; what it needs is loaded by its first use. */

export interface StoreSettings {
  readonly config: Pick<Config, "store">;
  /** The environment of the server; what is secret in it is masked wherever it would be written. */
  readonly environment: NodeJS.ProcessEnv;
}

export function storeLocation({ config: { store }, environment }: StoreSettings): StoreLocation {
  return store ?? defaultStore(stateFolder(environment, process.platform), process.platform);
}

/** Whether SQLite is there: part of Node, or a package that npm has installed. */
export async function hasDriver(): Promise<boolean> {
  return (await import("../store/sqlite/connect/driver.ts")).hasDriver();
}

async function installDriver(): Promise<void> {
  await (await import("../store/sqlite/connect/driver.ts")).installDriver();
}

/** npm goes on when this process ends, which does not wait for it. */
async function driverUnless(over?: AbortSignal): Promise<void> {
  const ended = new Promise<never>((_, reject) => {
    over?.addEventListener("abort", () => reject(new Error("The server is shutting down.")));
  });
  await Promise.race([installDriver(), ended]);
}

/** Of two servers with the same store it is the same, whatever links lead there; sessions in memory are one server's alone. */
export async function storeNameOf(location: StoreLocation, { nodeId }: SessionBackend): Promise<string> {
  const { file, isShared, text } = storeTraits(location);
  if (!isShared) return nodeId;
  const real = file === undefined ? undefined : await realPathOf(file);
  return real ?? text;
}

export async function thisProcess(): Promise<{ pid: number; startedAt: string }> {
  const { startTime, UNKNOWN } = await processes();
  return { pid: process.pid, startedAt: (await startTime(process.pid)) ?? UNKNOWN };
}

/** Tells whether process `pid` is still the process that started at `startedAt`. */
export async function isRunning(pid: number, startedAt: string): Promise<boolean> {
  return (await processes()).isRunning(pid, startedAt);
}

/** Tells whether the system has said when the process began. */
export async function isKnownStart(startedAt: string): Promise<boolean> {
  return startedAt !== (await processes()).UNKNOWN;
}

/** Not before the first call: `initialize` is answered without. */
const processes = async () => import("../claude/supervise/tree.ts");

/** The sessions at `location`, shared by all servers that use the same file. */
export async function connectStore(
  location: StoreLocation,
  { log, over, urls = [] }: { log: Logger; over?: AbortSignal; urls?: readonly string[] | undefined },
): Promise<SessionBackend> {
  if (!(await hasDriver())) await driverUnless(over);
  const [{ openStore }, { systemClock }, process] = await Promise.all([
    import("../store/open.ts"),
    import("../engine/clock.ts"),
    thisProcess(),
  ]);
  return openStore(location, { nodeId: crypto.randomUUID(), process, isRunning, clock: systemClock, urls, log });
}
