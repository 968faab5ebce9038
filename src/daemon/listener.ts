import { setTimeout as sleep } from "node:timers/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { Inbound, Outbound, SignsOfLife } from "./client-streams.ts";
import { ConfigError } from "../config/error.ts";
import type { Logger } from "../engine/ports.ts";
import { firstPart, HelloQueue } from "../shim/hello-queue.ts";
import { bind, type Bound, type Naming } from "./socket.ts";
import {
  firstLine,
  PROTOCOL,
  readClientHello,
  type ClientHello,
  type DaemonHello,
  type DaemonStatus,
  type Question,
} from "./wire.ts";

/** The daemon's side of the socket: greets who connects, and serves each as one MCP client. */

export interface ListenerOptions extends Naming {
  readonly version: string;
  /** The most connections at a time; who comes then is refused. */
  readonly maxConnections: number;
  /** Resolves to what serves the client of this hello. Rejects with ConfigError for one whose own settings keep it from being served. */
  readonly accept: (hello: ClientHello) => Promise<Serve>;
  readonly status: () => Promise<Omit<DaemonStatus, "proxies" | "socket">>;
  /** Asked to stop by who may connect. */
  readonly onStop: () => void;
  /** The number of connected clients has changed. */
  readonly onCount: (clients: number) => void;
  readonly log: Pick<Logger, "debug" | "info" | "warn">;
}

/** Calls `onClose` when it is done with the client. */
export type Serve = (client: DaemonClient) => void;

export interface DaemonClient {
  readonly streams: { readonly stdin: Readable; readonly stdout: Writable };
  readonly onClose: () => void;
}

/** How long clients have to read their last answers, ms. */
const LAST_WORDS_MS = 2_000;
/** Who connects says hello at once. ms */
const HELLO_MS = 5_000;
/** Interval of looks at the socket, that of the heartbeats in the store. ms */
const LOOK_MS = 5_000;

const NEWLINE = 0x0a;

export class Listener {
  readonly #options: ListenerOptions;
  #server: Server;
  readonly #clients = new Set<Socket>();
  readonly #hellos = new HelloQueue();
  #bound: Bound | undefined;
  #isEnding = false;
  #looking: NodeJS.Timeout | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#server = this.#newServer();
  }

  #newServer(): Server {
    const { log } = this.#options;
    const server = createServer((socket) => {
      socket.on("error", (error) => log.debug("a connection broke", { error: String(error) }));
      this.#greet(socket).catch((error: unknown) => {
        // A daemon that starts only asks whether this one is there.
        if (!socket.writable) return log.debug("a connection ended before its hello");
        log.warn("a connection was refused", { error: String(error) });
        this.#refuse(socket, String(error));
      });
    });
    return server.on("error", (error) => log.warn("the socket cannot take connections", { error: String(error) }));
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Resolves to the path of the socket. */
  async listen(): Promise<string> {
    this.#bound = await bind(this.#server, this.#options);
    // `refuseNew` was called while it bound.
    if (this.#isEnding) await this.refuseNew();
    else this.#lookLater();
    return this.#bound.path;
  }

  #lookLater(): void {
    const again = () => !this.#isEnding && this.#lookLater();
    this.#looking = setTimeout(() => void this.#look().finally(again), LOOK_MS).unref();
  }

  /** Binds a removed socket again. Its connections go on; without a socket, clients would start another daemon. */
  async #look(): Promise<void> {
    if (!(await this.#bound?.isRemoved())) return;
    const { log } = this.#options;
    const server = this.#newServer();
    try {
      this.#bound = await bind(server, { ...this.#options, mayDisplace: false });
      this.#server.close();
      this.#server = server;
      log.warn("the socket was removed: it is bound again", { socket: this.#bound.path });
      if (this.#isEnding) await this.refuseNew();
    } catch (error) {
      log.debug("the socket cannot be bound again", { error: String(error) });
    }
  }

  /** Takes no more connections; those that are there go on. */
  async refuseNew(): Promise<void> {
    this.#isEnding = true;
    clearTimeout(this.#looking);
    await this.#bound?.release();
    this.#server.close();
  }

  /** Ends the connections that are left. What was written to them is sent first, as far as they read it in time. */
  async end(): Promise<void> {
    const all = [...this.#clients].map(async (socket) => {
      // An error is followed by "close", and must not cut the others off.
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.destroySoon();
      await closed;
    });
    await Promise.race([Promise.all(all), sleep(LAST_WORDS_MS)]);
  }

  async #helloOf(socket: Socket): Promise<string> {
    const first = await firstPart(socket, HELLO_MS);
    if (first.length === 0) throw new Error(`no hello within ${String(HELLO_MS)} ms`);
    return this.#hellos.run(async () => firstLine(socket, HELLO_MS), first.includes(NEWLINE));
  }

  async #greet(socket: Socket): Promise<void> {
    const { maxConnections } = this.#options;
    const hello = readClientHello(await this.#helloOf(socket));
    if (!("cwd" in hello)) return this.#answer(socket, hello.purpose);
    const serve = await this.#accepted(socket, hello);
    if (!serve) return;
    if (this.#isEnding) return this.#refuse(socket, "the daemon is about to end", { isEnding: true });
    if (this.clients >= maxConnections) {
      this.#refuse(socket, `the daemon has ${String(this.clients)} clients, as many as its file descriptors allow`);
      return;
    }
    if (!socket.destroyed) this.#serve(socket, serve);
  }

  async #answer(socket: Socket, purpose: Question["purpose"]): Promise<void> {
    const { onStop, status } = this.#options;
    if (purpose === "stop") {
      // The connection ends with the process: the client that asked for the end sees the end by that, and a freeze by silence.
      socket.write(this.#hello());
      new SignsOfLife(socket).watch();
      return void setImmediate(onStop);
    }
    const about: DaemonStatus = { ...(await status()), proxies: this.clients, socket: this.#bound?.path ?? "" };
    socket.end(`${JSON.stringify(about)}\n`);
  }

  /** Resolves to undefined for a client that was refused. */
  async #accepted(socket: Socket, hello: ClientHello): Promise<Serve | undefined> {
    try {
      return await this.#options.accept(hello);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#refuse(socket, error.message, { isOfClient: true });
      return undefined;
    }
  }

  #serve(socket: Socket, serve: Serve): void {
    const { log, onCount } = this.#options;
    this.#clients.add(socket);
    onCount(this.clients);
    socket.write(this.#hello());
    const life = new SignsOfLife(socket);
    const onEnd = () => {
      // From now on the client's end speaks to the daemon alone.
      socket.unpipe(inbound).resume();
      inbound.end();
    };
    const inbound = new Inbound(life, onEnd);
    const outbound = new Outbound(socket, () => log.warn("a client that read nothing was cut off"));
    let isGone = false;
    const gone = () => {
      if (isGone) return;
      isGone = true;
      life.rest();
      this.#clients.delete(socket);
      // No client is to be answered any more.
      outbound.destroy();
      inbound.end();
      onCount(this.clients);
    };
    socket.once("close", gone);
    // The client's end has ended: no answer is read any more.
    socket.once("end", () => socket.destroySoon());
    socket.pipe(inbound, { end: true });
    const onClose = () => socket.destroySoon();
    serve({ streams: { stdin: inbound, stdout: outbound }, onClose });
  }

  #refuse(socket: Socket, refused: string, more: Pick<DaemonHello, "isEnding" | "isOfClient"> = {}): void {
    socket.end(this.#hello({ refused, ...more }));
  }

  #hello(more: Omit<DaemonHello, "pid" | "protocol" | "version"> = {}): string {
    const hello: DaemonHello = { protocol: PROTOCOL, pid: process.pid, version: this.#options.version, ...more };
    return `${JSON.stringify(hello)}\n`;
  }
}
