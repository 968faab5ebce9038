import type { SpawnedProcess } from "@anthropic-ai/claude-agent-sdk";
import { EventEmitter } from "node:events";
import { PassThrough, type Readable, type Writable } from "node:stream";
import type { Attached, ToShim } from "../../shim/protocol.ts";
import { LastLines } from "../supervise/output.ts";
import { unlessWithin } from "../process/time-limit.ts";
import { ANSWER_MS, type FromProcess, type ShimConnection } from "./connection.ts";
import { Inbound, type InboundItem } from "./inbound.ts";
import { Outbound, type OutboundLine } from "./outbound.ts";
import { isSignal, type ShimmedExit, TAKEN_OVER } from "./shimmed-exit.ts";

export interface ShimmedOptions {
  readonly connection: ShimConnection;
  readonly id: string;
  readonly epoch: number;
  /** Called once the process runs, or without `identity` if the start failed. */
  readonly onStarted: (identity?: { readonly pid: number; readonly startedAt: string }) => void;
}

/** Time limit for the start of a process, normally milliseconds, ms. */
const START_MS = 10_000;
const NO_ANSWER = "its shim does not answer";
const MAX_STDERR_CHARS = 4096;
const LINE_BREAK = 0x0a;

/** Command of the process, and `record` for the next owner. */
type Start = Omit<Extract<ToShim, { t: "start" }>, "epoch" | "id" | "t"> & { readonly record: string };

/** `record` is the record given at the start. */
export type AttachedMessage = Omit<Attached, "record"> & { readonly record: string };

type Refused = Extract<FromProcess, { t: "refused" }>;

/** Claude Code behind a shim, for the Agent SDK, which cannot end the process: another owner may follow. */
export class ShimmedProcess extends EventEmitter implements SpawnedProcess {
  readonly stdin: Writable;
  /** Replaced by `limitLines`. */
  stdout: Readable;
  readonly killed = false;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  readonly exit: Promise<ShimmedExit>;
  /** After `attach`: ids of the requests still open in Claude Code. */
  readonly pending: Promise<readonly string[]>;
  readonly #options: ShimmedOptions;
  readonly #lines = new PassThrough();
  /** Parts of lines for the SDK, collected to be written at once. */
  #handed: Buffer[] = [];
  #inbound: Inbound;
  #stderr = new LastLines(MAX_STDERR_CHARS);
  #epoch: number;
  #initializeLine: string | undefined;
  #hasHooks = false;
  #onPending: (requestIds: readonly string[]) => void = () => undefined;
  #onExit: (exit: ShimmedExit) => void = () => undefined;
  #onAttached: ((attached: AttachedMessage) => void) | undefined;
  /** Ends the wait for the answer to `start` or `attach`. */
  #onAnswer: () => void = () => undefined;
  /** True until the shim reports the start. */
  #isStarting = false;
  #hasEnded = false;
  #isLetGo = false;

  private constructor(options: ShimmedOptions) {
    super();
    // The SDK adds its listener later, and without a listener Node would throw the error.
    this.on("error", () => undefined);
    this.#options = options;
    this.#epoch = options.epoch;
    this.exit = new Promise((resolve) => (this.#onExit = resolve));
    this.pending = new Promise((resolve) => (this.#onPending = resolve));
    this.#inbound = new Inbound(this.#inboundOptions());
    this.stdout = this.#lines;
    this.stdin = new Outbound({
      epoch: () => this.#epoch,
      hasHooks: () => this.#hasHooks,
      send: (line) => this.#write(line),
      onEnd: () => this.#inbound.open(),
    });
    const { connection, id } = options;
    connection.follow(id, (message, body) => this.#take(message, body));
    void connection.closed.then(() => this.#lose("its shim has ended"));
  }

  static start(options: ShimmedOptions, { record, ...start }: Start) {
    const process = new ShimmedProcess(options);
    const { connection, epoch, id } = options;
    try {
      connection.send({ t: "start", id, epoch, ...start }, Buffer.from(record));
    } catch (error) {
      // No message about the process will come.
      connection.unfollow(id);
      throw error;
    }
    process.#isStarting = true;
    process.#onAnswer = unlessWithin(START_MS, () => process.#giveUp());
    return process;
  }

  /** Attaches to a process and continues after `after`, the last handled line. Rejects with the reason if impossible. */
  static async attach(options: Omit<ShimmedOptions, "onStarted">, after: number) {
    const process = new ShimmedProcess({ ...options, onStarted: () => undefined });
    const attached = new Promise<AttachedMessage>((resolve) => (process.#onAttached = resolve));
    options.connection.send({ t: "attach", id: options.id, epoch: options.epoch, after });
    process.#onAnswer = unlessWithin(ANSWER_MS, () => process.#giveUp());
    const result = await Promise.race([attached, process.exit]);
    if ("t" in result) return { process, attached: result };
    throw result.error ?? new Error("it has ended");
  }

  get stderrText(): string {
    return this.#stderr.text;
  }

  /** Number of the last line, or of the exit. */
  get lastLine(): number {
    return this.#inbound.last;
  }

  /** Binds a spare to its session: from now on only the owner of the session may control the process. */
  own(epoch: number): void {
    this.#epoch = epoch;
    this.#send({ t: "attach", after: this.#inbound.last });
  }

  acknowledge(line: number): void {
    this.#send({ t: "ack", upTo: Math.min(line, this.#inbound.last) });
  }

  /** Notes that the request was reported to the session. */
  settle(requestId: string): void {
    this.#inbound.settle(requestId);
  }

  /** Leaves the process to another server. Sends nothing more: the shim may not know the new epoch and would obey. */
  letGo(): void {
    this.#isLetGo = true;
    this.#end(TAKEN_OVER);
  }

  endInput(): void {
    this.#send({ t: "end-input" });
  }

  /** Sends `SIGTERM` to the process alone. */
  terminate(): void {
    this.#send({ t: "signal", signal: "SIGTERM" });
  }

  /** Sends `SIGKILL` to the process and all descendants. */
  killTree(): void {
    this.#send({ t: "kill" });
  }

  /** Presumes the process dead although its shim does not report the end. */
  presumeEnd(): void {
    if (!this.#hasEnded) this.#options.connection.giveUp(this.#options.id, this.#epoch);
    this.#end({ code: null, signal: "SIGKILL", error: new Error(NO_ANSWER) });
  }

  /** No-op: the SDK calls `kill` at the end of its session or of this server, but must not end the process. */
  kill(): boolean {
    return true;
  }

  #inboundOptions() {
    return {
      hand: (...parts: Buffer[]) => {
        if (this.#handed.length === 0) queueMicrotask(() => this.#flush());
        this.#handed.push(...parts);
      },
      onExit: ({ code, signal }: Extract<InboundItem, { code: number | null }>) =>
        this.#end({ code, signal: isSignal(signal) ? signal : null }),
      onPending: (requestIds: readonly string[]) => this.#onPending(requestIds),
    };
  }

  #flush(): void {
    const parts = this.#handed;
    this.#handed = [];
    if (parts.length > 0 && !this.#hasEnded) this.#lines.write(Buffer.concat(parts));
  }

  #send(message: { readonly t: ToShim["t"]; readonly [field: string]: unknown }): void {
    const { connection, id } = this.#options;
    if (this.#isLetGo) return;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one of the messages of a process, completed
    connection.send({ ...message, id, epoch: this.#epoch } as ToShim);
  }

  #write({ id: lineId, initializeId, text }: OutboundLine): void {
    const { connection, id } = this.#options;
    if (this.#isLetGo || this.#hasEnded) return;
    if (initializeId !== undefined) {
      this.#initializeLine = lineId;
      this.#inbound.initializing(initializeId);
    }
    connection.send({ t: "write", id, epoch: this.#epoch, lineId }, Buffer.from(text));
  }

  #take(message: FromProcess, body: Buffer): void {
    switch (message.t) {
      case "started":
        this.#isStarting = false;
        this.#onAnswer();
        return this.#options.onStarted(message);
      case "failed":
        return this.#fail(message.message, message.code);
      case "attached":
        return this.#attached(message, body);
      case "lines":
        return this.#takeLines(message.n, body);
      case "exit":
        return this.#inbound.push({ n: message.n, code: message.code, signal: message.signal });
      case "stderr":
        return this.#stderr.take(body.toString("utf8"));
      case "written":
        return this.#answered(message.lineId);
      case "superseded":
        return this.#end(TAKEN_OVER);
      case "refused":
        return this.#refused(message);
    }
  }

  #takeLines(first: number, body: Buffer): void {
    let [n, from] = [first, 0];
    for (let end = body.indexOf(LINE_BREAK); end >= 0; end = body.indexOf(LINE_BREAK, from)) {
      this.#inbound.push({ n, line: body.subarray(from, end) });
      [n, from] = [n + 1, end + 1];
    }
    this.#inbound.push({ n, line: body.subarray(from) });
  }

  #attached(message: Attached, body: Buffer): void {
    // The shim repeats `stderr` after `attached`.
    this.#stderr = new LastLines(MAX_STDERR_CHARS);
    const onAttached = this.#onAttached;
    this.#onAttached = undefined;
    this.#onAnswer();
    // A spare was bound to its session by `own`: nothing changes here.
    if (!onAttached) return;
    const written = new Set(message.written);
    const initialized = message.initialize ? body.subarray(message.record) : undefined;
    // Every SDK writes `initialize` first, so that any written request means registered hooks.
    this.#hasHooks = initialized !== undefined || message.written.some((each) => /^\d+:/.test(each));
    this.#inbound = new Inbound(this.#inboundOptions(), { written, initialized });
    onAttached({ ...message, record: body.subarray(0, message.record).toString() });
  }

  #answered(lineId: string): void {
    if (lineId.startsWith("r:")) this.#inbound.settle(lineId.slice(2));
  }

  #refused({ lineId, message, of }: Refused): void {
    if (of === "attach") return this.#end({ code: null, signal: null, error: new Error(message) });
    if (of === "start") return this.#fail(message, undefined);
    if (of !== "write" || lineId === undefined) return;
    this.#answered(lineId);
    if (lineId === this.#initializeLine) this.#inbound.refused();
  }

  /** Kills a process that its shim may still start or continue. */
  #giveUp(): void {
    const { connection, id } = this.#options;
    this.killTree();
    this.#lose(NO_ANSWER);
    connection.giveUp(id, this.#epoch);
  }

  /** Ends the process for the SDK, because no further message will come. A start not yet reported has failed. */
  #lose(why: string): void {
    if (this.#isStarting) this.#fail(why, undefined);
    else this.#end({ code: null, signal: null, error: new Error(why) });
  }

  /** Reports a failed start as Node reports a failed child. */
  #fail(message: string, code: string | undefined): void {
    const error = Object.assign(new Error(message), { syscall: "spawn", ...(code !== undefined && { code }) });
    this.#end({ code: null, signal: null, error }, () => {
      this.#options.onStarted();
      this.emit("error", error);
    });
  }

  #end(exit: ShimmedExit, tell = () => void this.emit("exit", exit.code, exit.signal)): void {
    if (this.#hasEnded) return;
    this.#flush();
    this.#hasEnded = true;
    const { connection, id } = this.#options;
    this.#onAnswer();
    connection.unfollow(id);
    this.exitCode = exit.code;
    this.signalCode = exit.signal;
    this.#onPending([]);
    this.#onExit(exit);
    this.#lines.end();
    tell();
  }
}
