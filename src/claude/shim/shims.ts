import { uptime } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { ShimRef } from "../../domain/process.ts";
import type { SessionState } from "../../domain/session.ts";
import type { ShimRelation } from "../../engine/ports.ts";
import type { ListedProcess } from "../../shim/protocol.ts";
import { isElsewhere } from "../supervise/machine.ts";
import { ShimConnection } from "./connection.ts";
import { type Program, type ShimSettings, startShim } from "./start-shim.ts";
import { isShimAlive } from "./why-gone.ts";

/**
 * Manages the shims of this server: the shim for new processes, started with the first process at the latest, and shims that
 * former servers with the same daemon name have left.
 */

/** Report of a shim, for people. */
export interface ShimReport {
  readonly pid: number;
  readonly address: string;
  readonly processes: readonly { readonly pid: number; readonly startedAt: string }[];
}

/** Maximum number of shims to try for one that answers. */
const MAX_SHIMS = 2;

export class Shims {
  readonly #settings: ShimSettings;
  readonly #reaper: Program | undefined;
  #own: Promise<ShimConnection> | undefined;
  readonly #others = new Map<string, Promise<ShimConnection>>();
  /** Addresses of shims started by this server, skipped by `adopt`. */
  readonly #addresses = new Set<string>();
  #adopted: Promise<void> = Promise.resolve();
  #isClosing = false;
  #fallback: string | undefined;
  /** End of the lease of this node, in ms since the start of the system; `undefined` for a store of one machine. */
  #leaseUntil: number | undefined;

  /** `reaper` is the program that each shim starts beside Claude Code. */
  constructor(settings: ShimSettings, reaper: Program | undefined) {
    this.#settings = settings;
    this.#reaper = reaper;
  }

  /** Reason for starting the last process without a shim. */
  get fallback(): string | undefined {
    return this.#fallback;
  }

  /**
   * Returns the shim for new processes once it has answered a request. Replaces a silent shim. Returns `undefined` if no shim
   * can be started; `fallback` then has the reason.
   */
  async own(tries = MAX_SHIMS): Promise<ShimConnection | undefined> {
    if (this.#isClosing) return undefined;
    const own = (this.#own ??= this.#start());
    try {
      const connection = await own;
      const silence = await findFault(connection);
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
      this.#settings.log.warn("no shim: new processes end with this server", { why: this.#fallback });
      return undefined;
    }
  }

  /** Sends no more new processes to the shim of `connection`. Running processes continue there. */
  #leave(connection: ShimConnection, own: Promise<ShimConnection>, why: string): void {
    this.#own = undefined;
    if (connection.isClosed) return;
    this.#settings.log.warn("a shim is frozen: new processes start in another shim", {
      pid: connection.pid,
      why,
    });
    this.#keep(connection.address, own);
    connection.end();
  }

  /** Tells all shims for how long the processes of this server are good. Shims that follow are told at their start. */
  leaseRenewed(forMs: number): void {
    this.#leaseUntil = now() + forMs;
    for (const opened of [this.#own, ...this.#others.values()])
      opened?.then(
        (connection) => this.#tellLease(connection),
        () => undefined,
      );
  }

  #tellLease(connection: ShimConnection): ShimConnection {
    const until = this.#leaseUntil;
    if (until !== undefined) connection.send({ t: "lease", forMs: Math.max(0, Math.floor(until - now())) });
    return connection;
  }

  refOf({ address, pid, startedAt }: ShimConnection): ShimRef {
    const { daemon, keepMs, sdk } = this.#settings;
    return { address, pid, startedAt, daemon, sdk, keepMs };
  }

  async relationTo(process: SessionState["process"]): Promise<ShimRelation> {
    const { daemon, sdk } = this.#settings;
    const shim = shimIn(process);
    if (shim?.daemon !== daemon) return relationWithoutShims(process);
    // A server attaches only to processes of its own SDK version. With another version here, no server can, because only this
    // server has the daemon name.
    return shim.sdk === sdk && (await isShimAlive(shim)) ? "ours" : "gone";
  }

  /** Connects to the shim of a recorded process. Rejects if the shim is gone. */
  async connectTo({ address, pid, startedAt }: ShimRef): Promise<ShimConnection> {
    const own = await this.#own?.catch(() => undefined);
    const connection = own?.address === address ? own : await this.#other(address);
    if (connection.pid === pid && connection.startedAt === startedAt) return connection;
    throw new Error("the socket now belongs to another shim");
  }

  /**
   * Connects to the shims left by former servers of this daemon name, so that each shim knows of a living server. Ends the
   * spares there, because no session can claim a spare of a former server. Call only in the server that holds the name.
   */
  adopt(): void {
    const { log } = this.#settings;
    this.#adopted = this.#adoptAll().catch((error: unknown) =>
      log.warn("shims of a former server", { error: String(error) }),
    );
  }

  /** Ends process `id` if the shim of a former server still has it. Call only if no session can continue with the process. */
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
    for (const address of await this.#settings.findSockets()) {
      if (this.#addresses.has(address)) continue;
      try {
        const connection = await this.#other(address);
        const processes = await connection.list();
        this.#settings.log.info("a former server has left a shim", {
          pid: connection.pid,
          processes: processes.length,
        });
        // An owned process means that another server of this daemon name lives: frozen for a while, or with a separate address.
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

  /** Lists the connected shims and their processes. */
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

  /** Closes the connections. Each shim ends after its last process. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const all = await Promise.allSettled([this.#own, ...this.#others.values()]);
    for (const each of all) if (each.status === "fulfilled") each.value?.end();
  }

  async #other(address: string): Promise<ShimConnection> {
    const known = this.#others.get(address);
    if (known && !(await known).isClosed) return known;
    const opened = ShimConnection.open(address, this.#settings).then((connection) => this.#tellLease(connection));
    this.#keep(address, opened);
    return opened;
  }

  #keep(address: string, opened: Promise<ShimConnection>): void {
    this.#others.set(address, opened);
    const forget = () => void (this.#others.get(address) === opened && this.#others.delete(address));
    opened.then(async ({ closed }) => closed.then(forget), forget);
  }

  async #start(): Promise<ShimConnection> {
    const { log, newAddress } = this.#settings;
    const address = await newAddress();
    this.#addresses.add(address);
    const said = await startShim(address, this.#settings, this.#reaper);
    if (!said.startsWith("ready ")) throw new Error(said === "" ? "it ended without output" : said);
    const connection = this.#tellLease(await ShimConnection.open(address, this.#settings));
    log.debug("a shim is ready", { pid: connection.pid });
    return connection;
  }
}

/** Counts sleep of the machine, other than `performance.now`. */
function now(): number {
  return uptime() * 1_000;
}

/** Asks the shim for its processes. Returns the error if the shim does not answer, otherwise `undefined`. */
async function findFault(connection: ShimConnection): Promise<string | undefined> {
  return connection.list().then(
    () => undefined,
    (error: unknown) => String(error),
  );
}

/** Relation for a server that cannot attach to any shim: `theirs` if the shim lives, otherwise `gone`. */
export async function relationWithoutShims(process: SessionState["process"]): Promise<ShimRelation> {
  const shim = shimIn(process);
  return shim && (await isShimAlive(shim)) ? "theirs" : "gone";
}

/** Returns `undefined` for a shim of another machine: its pid and its socket mean something else here. */
function shimIn(process: SessionState["process"]): ShimRef | undefined {
  return process.phase === "none" || isElsewhere(process.host) ? undefined : process.shim;
}

/** Time limit for the exit of a killed process, ms. */
const END_MS = 5_000;

/**
 * Ends a process that belongs to no session, and acknowledges the exit, so that the shim forgets the process. Also resolves if
 * another server has become the owner.
 */
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
