import type { Socket } from "node:net";
import { type Frame, FrameReader, MAX_BODY, writeFrame } from "./frame.ts";
import type { FromShim } from "./protocol.ts";

/** Has frames for a connection, made when there is room for them. */
export interface Source {
  next(connection: Connection): { readonly header: FromShim; readonly body?: Buffer } | undefined;
}

interface Handlers {
  frame(connection: Connection, frame: Frame): void;
  closed(connection: Connection): void;
}

/** Unsent bytes above which no source is asked. */
const MAX_UNSENT = 1_048_576;
/** Bytes of one source before it is the turn of the next. */
const TURN = 65_536;
/** Between two writes of what may wait: text comes in small parts, and each write wakes another process. ms. */
const PAUSE_MS = 4;
/** Bytes of unsent answers above which nothing more is read. */
const MAX_ANSWERS = 1_048_576;
/** For the hello, ms. */
export const HELLO_MS = 5_000;

/**
 * One connection to a shim. Back-pressure both ways: an owner that does not read is sent no more lines, and its messages are not read
 * while its answers are unread.
 */
export class Connection {
  /** Resolves when its hello was good, or it has closed. */
  readonly greeted: Promise<void>;
  /** Its hello was good. */
  isGreeted = false;
  /** Set once the other side has said `end` and needs this shim no more. */
  isDone = false;
  readonly #socket: Socket;
  readonly #handlers: Handlers;
  readonly #reader = new FrameReader();
  #onGreeted: () => void = () => undefined;
  readonly #sources = new Set<Source>();
  #frames: Frame[] = [];
  #answers = 0;
  #pumpTimer: NodeJS.Timeout | undefined;
  #lastPump = 0;
  /** Nothing that comes is read. */
  #isEnding = false;

  constructor(socket: Socket, handlers: Handlers) {
    this.#socket = socket;
    this.#handlers = handlers;
    // A hello is a header alone.
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
        this.#ignore();
        handlers.closed(this);
        this.#onGreeted();
      });
  }

  /** Begins to read what it sends. Resolves as `greeted` does. */
  async read(): Promise<void> {
    this.#socket.on("data", (chunk) => this.#take(chunk));
    return this.greeted;
  }

  /** Accepts the frames of an owner from now on, because the hello was good. */
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
      if (error ?? this.#socket.destroyed) this.#ignore();
      this.#work();
    };
    writeFrame(this.#socket, header, body, onFlushed);
    size = Math.max(0, this.#socket.writableLength - before);
    this.#answers += size;
  }

  /** The source has something to send. What may wait is sent a few milliseconds after the last, with what else has come by then. */
  offer(source: Source, mayWait = false): void {
    this.#sources.add(source);
    const wait = mayWait ? this.#lastPump + PAUSE_MS - performance.now() : 0;
    if (wait <= 0) this.#pump();
    else this.#pumpTimer ??= setTimeout(() => this.#pump(), wait);
  }

  /** Ends it when all answers are sent, and reads nothing more. */
  end(): void {
    this.#ignore();
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** A message that is carried out after the end could make this connection an owner. */
  #ignore(): void {
    this.#isEnding = true;
    this.#frames = [];
  }

  #take(chunk: Buffer): void {
    if (this.#isEnding) return;
    try {
      this.#frames.push(...this.#reader.push(chunk));
    } catch {
      // It is no owner that this version understands.
      this.destroy();
      return;
    }
    this.#work();
  }

  #work(): void {
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
      // Behind the others.
      if (this.#sendFrom(source)) this.#sources.add(source);
    }
    this.#socket.uncork();
  }

  /** Whether it may have more. */
  #sendFrom(source: Source): boolean {
    const end = this.#socket.writableLength + TURN;
    while (this.#socket.writableLength < end) {
      const frame = source.next(this);
      if (!frame) return false;
      writeFrame(this.#socket, frame.header, frame.body);
    }
    return true;
  }
}
