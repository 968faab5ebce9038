import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex, Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { endUnread } from "./client-end.ts";
import { Conversation } from "./conversation.ts";
import { RefusedError, SettingsError, whyOf } from "./failures.ts";
import { linesOf, Silence } from "./daemon-stream.ts";
import type { StaticAnswers } from "./static-answers.ts";
import { constants } from "../config/constants.ts";
import { ConfigError } from "../config/error.ts";
import { Patience } from "../daemon/patience.ts";
import { ALIVE, END, REST, WATCH } from "../daemon/wire.ts";

/**
 * The client's end of a daemon: what a client starts in place of a server. It passes lines between stdio and the socket. Its end
 * ends nothing but the client's own waits; after the daemon's end it goes on with the next one.
 */

/** Between two looks for a daemon, ms. */
const LOOK_MS = 50;

/** Where a proxy gets its daemon. */
export interface DaemonSource {
  /** How long a daemon may take to appear, ms. */
  readonly startMs: number;
  /**
   * Resolves to a daemon that has said hello. Rejects with why there is none: RefusedError where there will be none, SettingsError
   * where the client's own settings keep it from being served by any server. `sessions`: those of the conversation so far.
   */
  connect(patience: Patience, sessions: readonly string[]): Promise<Socket>;
  /** What a client is told whose call no daemon takes. */
  absent(why: string): string;
}

/** Starts a server in this process, for a client that no daemon can be had for; resolves to the client's end. */
export type ServeHere = (why: string) => Promise<Duplex>;

interface Means {
  /** Given where the settings of the daemon are those of this process. */
  readonly answers?: Pick<StaticAnswers, "answerTo">;
  readonly serveHere?: ServeHere;
}

export class Proxy {
  readonly #source: DaemonSource;
  readonly #stdout: Writable & { readonly fd?: number };
  readonly #means: Means;
  readonly #conversation = new Conversation();
  /** The daemon, or the server in this process. */
  #socket: Duplex | undefined;
  #isServedHere = false;
  /** Static answers are given until then: a daemon may answer otherwise later. */
  #wasConnected = false;
  #wasUsed = false;
  /** Ends when the lines that wait for a daemon were passed on, in their order. */
  #passed: Promise<void> = Promise.resolve();
  #waitingCharacters = 0;
  /** Ends when all that the daemon has said was passed on. */
  #reading: Promise<void> = Promise.resolve();
  /** The client has ended its input. */
  #hasEnded = false;
  #fail: (why: unknown) => void = () => undefined;
  #connecting: Promise<void> | undefined;
  readonly #silence: Silence;
  /** The daemon has not read what was sent. */
  #isStuck = false;

  constructor(source: DaemonSource, stdout: Writable & { readonly fd?: number }, means: Means = {}) {
    this.#source = source;
    this.#stdout = stdout;
    this.#means = means;
    this.#silence = new Silence({
      // A client that reads nothing keeps this process from reading.
      isDeaf: () => stdout.writableNeedDrain,
      onSilent: () => {
        const socket = this.#socket;
        void this.#onLost(SILENT);
        socket?.destroy();
      },
    });
  }

  /** Whether the client has said anything. */
  get wasUsed(): boolean {
    return this.#wasUsed;
  }

  /** Waits for a daemon for a while; the same for all who wait. Rejects with why there is none. */
  async connect(): Promise<void> {
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  /** Waits as `connect` does. Rejects with ConfigError, or the error of the server in this process. */
  async meet(): Promise<void> {
    await this.connect().catch((error: unknown) => {
      throw this.#finalOf(error) ?? error;
    });
  }

  async #connect(): Promise<void> {
    const patience = new Patience(this.#source.startMs);
    try {
      for (;;) {
        try {
          return this.#adopt(await this.#source.connect(patience, this.#conversation.sessions));
        } catch (error) {
          if (error instanceof SettingsError) throw error;
          if (error instanceof RefusedError || patience.leftMs <= LOOK_MS) return await this.#without(error);
          await sleep(LOOK_MS);
        }
      }
    } finally {
      patience.end();
    }
  }

  async #without(failure: unknown): Promise<void> {
    const { serveHere } = this.#means;
    if (!serveHere) throw failure;
    try {
      this.#adopt(await serveHere(whyOf(failure)), true);
    } catch (error) {
      throw new CannotServeError(error);
    }
  }

  /**
   * Until the client has ended its input, and all that it had sent was answered. Rejects where no server can be had, after the client
   * was told in answer to its first request: many clients show no exit code.
   */
  async pass(stdin: Readable): Promise<void> {
    const failed = new Promise<never>((_, reject) => (this.#fail = reject));
    await Promise.race([this.#passAll(stdin), failed]);
  }

  async #passAll(stdin: Readable): Promise<void> {
    for await (const line of linesOf(stdin)) await this.#take(line);
    await this.#passed;
    this.#hasEnded = true;
    const socket = this.#socket;
    if (!socket) return;
    endUnread(this.#stdout);
    // A server in this process ends it.
    if (this.#isServedHere) socket.end();
    else socket.write(`${END}\n`);
    await Promise.race([this.#reading, ...(this.#isServedHere ? [] : [sleep(lastMs())])]);
    await new Promise<void>((resolve) => this.#stdout.write("", () => resolve()));
  }

  /** Lines that need a daemon wait for it; those behind them that do not are answered meanwhile. */
  async #take(given: string): Promise<void> {
    // `trim` removes a byte order mark too, which Codex on Windows writes.
    const line = given.trim();
    if (line.startsWith("#") || line === "") return;
    this.#wasUsed = true;
    const answer = this.#wasConnected ? undefined : this.#means.answers?.answerTo(line);
    if (answer) {
      this.#conversation.answered(line);
      await this.#toClient(answer.line);
      this.#connectEarly();
      return;
    }
    this.#passed = this.#passOn(line, this.#passed);
    if (this.#wasConnected || this.#waitingCharacters > MAX_WAITING) await this.#passed;
  }

  #connectEarly(): void {
    this.connect().catch(async (error: unknown) => {
      const final = this.#finalOf(error);
      // Requests that wait for the daemon are answered first.
      await this.#passed;
      if (final !== undefined) this.#fail(final);
    });
  }

  async #passOn(line: string, before: Promise<void>): Promise<void> {
    this.#waitingCharacters += line.length;
    await before;
    await this.#toDaemon(line);
    this.#waitingCharacters -= line.length;
  }

  #adopt(socket: Duplex, isServedHere = false): void {
    this.#socket = socket;
    this.#wasConnected = true;
    this.#isServedHere = isServedHere;
    for (const line of this.#conversation.opening()) socket.write(`${line}\n`);
    this.#silence.rest();
    this.#watch();
    this.#reading = this.#fromDaemon(socket);
  }

  async #toDaemon(line: string): Promise<void> {
    if (!this.#socket) {
      try {
        await this.connect();
      } catch (error) {
        return this.#refuse(line, error);
      }
    }
    const sent = this.#conversation.fromClient(line);
    this.#watch();
    const socket = this.#socket;
    if (sent !== undefined && socket && !socket.write(`${sent}\n`)) await this.#untilWritable(socket);
  }

  async #refuse(line: string, failure: unknown): Promise<void> {
    const final = this.#finalOf(failure);
    const why = final === undefined ? this.#source.absent(whyOf(failure)) : whyOf(final);
    const answer = this.#conversation.refusal(line, why);
    if (answer === undefined) return;
    await new Promise<void>((resolve) => this.#stdout.write(`${answer}\n`, () => resolve()));
    if (final !== undefined) this.#fail(final);
  }

  /** The error with which the process ends; undefined where calls are refused one by one, because the next daemon may come. */
  #finalOf(failure: unknown): unknown {
    if (failure instanceof CannotServeError) return failure.cause;
    if (failure instanceof SettingsError) return new ConfigError(failure.message, failure);
    return this.#wasConnected ? undefined : new ConfigError(this.#source.absent(whyOf(failure)), failure);
  }

  /** Notifications and answers are not calls: a frozen daemon that does not read them would never be noticed. */
  async #untilWritable(socket: Duplex): Promise<void> {
    if (socket.destroyed) return;
    this.#isStuck = true;
    this.#watch();
    await new Promise<void>((resolve) => socket.once("drain", resolve).once("close", resolve));
    this.#isStuck = false;
    this.#watch();
  }

  async #fromDaemon(socket: Duplex): Promise<void> {
    try {
      for await (const line of linesOf(socket)) {
        // What a daemon says that was given up is answered already.
        if (this.#socket !== socket) break;
        this.#silence.heard();
        if (line === ALIVE) continue;
        await this.#toClient(this.#conversation.fromDaemon(line));
        this.#watch();
      }
    } catch {
      // The connection broke: the same as its end.
    }
    socket.destroy();
    if (this.#socket !== socket) return;
    await this.#onLost(DIED);
  }

  async #onLost(why: string): Promise<void> {
    this.#socket = undefined;
    this.#silence.rest();
    for (const line of this.#conversation.lost(why)) await this.#toClient(line);
    // Others are connected by the next line of the client.
    if (this.#conversation.isFollowing && !this.#hasEnded) await this.connect().catch(() => undefined);
  }

  async #toClient(line: string | undefined): Promise<void> {
    if (line !== undefined && !this.#stdout.write(`${line}\n`)) await once(this.#stdout, "drain");
  }

  /** Signs of life are wanted while an answer is owed, or what was sent is not read. */
  #watch(): void {
    const isWaiting = this.#conversation.isWaiting || this.#isStuck;
    if (isWaiting === this.#silence.isWatched || !this.#socket || this.#isServedHere) return;
    this.#socket.write(`${isWaiting ? WATCH : REST}\n`);
    if (isWaiting) this.#silence.watch();
    else this.#silence.rest();
  }
}

/** Characters of lines that wait for a daemon; beyond them the client is not read. */
const MAX_WAITING = 1_000_000;

/** A daemon answers the last calls in its own time, and has so long to write that, ms. */
const LAST_WORDS_MS = 1_000;

const lastMs = (): number => constants().lastAnswersMs + LAST_WORDS_MS;

const ADVICE =
  "Nothing that was recorded is lost: look with claude_code_check, or list sessions with claude_code_session, before you repeat the call.";
const DIED = `The daemon that served this call has ended. ${ADVICE}`;
const SILENT = `The daemon that served this call does not answer. ${ADVICE}`;

/** The server in this process did not start, which ends the proxy. `cause` says why. */
class CannotServeError extends Error {
  constructor(cause: unknown) {
    super("no server can be started", { cause });
  }
}
