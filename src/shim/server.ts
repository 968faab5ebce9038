import { ShimChild, type StartMessage } from "./shim-child.ts";
import type { Connection } from "./connection.ts";
import { Refusal } from "./exchange.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { type Frame, ProtocolError } from "./frame.ts";
import { type Program, ReaperPipe, DaemonRestarter, type RestartProgram } from "./reaper-and-restarter.ts";
import { readToShim, SHIM_PROTOCOL, type ToShim } from "./protocol.ts";
import { ShimSocket } from "./socket.ts";

export interface ShimOptions {
  /** Name of the daemon, equal for all owners. */
  readonly daemon: string;
  readonly identity: { readonly pid: number; readonly startedAt: string };
  /** Time for which a process without an owner is kept, ms. */
  readonly keepMs: number;
  readonly restart?: RestartProgram | undefined;
  /** Time without an owner before `restart` runs, ms. */
  readonly restartAfterMs: number;
  readonly reaper?: Program | undefined;
  readonly log: (text: string) => void;
  /** Called before the shim ends a session's process unasked. `why` is a sentence. */
  readonly onGivenUp: (id: string, why: string) => void;
  /** Called when the shim has no process and no owner needs the shim. */
  readonly onEnd: () => void;
}

/** Time for the first connection to come, ms. */
const FIRST_CONNECTION_MS = 30_000;
const KEEP_PARTS = 10;

type ToProcess = Exclude<ToShim, { t: "hello" | "start" | "attach" | "lease" | "list" | "reaper" | "end" }>;

/** Server of a shim: connections, processes, and the owner of each process. */
export class ShimServer {
  readonly #options: ShimOptions;
  readonly #socket: ShimSocket;
  readonly #processes = new Map<string, ShimChild>();
  readonly #waiting = new Map<ShimChild, NodeJS.Timeout>();
  readonly #reaper: ReaperPipe;
  readonly #restarts: DaemonRestarter;
  readonly #leases = new LeaseWatch((process) => this.#onLeasePassed(process));
  /** Set by a signal. */
  #isEnding = false;

  constructor(options: ShimOptions) {
    this.#options = options;
    this.#reaper = new ReaperPipe(options.reaper);
    const { log, restart: program, restartAfterMs: afterMs } = options;
    const isWanted = () => this.#attachable().some(({ exchange: { epoch } }) => epoch > 0);
    const onUnwanted = () => this.#attachable().forEach((process) => this.#abandon(process));
    this.#restarts = new DaemonRestarter({ program, afterMs, log, isWanted, onUnwanted });
    this.#socket = new ShimSocket({
      frame: (connection, frame) => this.#onFrame(connection, frame),
      closed: (connection) => this.#onClosed(connection),
      fault: log,
    });
  }

  /** Resolves once neither the shim nor its reaper needs the package any more. Rejects with the system error. */
  async listen(path: string): Promise<void> {
    await this.#reaper.load();
    await this.#socket.listen(path);
    setTimeout(() => this.#endIfUnused(), FIRST_CONNECTION_MS);
  }

  /** Removes the socket. Resolves after all answers are sent, or after a second. */
  async close(): Promise<void> {
    await this.#socket.close();
  }

  /** Ends all processes by the stop recipe, then the shim. */
  stop(why: string): void {
    this.#options.log(`${why}: ${String(this.#processes.size)} processes are ended`);
    this.#isEnding = true;
    for (const process of this.#processes.values()) this.#giveUp(process, `Its shim was ended by ${why}.`);
    this.#endIfUnused();
  }

  #onFrame(connection: Connection, { body, header }: Frame): void {
    try {
      const message = readToShim(header);
      if (connection.isGreeted) this.#carryOut(connection, message, body);
      else this.#greet(connection, message);
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof ProtocolError)) throw error;
      const { id, lineId, t: of } = header;
      const named = { ...(typeof id === "string" && { id }), ...(typeof lineId === "string" && { lineId }) };
      connection.answer({ t: "refused", of, ...named, message: error.message });
      if (!connection.isGreeted) connection.end();
    }
  }

  #greet(connection: Connection, message: ToShim): void {
    if (message.t !== "hello") throw new ProtocolError("the first message is not a hello");
    connection.answer({ t: "hello", protocol: SHIM_PROTOCOL, ...this.#options.identity });
    const { daemon } = this.#options;
    if (message.protocol !== SHIM_PROTOCOL)
      throw new ProtocolError(`only protocol ${String(SHIM_PROTOCOL)} is supported`);
    if (message.daemon !== daemon) throw new Refusal(`this shim belongs to the daemon ${daemon}`);
    connection.greet();
    this.#restarts.ownerCame();
  }

  #carryOut(connection: Connection, message: ToShim, body: Buffer): void {
    switch (message.t) {
      case "hello":
        throw new Refusal("the hello was sent before");
      case "start":
        return this.#start(connection, { ...message, record: body });
      case "attach":
        return this.#attach(connection, message);
      case "lease": {
        const own = [...this.#processes.values()].filter(({ exchange: { owner } }) => owner === connection);
        return this.#leases.renew(connection, message.forMs, own);
      }
      case "list":
        return connection.answer({
          t: "processes",
          processes: [...this.#processes.values()].map(({ listed }) => listed),
        });
      case "reaper":
        return this.#sendToReaper(connection, message.line);
      case "end":
        connection.isDone = true;
        return this.#endIfUnused();
      case "write":
      case "ack":
      case "end-input":
      case "signal":
      case "kill":
      case "bound":
        return this.#control(connection, message, body);
    }
  }

  #control(connection: Connection, message: ToProcess, body: Buffer): void {
    const process = this.#processOf(message.id);
    process.exchange.check(connection, message.epoch);
    if (message.t === "write") this.#leases.check(connection);
    switch (message.t) {
      case "write":
        return this.#write(connection, process, message.lineId, body);
      case "ack":
        process.acknowledge(message.upTo);
        if (process.exchange.lines.isDone) this.#forget(process);
        return;
      case "end-input":
        return process.endInput();
      case "signal":
        return process.signal(message.signal);
      case "kill":
        return process.kill();
      case "bound":
        process.isBound = true;
    }
  }

  #start(connection: Connection, message: StartMessage & { readonly record: Buffer }): void {
    const { id } = message;
    const fail = (error: unknown) => {
      const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
      const text = error instanceof Error ? error.message : String(error);
      connection.answer({ t: "failed", id, message: text, ...(code !== undefined && { code }) });
    };
    if (this.#isEnding || connection.isDone) return fail(new Error("this shim is ending"));
    if (this.#processes.has(id)) return fail(new Error("a process has this id"));
    try {
      this.#leases.check(connection);
      this.#reaper.ready();
      const process: ShimChild = new ShimChild(message, connection, {
        news: (mayWait) => process.exchange.owner?.offer(process, mayWait),
        exited: () => this.#onExited(process),
      });
      this.#processes.set(id, process);
      this.#leases.bind(process, connection);
      this.#report(connection, process).catch((error: unknown) => {
        fail(error);
        this.#forget(process);
      });
    } catch (error) {
      fail(error);
    }
  }

  /** Rejects if `process` could not be started. */
  async #report(connection: Connection, process: ShimChild): Promise<void> {
    const identity = await process.started();
    this.#reaper.send(`+${String(identity.pid)} ${process.tag}`);
    connection.answer({ t: "started", id: process.id, ...identity });
    process.exchange.owner?.offer(process);
  }

  #attach(connection: Connection, message: Extract<ToShim, { t: "attach" }>): void {
    this.#leases.check(connection);
    const process = this.#processOf(message.id);
    const { body, former, header } = process.attach(connection, message);
    former?.answer({ t: "superseded", id: process.id });
    clearTimeout(this.#waiting.get(process));
    this.#waiting.delete(process);
    process.isBound = false;
    this.#leases.bind(process, connection);
    connection.answer(header, body);
    connection.offer(process);
  }

  /** Throws `Refusal` if another connection owns the process that the reaper would forget. */
  #sendToReaper(connection: Connection, line: string): void {
    const named = [...this.#processes.values()].find(({ pid }) => pid !== undefined && line === `-${String(pid)}`);
    const owner = named?.exchange.owner;
    if (owner && owner !== connection) throw new Refusal("another connection owns this process");
    this.#reaper.ready();
    this.#reaper.send(line);
  }

  #write(connection: Connection, process: ShimChild, lineId: string, line: Buffer): void {
    const { id } = process;
    process.write(lineId, line, (again, error) => {
      if (error) connection.answer({ t: "refused", of: "write", id, lineId, message: error.message });
      else connection.answer({ t: "written", id, lineId, again });
    });
  }

  #processOf(id: string): ShimChild {
    const process = this.#processes.get(id);
    if (process) return process;
    throw new Refusal("no process has this id");
  }

  #onExited(process: ShimChild): void {
    if (process.isAbandoned) this.#forget(process);
  }

  #onClosed(connection: Connection): void {
    for (const process of this.#processes.values()) {
      if (process.exchange.release(connection)) this.#released(process);
    }
    if (connection.isGreeted && ![...this.#socket.connections].some(({ isGreeted }) => isGreeted))
      this.#restarts.ownerWent();
    this.#endIfUnused();
  }

  #released(process: ShimChild): void {
    if (process.isBound) {
      this.#abandon(process, true);
      return;
    }
    const { keepMs, log } = this.#options;
    const onTime = () => {
      log(`no owner came for process ${process.id} within ${String(keepMs)} ms: it is ended`);
      const kept = `Its shim kept Claude Code for ${String(keepMs / 1000)} s`;
      this.#giveUp(process, `${kept}, and no server came for it.`);
    };
    // Counts in `KEEP_PARTS`, so that a freeze of the shim uses up one part at most: a new owner may be connecting by then.
    const wait = (parts: number) => {
      const timer = setTimeout(() => (parts > 1 ? wait(parts - 1) : onTime()), keepMs / KEEP_PARTS);
      this.#waiting.set(process, timer);
    };
    wait(KEEP_PARTS);
  }

  /** Keeps the last lines and the exit of a process that has ended by itself. */
  #onLeasePassed(process: ShimChild): void {
    if (process.hasExited) return;
    this.#options.log(`the node of process ${process.id} has not renewed its lease: it is ended`);
    process.kill();
    this.#giveUp(process, "Its node did not renew its lease in time, so its shim ended Claude Code.");
  }

  #giveUp(process: ShimChild, why: string): void {
    // A spare has no session that could report the end.
    if (process.exchange.epoch > 0 && !process.isAbandoned) this.#options.onGivenUp(process.id, why);
    this.#abandon(process);
  }

  #abandon(process: ShimChild, atOnce = false): void {
    process.abandon();
    if (process.isFinished) this.#forget(process);
    else process.stop(atOnce);
  }

  #forget(process: ShimChild): void {
    clearTimeout(this.#waiting.get(process));
    this.#waiting.delete(process);
    this.#leases.forget(process);
    this.#processes.delete(process.id);
    this.#endIfUnused();
  }

  /** Returns processes that an owner can still get. Only spares have epoch 0; ending a spare loses no work. */
  #attachable(): ShimChild[] {
    return [...this.#processes.values()].filter(({ isAbandoned }) => !isAbandoned);
  }

  /** Ends the shim only if every connection has said `end`: a leaving daemon must not end a shim that another daemon uses. */
  #endIfUnused(): void {
    if (this.#processes.size > 0) return;
    if (this.#isEnding || [...this.#socket.connections].every(({ isDone }) => isDone)) this.#options.onEnd();
  }
}
