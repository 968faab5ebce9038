import { setTimeout as sleep } from "node:timers/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { ClientInput, ClientOutput, AliveSender } from "./client-streams.ts";
import { ConfigError } from "../config/error.ts";
import type { Logger } from "../engine/ports.ts";
import { firstPart, HelloQueue } from "../shim/hello-queue.ts";
import { bind, type BoundSocket, type BindOptions } from "./socket.ts";
import {
  firstLine,
  PROTOCOL,
  readClientHello,
  type ClientHello,
  type DaemonHello,
  type DaemonStatus,
  type Question,
} from "./wire.ts";

/** Daemon's side of the socket: greets connections and serves each as one client. */

export interface ListenerOptions extends BindOptions {
  readonly version: string;
  /** Maximum number of clients. Further ones are refused. */
  readonly maxConnections: number;
  /**
   * Resolves to the function that serves the client of `hello`. Rejects with `ConfigError` if the client's own settings prevent
   * that.
   */
  readonly accept: (hello: ClientHello) => Promise<Serve>;
  readonly status: () => Promise<Omit<DaemonStatus, "proxies" | "socket">>;
  /** Called for a `stop` question. */
  readonly onStop: () => void;
  /** Called after each change of the number of connected clients. */
  readonly onCount: (clients: number) => void;
  readonly log: Pick<Logger, "debug" | "info" | "warn">;
}

/** Serves one client, then calls `onClose`. */
export type Serve = (client: DaemonClient) => void;

export interface DaemonClient {
  readonly streams: { readonly stdin: Readable; readonly stdout: Writable };
  readonly onClose: () => void;
}

/** Time limit for clients to read their last answers, ms. */
const LAST_ANSWERS_MS = 2_000;
/** Time limit for the hello, which clients send as soon as they are connected, ms. */
const HELLO_MS = 5_000;
/** Interval of checks for a removed socket, ms. Equal to the heartbeat interval of the store. */
const LOOK_MS = 5_000;

const NEWLINE = 0x0a;

export class Listener {
  readonly #options: ListenerOptions;
  #server: Server;
  readonly #clients = new Set<Socket>();
  readonly #hellos = new HelloQueue();
  #bound: BoundSocket | undefined;
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
        // A starting daemon only probes for a listener (`isDead`) and disconnects.
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
    // `refuseNew` was called during `bind`.
    if (this.#isEnding) await this.refuseNew();
    else this.#scheduleCheck();
    return this.#bound.path;
  }

  #scheduleCheck(): void {
    const again = () => !this.#isEnding && this.#scheduleCheck();
    this.#looking = setTimeout(() => void this.#rebindIfRemoved().finally(again), LOOK_MS).unref();
  }

  /** Binds the socket again after its removal, because clients would start another daemon. Existing connections go on. */
  async #rebindIfRemoved(): Promise<void> {
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

  /** Stops listening. Existing connections go on. */
  async refuseNew(): Promise<void> {
    this.#isEnding = true;
    clearTimeout(this.#looking);
    await this.#bound?.release();
    this.#server.close();
  }

  /** Ends the remaining connections after sending pending output, within `LAST_ANSWERS_MS`. */
  async end(): Promise<void> {
    const all = [...this.#clients].map(async (socket) => {
      // Waits for "close", which also follows an error: rejecting here would cut the other connections off.
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.destroySoon();
      await closed;
    });
    await Promise.race([Promise.all(all), sleep(LAST_ANSWERS_MS)]);
  }

  async #readHello(socket: Socket): Promise<string> {
    const first = await firstPart(socket, HELLO_MS);
    if (first.length === 0) throw new Error(`no hello within ${String(HELLO_MS)} ms`);
    return this.#hellos.run(async () => firstLine(socket, HELLO_MS), first.includes(NEWLINE));
  }

  async #greet(socket: Socket): Promise<void> {
    const { maxConnections } = this.#options;
    const hello = readClientHello(await this.#readHello(socket));
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
      // Leaves the connection open until the process ends, so that `stopDaemon` sees the end as a disconnect and a freeze as
      // silence.
      socket.write(this.#hello());
      new AliveSender(socket).start();
      return void setImmediate(onStop);
    }
    const about: DaemonStatus = { ...(await status()), proxies: this.clients, socket: this.#bound?.path ?? "" };
    socket.end(`${JSON.stringify(about)}\n`);
  }

  /** Resolves to `undefined` if the client was refused. */
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
    const life = new AliveSender(socket);
    const onEnd = () => {
      // Discards input after `END`: no MCP messages follow.
      socket.unpipe(inbound).resume();
      inbound.end();
    };
    const inbound = new ClientInput(life, onEnd);
    const outbound = new ClientOutput(socket, () => log.warn("a client that read nothing was cut off"));
    let isGone = false;
    const gone = () => {
      if (isGone) return;
      isGone = true;
      life.stop();
      this.#clients.delete(socket);
      // Drops further answers to the client.
      outbound.destroy();
      inbound.end();
      onCount(this.clients);
    };
    socket.once("close", gone);
    // An ended proxy reads no answers.
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
