import type { Socket } from "node:net";
import { Transform, Writable, type TransformCallback } from "node:stream";
import { ALIVE, ALIVE_MS, END, objectIn, REST, WATCH } from "./wire.ts";

/**
 * Streams between the socket of one client and its MCP server. `ClientInput` handles control lines (`#...`), `ClientOutput`
 * bounds unread output.
 */

/** Sends `ALIVE` every `ALIVE_MS` from `start` to `stop`, so that the client can tell a busy daemon from a frozen one. */
export class AliveSender {
  readonly #socket: Socket;
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      if (this.#socket.writable) this.#socket.write(`${ALIVE}\n`);
    }, ALIVE_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const NEWLINE = 0x0a;
const HASH = 0x23;

/** Maximum size of the kept part of a control line, bytes. All control words are shorter. */
const MAX_CONTROL_LINE = 64;

/** Removes control lines and handles `WATCH`, `REST` and `END`. Passes MCP lines of any length on, unbuffered. */
export class ClientInput extends Transform {
  readonly #alive: AliveSender;
  readonly #onEnd: () => void;
  /** Beginning of a control line not yet read to its end; `undefined` inside an MCP line. */
  #control: Buffer | undefined;
  #atStart = true;

  /** Calls `onEnd` at the control line `END`: the client has ended its input. */
  constructor(alive: AliveSender, onEnd: () => void) {
    super();
    this.#alive = alive;
    this.#onEnd = onEnd;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, callback: TransformCallback): void {
    this.#pass(chunk, callback);
  }

  /**
   * Passes one line per event-loop turn, because a chunk may hold a thousand calls and would delay other clients and signs of
   * life.
   */
  #pass(chunk: Buffer, callback: TransformCallback): void {
    if (this.#atStart && chunk[0] === HASH) this.#control = Buffer.alloc(0);
    const end = chunk.indexOf(NEWLINE) + 1;
    const part = end === 0 ? chunk : chunk.subarray(0, end);
    if (this.#control) this.#take(part, end > 0);
    else this.push(part);
    this.#atStart = end > 0;
    const rest = chunk.subarray(part.length);
    if (rest.length === 0) return callback();
    setImmediate(() => this.#pass(rest, callback));
  }

  #take(part: Buffer, isWhole: boolean): void {
    const line = Buffer.concat([this.#control ?? Buffer.alloc(0), part.subarray(0, MAX_CONTROL_LINE)]).subarray(
      0,
      MAX_CONTROL_LINE,
    );
    this.#control = isWhole ? undefined : line;
    if (!isWhole) return;
    const word = line.toString("utf8").trimEnd();
    if (word === WATCH) this.#alive.start();
    if (word === REST) this.#alive.stop();
    if (word === END) this.#onEnd();
  }
}

/** Maximum size of the unread output of one client, bytes. */
const MAX_UNREAD = 33_554_432;

/**
 * Buffers unread output up to `MAX_UNREAD`, so that a client that does not read cannot fill the daemon's memory. Above the
 * bound, drops notifications, and at any other message destroys the connection.
 */
export class ClientOutput extends Writable {
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
