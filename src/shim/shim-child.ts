import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { constants } from "node:os";
import { LastLines } from "../claude/supervise/output.ts";
import { killTree, startTime } from "../claude/supervise/tree.ts";
import type { Connection, FrameSource } from "./connection.ts";
import { Exchange, Refusal } from "./exchange.ts";
import { MAX_BODY } from "./frame.ts";
import { type Exit, LineSplitter, TOO_LONG } from "./line-buffer.ts";
import type { Attached, FromShim, ListedProcess, ToShim } from "./protocol.ts";

export type StartMessage = Extract<ToShim, { t: "start" }>;

interface ProcessHandlers {
  /** Called if there is something to send to the owner. `mayWait` marks partial text. */
  news(mayWait?: boolean): void;
  exited(): void;
}

const MAX_STDERR_CHARS = 4_096;
/** Maximum size of input that Claude Code does not read, bytes. */
const MAX_UNREAD = 2 * MAX_BODY;
/** Silence after which output of an exited process counts as complete, ms. A child may hold the pipe for longer. */
const SILENCE_MS = 300;
/** Maximum number of `SILENCE_MS` periods with output, because a child may write on. */
const MAX_SILENCE_CHECKS = 10;
/** Stop recipe: end of input, SIGTERM after `INPUT_MS`, SIGKILL after another `TERM_MS`. ms */
const INPUT_MS = 500;
const TERM_MS = 2_000;
const LINE_BREAK = Buffer.from("\n");
/** Maximum size of a frame with several lines, bytes. */
const MAX_LINES = 65_536;

/** Claude Code process that the shim has started. */
export class ShimChild implements FrameSource {
  readonly id: string;
  readonly tag: string;
  readonly exchange: Exchange<Connection>;
  /** Set if the session is in the memory of the owner. */
  isBound = false;
  isAbandoned = false;
  /** Body of the `start` message. */
  readonly #record: Buffer;
  readonly #child: ChildProcessWithoutNullStreams;
  /** `undefined` if Node has run out of descriptors, and gives the child no streams. */
  readonly #stdin: ChildProcess["stdin"];
  readonly #handlers: ProcessHandlers;
  readonly #splitter = new LineSplitter(MAX_BODY);
  readonly #stderr = new LastLines(MAX_STDERR_CHARS);
  /** Text that the owner has not received. */
  #unsentStderr = new LastLines(MAX_STDERR_CHARS);
  #timers: NodeJS.Timeout[] = [];
  #exit: Exit | undefined;
  #hasClosed = false;
  #bytesRead = 0;
  #identity: { readonly pid: number; readonly startedAt: string } | undefined;

  /** Throws if the system refuses the spawn at once. Other failures reject `started`. */
  constructor(start: StartMessage & { readonly record: Buffer }, owner: Connection, handlers: ProcessHandlers) {
    this.id = start.id;
    // Copied, so that the rest of the received chunk can be freed.
    this.#record = Buffer.from(start.record);
    this.tag = start.tag;
    this.exchange = new Exchange(owner, start.epoch);
    this.#handlers = handlers;
    this.#child = spawn(start.command, start.args, {
      ...(start.cwd !== undefined && { cwd: start.cwd }),
      env: start.env,
      stdio: "pipe",
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    // Handles errors from here on, because the owner may write before `started` resolves, and the process may have ended by
    // then.
    const child: ChildProcess = this.#child;
    child.stdin?.on("error", () => undefined);
    this.#stdin = child.stdin;
  }

  /** Resolves when the process runs. Rejects with the system error. */
  async started(): Promise<{ readonly pid: number; readonly startedAt: string }> {
    const child = this.#child;
    const pid = await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("spawn", () => resolve(child.pid ?? 0));
    });
    child.on("error", () => undefined);
    child.once("exit", (code, signal) => this.#exited({ code, signal }));
    this.#listen();
    this.#identity = { pid, startedAt: (await startTime(pid)) ?? "" };
    return this.#identity;
  }

  /** `undefined` until the process runs. */
  get identity(): { readonly pid: number; readonly startedAt: string } | undefined {
    return this.#identity;
  }

  get listed(): ListedProcess {
    const { hasExited, id, pid, tag } = this;
    const { epoch, owner } = this.exchange;
    return {
      id,
      ...(this.#identity ?? { pid: pid ?? 0, startedAt: "", starting: true as const }),
      epoch,
      tag,
      ...(epoch > 0 && { session: true as const }),
      ...(owner && { owned: true as const }),
      ...(hasExited && { exited: true as const }),
    };
  }

  /** Known before the process runs. `undefined` if the spawn failed. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasExited(): boolean {
    return this.#exit !== undefined;
  }

  /** True if neither output nor an exit follows. */
  get isFinished(): boolean {
    return this.hasExited && this.#hasClosed;
  }

  next(connection: Connection): { readonly header: FromShim; readonly body?: Buffer } | undefined {
    if (this.exchange.owner !== connection || !this.#identity) return undefined;
    const { id } = this;
    const { text } = this.#unsentStderr;
    if (text !== "") {
      this.#unsentStderr = new LastLines(MAX_STDERR_CHARS);
      return { header: { t: "stderr", id }, body: Buffer.from(text) };
    }
    const item = this.exchange.next();
    if (!item) return undefined;
    if ("exit" in item) return { header: { t: "exit", id, n: item.n, ...item.exit } };
    return { header: { t: "lines", id, n: item.n }, body: this.#joinLines(item.line) };
  }

  /** Appends the following lines, up to `MAX_LINES` bytes. */
  #joinLines(line: Buffer): Buffer {
    const parts = [line];
    let room = MAX_LINES - line.length;
    for (let next = this.exchange.nextLine(room); next; next = this.exchange.nextLine(room)) {
      parts.push(LINE_BREAK, next);
      room -= next.length + LINE_BREAK.length;
    }
    return parts.length === 1 ? line : Buffer.concat(parts);
  }

  /** Throws `Refusal`, see `Exchange.attach`. */
  attach(owner: Connection, { after, epoch }: Extract<ToShim, { t: "attach" }>) {
    if (!this.#identity) throw new Refusal("it is being started");
    if (this.isAbandoned) throw new Refusal("it is being ended");
    const { evicted, former, lost } = this.exchange.attach(owner, epoch, after);
    this.#unsentStderr = new LastLines(MAX_STDERR_CHARS);
    this.#unsentStderr.take(this.#stderr.text);
    const { control, written } = this.exchange;
    const initialize = control.initializeAnswer;
    const identity = this.#identity;
    const record = this.#record;
    const state = { record: record.length, initialize: initialize !== undefined, open: control.open, written };
    const header: Attached = { t: "attached", id: this.id, ...identity, lost, evicted, ...state };
    return { former, header, body: initialize ? Buffer.concat([record, initialize]) : record };
  }

  /** Writes a line once. Calls `onWritten` after the system has taken the line, or with the error. Throws `Refusal`. */
  write(lineId: string, line: Buffer, onWritten: (again: boolean, error?: Error | null) => void): void {
    const stdin = this.#stdin;
    if (line.includes(LINE_BREAK)) throw new Refusal("the body has a line break");
    if (this.#exit || !stdin?.writable) throw new Refusal("its input has ended");
    if (stdin.writableLength + line.length > MAX_UNREAD) throw new Refusal("it does not read its input");
    if (!this.exchange.write(lineId, line)) return onWritten(true);
    stdin.cork();
    stdin.write(line);
    stdin.write(LINE_BREAK, (error) => onWritten(false, error));
    stdin.uncork();
  }

  /** Throws `Refusal`, see `Exchange.acknowledge`. */
  acknowledge(upTo: number): void {
    this.exchange.acknowledge(upTo);
    if (!this.exchange.lines.isFull) this.#child.stdout.resume();
  }

  endInput(): void {
    this.#stdin?.end();
  }

  /** Throws `Refusal` for an unknown signal. */
  signal(name: string): void {
    if (!isSignal(name)) throw new Refusal(`"${name}" is not a signal`);
    if (!this.#exit) this.#child.kill(name);
  }

  kill(): void {
    // After the exit, `pid` may be another process's.
    if (!this.#exit && this.#child.pid !== undefined) void killTree(this.#child.pid).catch(() => undefined);
  }

  /** From now on no owner gets the exit, nor the lines before. */
  abandon(): void {
    this.isAbandoned = true;
    if (this.#exit) this.#child.stdout.destroy();
  }

  /** Ends the process step by step. `atOnce` leaves no time after the end of input. */
  stop(atOnce = false): void {
    if (this.#exit || this.#timers.length > 0) return;
    const inputMs = atOnce ? 0 : INPUT_MS;
    this.endInput();
    this.#timers = [
      setTimeout(() => this.signal("SIGTERM"), inputMs),
      setTimeout(() => this.kill(), inputMs + TERM_MS),
    ];
  }

  #listen(): void {
    const { stderr, stdout } = this.#child;
    stdout
      .on("data", (chunk: Buffer) => this.#read(chunk))
      .on("error", () => undefined)
      .on("close", () => {
        this.#hasClosed = true;
        this.#finish();
      });
    stderr
      .setEncoding("utf8")
      .on("data", (text: string) => this.#addStderr(text))
      .on("error", () => undefined);
  }

  #read(chunk: Buffer): void {
    this.#bytesRead += chunk.length;
    let mayWait = true;
    for (const line of this.#splitter.push(chunk)) {
      if (line !== TOO_LONG) {
        if (!this.exchange.read(line)) mayWait = false;
        continue;
      }
      this.exchange.lines.skip();
      this.#addStderr(`It wrote more than ${String(MAX_BODY)} bytes without a line break, and was ended.\n`);
      this.kill();
    }
    if (this.exchange.lines.isFull) this.#child.stdout.pause();
    this.#handlers.news(mayWait);
  }

  #addStderr(text: string): void {
    this.#stderr.take(text);
    this.#unsentStderr.take(text);
    this.#handlers.news();
  }

  #exited(exit: Exit): void {
    this.#exit = exit;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#stdin?.destroy();
    if (this.isAbandoned) this.#child.stdout.destroy();
    this.#awaitSilence(0, MAX_SILENCE_CHECKS);
    this.#finish();
  }

  /** Destroys `stdout` once silent, because a descendant may hold the pipe. A paused `stdout` uses up no look. */
  #awaitSilence(bytesBefore: number, looks: number): void {
    setTimeout(() => {
      const { stdout } = this.#child;
      if (this.#hasClosed) return;
      if (stdout.isPaused()) return this.#awaitSilence(bytesBefore, looks);
      if (this.#bytesRead === bytesBefore || looks <= 1) stdout.destroy();
      else this.#awaitSilence(this.#bytesRead, looks - 1);
    }, SILENCE_MS);
  }

  #finish(): void {
    if (!this.#exit || !this.#hasClosed) return;
    const rest = this.#splitter.rest();
    if (rest) this.exchange.read(rest);
    this.exchange.lines.end(this.#exit);
    this.#handlers.news();
    this.#handlers.exited();
  }
}

function isSignal(name: string): name is NodeJS.Signals {
  return name in constants.signals;
}
