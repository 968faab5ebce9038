import type { Socket } from "node:net";
import { type Frame, FrameReader, MAX_BODY, writeFrame } from "./frame.ts";
import type { FromShim } from "./protocol.ts";

/** Makes frames for a connection on demand, so that frames are made only if there is room. */
export interface FrameSource {
  next(connection: Connection): { readonly header: FromShim; readonly body?: Buffer } | undefined;
}

interface ConnectionHandlers {
  frame(connection: Connection, frame: Frame): void;
  closed(connection: Connection): void;
}

/** Maximum number of unsent bytes. Above the maximum, no `FrameSource` is asked. */
const MAX_UNSENT = 1_048_576;
/** Bytes of one `FrameSource` before the next has its turn. */
const MAX_SOURCE_BYTES = 65_536;
/** Interval between writes of partial text (`mayWait`), ms. Text comes in small parts, and each write wakes another process. */
const PAUSE_MS = 4;
/** Maximum size of unsent answers, bytes. Above the maximum, nothing more is read. */
const MAX_ANSWERS = 1_048_576;
/** Time limit for the hello, ms. */
export const HELLO_MS = 5_000;

/**
 * Connection to a shim. Applies backpressure both ways: an owner that does not read gets no more lines, and its messages stay
 * unread while its answers do.
 */
export class Connection {
  /** Resolves after a good hello, or after the connection has closed. */
  readonly greeted: Promise<void>;
  /** Set by a good hello. */
  isGreeted = false;
  /** Set once the other side has said `end` and needs this shim no more. */
  isDone = false;
  readonly #socket: Socket;
  readonly #handlers: ConnectionHandlers;
  readonly #reader = new FrameReader();
  #onGreeted: () => void = () => undefined;
  readonly #sources = new Set<FrameSource>();
  #frames: Frame[] = [];
  #answers = 0;
  #pumpTimer: NodeJS.Timeout | undefined;
  #lastPump = 0;
  /** Set to read no further input. */
  #isEnding = false;

  constructor(socket: Socket, handlers: ConnectionHandlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    // A hello has no body.
    this.#reader.maxBody = 0;
    this.greeted = new Promise((resolve) => (this.#onGreeted = resolve));
    const timer = setTimeout(() => !this.isGreeted && socket.destroy(), HELLO_MS);
    socket
      .on("drain", () => this.#pump())
      // `close` follows.
      .on("error", () => undefined)
      .on("close", () => {
        clearTimeout(timer);
        clearTimeout(this.#pumpTimer);
        this.#stopReading();
        handlers.closed(this);
        this.#onGreeted();
      });
  }

  /** Starts reading. Resolves as `greeted` does. */
  async read(): Promise<void> {
    this.#socket.on("data", (chunk) => this.#take(chunk));
    return this.greeted;
  }

  /** Accepts frames of an owner from now on, because the hello was good. */
  greet(): void {
    this.isGreeted = true;
    this.#reader.maxBody = MAX_BODY;
    this.#onGreeted();
  }

  answer(header: FromShim, body?: Buffer): void {
    if (this.#socket.destroyed) return;
    const before = this.#socket.writableLength;
    let size = 0;
    const onFlushed = (error?: Error | null) => {
      this.#answers -= size;
      if (error ?? this.#socket.destroyed) this.#stopReading();
      this.#handleFrames();
    };
    writeFrame(this.#socket, header, body, onFlushed);
    size = Math.max(0, this.#socket.writableLength - before);
    this.#answers += size;
  }

  /**
   * Queues a source that has something to send. With `mayWait`, sends up to `PAUSE_MS` after the last write, together with
   * later output.
   */
  offer(source: FrameSource, mayWait = false): void {
    this.#sources.add(source);
    const wait = mayWait ? this.#lastPump + PAUSE_MS - performance.now() : 0;
    if (wait <= 0) this.#pump();
    else this.#pumpTimer ??= setTimeout(() => this.#pump(), wait);
  }

  /** Stops reading, and ends the connection after sending all answers. */
  end(): void {
    this.#stopReading();
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Drops pending messages: carried out later, a message could make this connection an owner. */
  #stopReading(): void {
    this.#isEnding = true;
    this.#frames = [];
  }

  #take(chunk: Buffer): void {
    if (this.#isEnding) return;
    try {
      this.#frames.push(...this.#reader.push(chunk));
    } catch {
      // Disconnects a peer that does not speak this protocol.
      this.destroy();
      return;
    }
    this.#handleFrames();
  }

  #handleFrames(): void {
    while (this.#answers <= MAX_ANSWERS) {
      const frame = this.#frames.shift();
      if (!frame) break;
      this.#handlers.frame(this, frame);
    }
    if (this.#frames.length > 0) this.#socket.pause();
    else if (this.#socket.isPaused()) this.#socket.resume();
  }

  #pump(): void {
    clearTimeout(this.#pumpTimer);
    this.#pumpTimer = undefined;
    this.#lastPump = performance.now();
    this.#socket.cork();
    for (const source of this.#sources) {
      if (this.#socket.writableLength > MAX_UNSENT) break;
      this.#sources.delete(source);
      // Puts the source behind the others.
      if (this.#sendFrom(source)) this.#sources.add(source);
    }
    this.#socket.uncork();
  }

  /** Returns true if `source` may have more. */
  #sendFrom(source: FrameSource): boolean {
    const end = this.#socket.writableLength + MAX_SOURCE_BYTES;
    while (this.#socket.writableLength < end) {
      const frame = source.next(this);
      if (!frame) return false;
      writeFrame(this.#socket, frame.header, frame.body);
    }
    return true;
  }
}
