import { setTimeout as sleep } from "node:timers/promises";
import { createServer, type Server, type Socket } from "node:net";
import { Transform, Writable, type Readable, type TransformCallback } from "node:stream";
import type { Logger } from "../engine/ports.ts";
import { firstPart, HelloQueue } from "../shim/hello-queue.ts";
import { bind, type Bound, type Naming } from "./socket.ts";
import {
  ALIVE,
  ALIVE_MS,
  firstLine,
  objectIn,
  PROTOCOL,
  readClientHello,
  REST,
  WATCH,
  type ClientHello,
  type DaemonHello,
  type DaemonStatus,
} from "./wire.ts";

/** The daemon's side of the socket: greets who connects, and serves each as one MCP client. */

export interface ListenerOptions extends Naming {
  readonly version: string;
  /** The most connections at a time; who comes then is refused. */
  readonly maxConnections: number;
  /** Serves one client, by the purpose in its hello; calls `onClose` when it is done with it. */
  readonly serve: (client: DaemonClient) => void;
  readonly status: () => Promise<Omit<DaemonStatus, "proxies" | "socket">>;
  /** Asked to stop by who may connect. */
  readonly onStop: () => void;
  /** The number of connected clients has changed. */
  readonly onCount: (clients: number) => void;
  readonly log: Pick<Logger, "debug" | "info" | "warn">;
}

export interface DaemonClient {
  readonly hello: ClientHello;
  readonly streams: { readonly stdin: Readable; readonly stdout: Writable };
  readonly onClose: () => void;
}

/** How long clients have to read their last answers, ms. */
const LAST_WORDS_MS = 2_000;
/** Who connects says hello at once. ms */
const HELLO_MS = 5_000;
/** Interval of looks at the socket, that of the heartbeats in the store. ms */
const LOOK_MS = 5_000;

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
    const { maxConnections, onStop, status } = this.#options;
    const hello = readClientHello(await this.#helloOf(socket));
    if (hello.purpose === "stop") {
      // The connection ends with the process: the client that asked for the end sees the end by that, and a freeze by silence.
      socket.write(this.#hello());
      new SignsOfLife(socket).watch();
      return void setImmediate(onStop);
    }
    if (hello.purpose === "status") {
      const about: DaemonStatus = {
        ...(await status()),
        proxies: this.clients,
        socket: this.#bound?.path ?? "",
      };
      socket.end(`${JSON.stringify(about)}\n`);
      return;
    }
    if (this.#isEnding) return this.#refuse(socket, "the daemon is about to end", { isEnding: true });
    if (this.clients >= maxConnections) {
      this.#refuse(socket, `the daemon has ${String(this.clients)} clients, as many as its file descriptors allow`);
      return;
    }
    this.#serve(socket, hello);
  }

  #serve(socket: Socket, hello: ClientHello): void {
    const { log, onCount, serve } = this.#options;
    this.#clients.add(socket);
    onCount(this.clients);
    socket.write(this.#hello());
    const life = new SignsOfLife(socket);
    const inbound = new Inbound(life);
    const outbound = new Outbound(socket, () => log.warn("a client that read nothing was cut off"));
    let isGone = false;
    const gone = () => {
      if (isGone) return;
      isGone = true;
      life.rest();
      this.#clients.delete(socket);
      inbound.end();
      onCount(this.clients);
    };
    socket.once("close", gone);
    // The reading side ends first where a client has ended in order: no answer is read any more.
    socket.once("end", () => socket.destroySoon());
    socket.pipe(inbound, { end: true });
    const onClose = () => socket.destroySoon();
    serve({ hello, streams: { stdin: inbound, stdout: outbound }, onClose });
  }

  #refuse(socket: Socket, refused: string, more: Pick<DaemonHello, "isEnding"> = {}): void {
    socket.end(this.#hello({ refused, ...more }));
  }

  #hello(more: Pick<DaemonHello, "isEnding" | "refused"> = {}): string {
    const hello: DaemonHello = { protocol: PROTOCOL, pid: process.pid, version: this.#options.version, ...more };
    return `${JSON.stringify(hello)}\n`;
  }
}

/** Says each second that this process lives, while calls of the client are open. */
class SignsOfLife {
  readonly #socket: Socket;
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  watch(): void {
    this.#timer ??= setInterval(() => {
      if (this.#socket.writable) this.#socket.write(`${ALIVE}\n`);
    }, ALIVE_MS);
  }

  rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const NEWLINE = 0x0a;
const HASH = 0x23;

/** Bytes that are kept of a line between the ends. The words there are shorter. */
const MAX_OWN = 64;

/** Takes the lines out that are between the ends. Lines of MCP pass as they come, whatever their length. */
class Inbound extends Transform {
  readonly #life: SignsOfLife;
  /** The beginning of a line for us; undefined inside a line of MCP. */
  #own: Buffer | undefined;
  #atStart = true;

  constructor(life: SignsOfLife) {
    super();
    this.#life = life;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, callback: TransformCallback): void {
    this.#pass(chunk, callback);
  }

  /** One line at a time, so that other clients and signs of life have their turn: a chunk may hold a thousand calls. */
  #pass(chunk: Buffer, callback: TransformCallback): void {
    if (this.#atStart && chunk[0] === HASH) this.#own = Buffer.alloc(0);
    const end = chunk.indexOf(NEWLINE) + 1;
    const part = end === 0 ? chunk : chunk.subarray(0, end);
    if (this.#own) this.#take(part, end > 0);
    else this.push(part);
    this.#atStart = end > 0;
    const rest = chunk.subarray(part.length);
    if (rest.length === 0) return callback();
    setImmediate(() => this.#pass(rest, callback));
  }

  #take(part: Buffer, isWhole: boolean): void {
    const line = Buffer.concat([this.#own ?? Buffer.alloc(0), part.subarray(0, MAX_OWN)]).subarray(0, MAX_OWN);
    this.#own = isWhole ? undefined : line;
    if (!isWhole) return;
    const word = line.toString("utf8").trimEnd();
    if (word === WATCH) this.#life.watch();
    if (word === REST) this.#life.rest();
  }
}

/** Bytes that one client may leave unread. */
const MAX_UNREAD = 33_554_432;

/** Holds what a client has not read, within bounds: beyond them it gets no notifications, then no connection. */
class Outbound extends Writable {
  readonly #socket: Socket;
  readonly #onCut: () => void;

  constructor(socket: Socket, onCut: () => void) {
    super({ decodeStrings: false });
    this.#socket = socket;
    this.#onCut = onCut;
  }

  override _write(chunk: Buffer | string, _: BufferEncoding, callback: () => void): void {
    const socket = this.#socket;
    if (!socket.writable) return callback();
    if (socket.writableLength > MAX_UNREAD) {
      if (!isNotification(chunk)) {
        this.#onCut();
        socket.destroy();
      }
      return callback();
    }
    socket.write(chunk);
    callback();
  }
}

function isNotification(line: Buffer | string): boolean {
  try {
    const { id, method } = objectIn(line.toString());
    return id === undefined && method !== undefined;
  } catch {
    return false;
  }
}
