import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { SessionState, ShimRef } from "../../domain/session.ts";
import type { Logger, ShimStanding } from "../../engine/ports.ts";
import type { ListedProcess } from "../../shim/protocol.ts";
import { unlessWithin } from "../process/time-limit.ts";
import { ShimConnection, type ShimClient } from "./connection.ts";
import { isThere } from "./why-gone.ts";

/**
 * The shims of this server: its own, which is started with the first process at the latest, and those that a former server of its
 * name has left.
 */

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

export interface ShimSettings extends ShimClient {
  readonly stateFolder: string;
  /** How long a shim keeps its processes when no server of the name is there, ms. */
  readonly keepMs: number;
  /** What starts this server again; undefined where it is brought back by others. */
  readonly restart: (Program & { readonly env: Readonly<Record<string, string>>; readonly cwd: string }) | undefined;
  /** A path that no shim has yet, in a folder that only the user can enter. */
  readonly newAddress: () => Promise<string>;
  /** Sockets of shims of this name; those of dead ones are removed. */
  readonly found: () => Promise<readonly string[]>;
  readonly log: Pick<Logger, "debug" | "info" | "warn">;
}

/** What a shim says of itself, for people. */
export interface ShimReport {
  readonly pid: number;
  readonly address: string;
  readonly processes: readonly { readonly pid: number; readonly startedAt: string }[];
}

/** Tries to get a shim that answers. */
const MAX_SHIMS = 2;
/** A busy machine starts a Node in a second, ms. */
const READY_MS = 10_000;

export class Shims {
  readonly #settings: ShimSettings;
  readonly #reaper: Program | undefined;
  #own: Promise<ShimConnection> | undefined;
  readonly #others = new Map<string, Promise<ShimConnection>>();
  /** Where this server has started shims. */
  readonly #addresses = new Set<string>();
  #adopted: Promise<void> = Promise.resolve();
  #isClosing = false;
  #fallback: string | undefined;

  /** `reaper` is what each shim starts beside Claude Code. */
  constructor(settings: ShimSettings, reaper: Program | undefined) {
    this.#settings = settings;
    this.#reaper = reaper;
  }

  /** Why the last process was started without a shim. */
  get fallback(): string | undefined {
    return this.#fallback;
  }

  /**
   * The shim for new processes, which has just answered; another where it does not. Undefined where none can be started, and why is
   * known by `fallback`.
   */
  async own(tries = MAX_SHIMS): Promise<ShimConnection | undefined> {
    if (this.#isClosing) return undefined;
    const own = (this.#own ??= this.#start());
    try {
      const connection = await own;
      const silence = await silenceOf(connection);
      if (silence === undefined) {
        this.#fallback = undefined;
        return connection;
      }
      if (this.#own === own) this.#leave(connection, own, silence);
      if (tries > 1) return await this.own(tries - 1);
      throw new Error(silence);
    } catch (error) {
      if (this.#own === own) this.#own = undefined;
      this.#fallback = error instanceof Error ? error.message : String(error);
      this.#settings.log.warn("no shim: what is started now ends with this server", { why: this.#fallback });
      return undefined;
    }
  }

  /** Starts no more there. What it has runs on. */
  #leave(connection: ShimConnection, own: Promise<ShimConnection>, why: string): void {
    this.#own = undefined;
    if (connection.isClosed) return;
    this.#settings.log.warn("a shim is frozen: another one gets what is started from now on", {
      pid: connection.pid,
      why,
    });
    this.#keep(connection.address, own);
    connection.end();
  }

  refOf({ address, pid, startedAt }: ShimConnection): ShimRef {
    const { daemon, keepMs, sdk } = this.#settings;
    return { address, pid, startedAt, daemon, sdk, keepMs };
  }

  async standing(process: SessionState["process"]): Promise<ShimStanding> {
    const { daemon, sdk } = this.#settings;
    const shim = shimIn(process);
    if (shim?.daemon !== daemon) return standingWithout(process);
    // A turn changes hands between equal versions only, and the daemon of this name has another one now.
    return shim.sdk === sdk && (await isThere(shim)) ? "ours" : "gone";
  }

  /** The shim of a recorded process. Rejects where it is not there any more. */
  async at({ address, pid, startedAt }: ShimRef): Promise<ShimConnection> {
    const own = await this.#own?.catch(() => undefined);
    const connection = own?.address === address ? own : await this.#other(address);
    if (connection.pid === pid && connection.startedAt === startedAt) return connection;
    throw new Error("another shim has its socket");
  }

  /**
   * Connects to what former servers of this name have left, so that it knows its owner is there, and ends the spares there, which no
   * session can get any more. For the server that has the name only.
   */
  adopt(): void {
    const { log } = this.#settings;
    this.#adopted = this.#adoptAll().catch((error: unknown) =>
      log.warn("shims of a former server", { error: String(error) }),
    );
  }

  /** Ends the process of this id, which no session can go on with, where a former server has left it with a shim. */
  async end(id: string): Promise<void> {
    await this.#adopted;
    for (const opened of this.#others.values()) {
      const connection = await opened.catch(() => undefined);
      if (!connection || connection.isFollowed(id)) continue;
      const found = (await connection.list().catch(() => [])).find((each) => each.id === id);
      if (found) await endLeft(connection, found);
    }
  }

  async #adoptAll(): Promise<void> {
    for (const address of await this.#settings.found()) {
      if (this.#addresses.has(address)) continue;
      try {
        const connection = await this.#other(address);
        const processes = await connection.list();
        this.#settings.log.info("a former server has left a shim", {
          pid: connection.pid,
          processes: processes.length,
        });
        // Another server of this name lives: frozen for a while, or with an address of its own.
        if (processes.some(({ owned }) => owned)) continue;
        for (const each of processes) if (each.epoch === 0) void endLeft(connection, each);
        connection.end();
      } catch (error) {
        this.#settings.log.warn("a former server has left a shim that does not answer", {
          address,
          error: String(error),
        });
      }
    }
  }

  /** Those that are connected, with their processes. */
  async report(): Promise<ShimReport[]> {
    const all = await Promise.allSettled([this.#own, ...this.#others.values()]);
    const open = all.flatMap((each) =>
      each.status === "fulfilled" && each.value && !each.value.isClosed ? [each.value] : [],
    );
    const reports = open.map(async (connection) => {
      const listed = (await connection.list().catch(() => [])).filter(({ exited, starting }) => !(exited ?? starting));
      const processes = listed.map(({ pid, startedAt }) => ({ pid, startedAt }));
      return { pid: connection.pid, address: connection.address, processes };
    });
    return Promise.all(reports);
  }

  /** The server ends: no shim is needed once its processes are gone. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const all = await Promise.allSettled([this.#own, ...this.#others.values()]);
    for (const each of all) if (each.status === "fulfilled") each.value?.end();
  }

  async #other(address: string): Promise<ShimConnection> {
    const known = this.#others.get(address);
    if (known && !(await known).isClosed) return known;
    const opened = ShimConnection.open(address, this.#settings);
    this.#keep(address, opened);
    return opened;
  }

  #keep(address: string, opened: Promise<ShimConnection>): void {
    this.#others.set(address, opened);
    const forget = () => void (this.#others.get(address) === opened && this.#others.delete(address));
    opened.then(async ({ closed }) => closed.then(forget), forget);
  }

  async #start(): Promise<ShimConnection> {
    const { daemon, keepMs, log, newAddress, restart, stateFolder } = this.#settings;
    const address = await newAddress();
    this.#addresses.add(address);
    const reaper = this.#reaper;
    const given = {
      socket: address,
      daemon,
      keepMs,
      stateFolder,
      ...(restart && { restart }),
      ...(reaper && { reaper }),
    };
    const said = await started(JSON.stringify(given), stateFolder);
    if (!said.startsWith("ready ")) throw new Error(said === "" ? "it ended without a word" : said);
    const connection = await ShimConnection.open(address, this.#settings);
    log.debug("a shim is ready", { pid: connection.pid });
    return connection;
  }
}

/** Why no process can be started there; undefined where the shim answers. */
async function silenceOf(connection: ShimConnection): Promise<string | undefined> {
  return connection.list().then(
    () => undefined,
    (error: unknown) => String(error),
  );
}

/** For a server that goes on with no process of another. */
export async function standingWithout(process: SessionState["process"]): Promise<ShimStanding> {
  const shim = shimIn(process);
  return shim && (await isThere(shim)) ? "theirs" : "gone";
}

function shimIn(process: SessionState["process"]): ShimRef | undefined {
  return process.phase === "none" ? undefined : process.shim;
}

/** Time limit for the exit of a killed process, ms. */
const END_MS = 5_000;

/** Nothing is lost with it. Its exit is acknowledged, so that its shim forgets it. Resolves then, or where another server has it. */
async function endLeft(connection: ShimConnection, { epoch, id }: Pick<ListedProcess, "epoch" | "id">): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    connection.follow(id, (message) => {
      if (message.t === "exit") connection.send({ t: "ack", id, epoch, upTo: message.n });
      else if (message.t !== "refused") return;
      resolve();
    });
  });
  connection.send({ t: "attach", id, epoch, after: 0 });
  connection.send({ t: "kill", id, epoch });
  await Promise.race([ended, connection.closed, sleep(END_MS, undefined, { ref: false })]);
  connection.unfollow(id);
}

/** Starts the program of a shim, which is no part of this server's session or group; resolves to its first line. */
async function started(given: string, cwd: string): Promise<string> {
  const program = fileURLToPath(new URL("../../shim/shim.js", import.meta.url));
  const child = spawn(process.execPath, [program], {
    cwd,
    detached: true,
    env: {},
    stdio: ["pipe", "pipe", "ignore"],
    windowsHide: true,
  });
  child.unref();
  child.stdin.on("error", () => undefined).end(given);
  return new Promise((resolve, reject) => {
    let said = "";
    const finish = (then: () => void) => {
      onWord();
      child.stdout.destroy();
      then();
    };
    const onWord = unlessWithin(READY_MS, () => {
      child.kill("SIGKILL");
      finish(() => reject(new Error(`it was not ready within ${String(READY_MS)} ms`)));
    });
    child.once("error", (error) => finish(() => reject(error)));
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("\n")) finish(() => resolve(said.trim()));
    });
    child.stdout.once("end", () => finish(() => resolve(said.trim())));
  });
}
