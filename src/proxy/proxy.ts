import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex, Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { exitOnceUnread } from "./client-end.ts";
import { Conversation } from "./conversation.ts";
import { RefusedError, SettingsError, whyOf } from "./failures.ts";
import { readLines, SilenceWatch } from "./daemon-stream.ts";
import type { StaticAnswers } from "./static-answers.ts";
import { constants } from "../config/constants.ts";
import { ConfigError } from "../config/error.ts";
import { Countdown } from "../daemon/countdown.ts";
import { ALIVE, END, REST, WATCH } from "../daemon/wire.ts";

/**
 * Proxy between the client's stdio and a daemon's socket. A client starts a proxy in place of a server. The end of the proxy
 * ends only the client's own waits. After the end of a daemon the proxy goes on with the next.
 */

/** Interval between attempts to connect, ms. */
const LOOK_MS = 50;

/** Finds or starts the daemon of a proxy. */
export interface DaemonSource {
  /** Time limit for a daemon to appear, ms. */
  readonly startMs: number;
  /**
   * Resolves to a daemon that has said hello. Rejects with `RefusedError` if there will be no daemon, and with `SettingsError`
   * if the client's own settings prevent service by any server. `sessions`: ids of the conversation so far.
   */
  connect(patience: Countdown, sessions: readonly string[]): Promise<Socket>;
  /** Returns the error message of a call that no daemon takes. */
  absent(why: string): string;
}

/** Starts a server in this process, for a client without a daemon. Resolves to the client's end of the connection. */
export type ServeHere = (why: string) => Promise<Duplex>;

interface ProxyOptions {
  /** Given if the daemon's settings are those of this process. */
  readonly answers?: Pick<StaticAnswers, "answerTo">;
  readonly serveHere?: ServeHere;
}

export class Proxy {
  readonly #source: DaemonSource;
  readonly #stdout: Writable & { readonly fd?: number };
  readonly #means: ProxyOptions;
  readonly #conversation = new Conversation();
  /** Connection to the daemon, or to the server in this process. */
  #socket: Duplex | undefined;
  #isServedHere = false;
  /** Set by the first connection, which ends static answers: a daemon may answer differently later. */
  #wasConnected = false;
  #wasUsed = false;
  /** Settles after the lines that wait for a daemon were passed on, in order. */
  #passed: Promise<void> = Promise.resolve();
  #waitingCharacters = 0;
  /** Settles after all output of the daemon was passed on. */
  #reading: Promise<void> = Promise.resolve();
  /** The client has ended its input. */
  #hasEnded = false;
  #fail: (why: unknown) => void = () => undefined;
  #connecting: Promise<void> | undefined;
  readonly #silence: SilenceWatch;
  /** Set while the daemon does not read from `#socket`. */
  #isStuck = false;

  constructor(source: DaemonSource, stdout: Writable & { readonly fd?: number }, means: ProxyOptions = {}) {
    this.#source = source;
    this.#stdout = stdout;
    this.#means = means;
    this.#silence = new SilenceWatch({
      // A client that does not read `stdout` also keeps this process from reading the daemon.
      isDeaf: () => stdout.writableNeedDrain,
      onSilent: () => {
        const socket = this.#socket;
        void this.#onLost(SILENT);
        socket?.destroy();
      },
    });
  }

  /** True if the client has sent a line. */
  get wasUsed(): boolean {
    return this.#wasUsed;
  }

  /**
   * Connects to a daemon within `startMs`. Concurrent calls share an attempt. Rejects with the reason if there is no daemon.
   */
  async connect(): Promise<void> {
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  /** Connects as `connect` does. Rejects with `ConfigError`, or with the error of the server in this process. */
  async connectOrFail(): Promise<void> {
    await this.connect().catch((error: unknown) => {
      throw this.#fatalError(error) ?? error;
    });
  }

  async #connect(): Promise<void> {
    const patience = new Countdown(this.#source.startMs);
    try {
      for (;;) {
        try {
          return this.#adopt(await this.#source.connect(patience, this.#conversation.sessions));
        } catch (error) {
          if (error instanceof SettingsError) throw error;
          if (error instanceof RefusedError || patience.leftMs <= LOOK_MS) return await this.#serveWithoutDaemon(error);
          await sleep(LOOK_MS);
        }
      }
    } finally {
      patience.end();
    }
  }

  async #serveWithoutDaemon(failure: unknown): Promise<void> {
    const { serveHere } = this.#means;
    if (!serveHere) throw failure;
    try {
      this.#adopt(await serveHere(whyOf(failure)), true);
    } catch (error) {
      throw new CannotServeError(error);
    }
  }

  /**
   * Passes messages until the client has ended its input and all requests are answered. Rejects if no server is available, after
   * answering the first request with the error, because many clients show no exit code.
   */
  async pass(stdin: Readable): Promise<void> {
    const failed = new Promise<never>((_, reject) => (this.#fail = reject));
    await Promise.race([this.#passAll(stdin), failed]);
  }

  async #passAll(stdin: Readable): Promise<void> {
    for await (const line of readLines(stdin)) await this.#handleLine(line);
    await this.#passed;
    this.#hasEnded = true;
    const socket = this.#socket;
    if (!socket) return;
    exitOnceUnread(this.#stdout);
    // A server in this process ends with its input; a daemon needs `END`.
    if (this.#isServedHere) socket.end();
    else socket.write(`${END}\n`);
    await Promise.race([this.#reading, ...(this.#isServedHere ? [] : [sleep(lastAnswersMs())])]);
    await new Promise<void>((resolve) => this.#stdout.write("", () => resolve()));
  }

  /** Queues lines that need a daemon. Later lines may get static answers meanwhile. */
  async #handleLine(given: string): Promise<void> {
    // `trim` also removes a byte order mark, which Codex on Windows writes.
    const line = given.trim();
    if (line.startsWith("#") || line === "") return;
    this.#wasUsed = true;
    const answer = this.#wasConnected ? undefined : this.#means.answers?.answerTo(line);
    if (answer) {
      this.#conversation.noteAnswered(line);
      await this.#toClient(answer.line);
      this.#connectEarly();
      return;
    }
    this.#passed = this.#passOn(line, this.#passed);
    if (this.#wasConnected || this.#waitingCharacters > MAX_WAITING) await this.#passed;
  }

  #connectEarly(): void {
    this.connect().catch(async (error: unknown) => {
      const final = this.#fatalError(error);
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
    for (const line of this.#conversation.replayLines()) socket.write(`${line}\n`);
    this.#silence.stop();
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
    const final = this.#fatalError(failure);
    const why = final === undefined ? this.#source.absent(whyOf(failure)) : whyOf(final);
    const answer = this.#conversation.refusal(line, why);
    if (answer === undefined) return;
    await new Promise<void>((resolve) => this.#stdout.write(`${answer}\n`, () => resolve()));
    if (final !== undefined) this.#fail(final);
  }

  /** Returns the error that ends the process; `undefined` if calls are refused one by one, because another daemon may come. */
  #fatalError(failure: unknown): unknown {
    if (failure instanceof CannotServeError) return failure.cause;
    if (failure instanceof SettingsError) return new ConfigError(failure.message, failure);
    return this.#wasConnected ? undefined : new ConfigError(this.#source.absent(whyOf(failure)), failure);
  }

  /** Watches a daemon that does not read: notifications and answers are not calls, so a frozen daemon would go unnoticed. */
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
      for await (const line of readLines(socket)) {
        // Ignores a lost daemon, because its calls are already answered.
        if (this.#socket !== socket) break;
        this.#silence.reset();
        if (line === ALIVE) continue;
        await this.#toClient(this.#conversation.fromDaemon(line));
        this.#watch();
      }
    } catch {
      // A broken connection counts as ended.
    }
    socket.destroy();
    if (this.#socket !== socket) return;
    await this.#onLost(DIED);
  }

  async #onLost(why: string): Promise<void> {
    this.#socket = undefined;
    this.#silence.stop();
    for (const line of this.#conversation.failOpen(why)) await this.#toClient(line);
    // Other clients are connected again by their next line.
    if (this.#conversation.awaitsNotifications && !this.#hasEnded) await this.connect().catch(() => undefined);
  }

  async #toClient(line: string | undefined): Promise<void> {
    if (line !== undefined && !this.#stdout.write(`${line}\n`)) await once(this.#stdout, "drain");
  }

  /** Asks for signs of life while an answer is owed, or the daemon does not read. */
  #watch(): void {
    const isWaiting = this.#conversation.isWaiting || this.#isStuck;
    if (isWaiting === this.#silence.isWatched || !this.#socket || this.#isServedHere) return;
    this.#socket.write(`${isWaiting ? WATCH : REST}\n`);
    if (isWaiting) this.#silence.start();
    else this.#silence.stop();
  }
}

/** Maximum length of all lines that wait for a daemon, characters. Above the maximum, the client is not read. */
const MAX_WAITING = 1_000_000;

/** Time for a daemon to write its last answers, beyond `lastAnswersMs`, ms. */
const LAST_WRITE_MS = 1_000;

const lastAnswersMs = (): number => constants().lastAnswersMs + LAST_WRITE_MS;

const ADVICE =
  "Nothing that was recorded is lost: look with claude_code_check, or list sessions with claude_code_session, before you repeat the call.";
const DIED = `The daemon that served this call has ended. ${ADVICE}`;
const SILENT = `The daemon that served this call does not answer. ${ADVICE}`;

/** Ends the proxy, because the server in this process did not start. `cause` is the reason. */
class CannotServeError extends Error {
  constructor(cause: unknown) {
    super("no server can be started", { cause });
  }
}
