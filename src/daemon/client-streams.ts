import type { Socket } from "node:net";
import { Transform, Writable, type TransformCallback } from "node:stream";
import { ALIVE, ALIVE_MS, END, objectIn, REST, WATCH } from "./wire.ts";

/** The streams of one client between the socket and the server: without the lines of the two ends, and within bounds. */

/** Says each second that this process lives, while calls of the client are open. */
export class SignsOfLife {
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
export class Inbound extends Transform {
  readonly #life: SignsOfLife;
  readonly #onEnd: () => void;
  /** The beginning of a line for us; undefined inside a line of MCP. */
  #own: Buffer | undefined;
  #atStart = true;

  /** `onEnd`: the client has ended its input. */
  constructor(life: SignsOfLife, onEnd: () => void) {
    super();
    this.#life = life;
    this.#onEnd = onEnd;
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
    if (word === END) this.#onEnd();
  }
}

/** Bytes that one client may leave unread. */
const MAX_UNREAD = 33_554_432;

/** Holds what a client has not read, within bounds: beyond them it gets no notifications, then no connection. */
export class Outbound extends Writable {
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
