import type { SpawnedProcess } from "@anthropic-ai/claude-agent-sdk";
import { EventEmitter } from "node:events";
import { PassThrough, type Readable, type Writable } from "node:stream";
import type { Attached, ToShim } from "../../shim/protocol.ts";
import { LastLines } from "../supervise/output.ts";
import { unlessWithin } from "../process/time-limit.ts";
import { ANSWER_MS, type FromProcess, type ShimConnection } from "./connection.ts";
import { Inbound, type Item } from "./inbound.ts";
import { Outbound, type OutboundLine } from "./outbound.ts";
import { isSignal, type ShimmedExit, TAKEN } from "./shimmed-exit.ts";

export interface ShimmedOptions {
  readonly connection: ShimConnection;
  readonly id: string;
  readonly epoch: number;
  /** It runs, or could not be started: then without a pid. */
  readonly onStarted: (identity?: { readonly pid: number; readonly startedAt: string }) => void;
}

/** Time limit for the start of a process, which takes milliseconds, ms. */
const START_MS = 10_000;
const NO_ANSWER = "its shim does not answer";
const MAX_STDERR_CHARS = 4096;
const LINE_BREAK = 0x0a;

/** What a process has been started with: the command, and what the next owner is told. */
type Start = Omit<Extract<ToShim, { t: "start" }>, "epoch" | "id" | "t"> & { readonly record: string };

/** `record` is that of its start. */
export type AttachedProcess = Omit<Attached, "record"> & { readonly record: string };

type Refused = Extract<FromProcess, { t: "refused" }>;

/** A Claude Code behind a shim, as the Agent SDK sees it. Nothing that the SDK does ends it: it may have another owner after this one. */
export class ShimmedProcess extends EventEmitter implements SpawnedProcess {
  readonly stdin: Writable;
  /** Bounded by the spawner. */
  stdout: Readable;
  readonly killed = false;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  readonly exit: Promise<ShimmedExit>;
  /** Of a process that was attached to: ids of the requests that Claude Code still waits for. */
  readonly pending: Promise<readonly string[]>;
  readonly #options: ShimmedOptions;
  readonly #lines = new PassThrough();
  /** Parts of the lines that go to the SDK together: as many as have come at once. */
  #handed: Buffer[] = [];
  #inbound: Inbound;
  #stderr = new LastLines(MAX_STDERR_CHARS);
  #epoch: number;
  #initializeLine: string | undefined;
  #hasHooks = false;
  #onPending: (requestIds: readonly string[]) => void = () => undefined;
  #onExit: (exit: ShimmedExit) => void = () => undefined;
  #onAttached: ((attached: AttachedProcess) => void) | undefined;
  /** Ends the wait for the answer to `start` or `attach`. */
  #onAnswer: () => void = () => undefined;
  /** Set until the shim reports the start. */
  #isStarting = false;
  #hasEnded = false;
  #isLetGo = false;

  private constructor(options: ShimmedOptions) {
    super();
    // The SDK listens as well, but later; without a listener Node would throw it.
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
      // Nothing of it comes back.
      connection.unfollow(id);
      throw error;
    }
    process.#isStarting = true;
    process.#onAnswer = unlessWithin(START_MS, () => process.#giveUp());
    return process;
  }

  /** Goes on with a process behind `after`, its last line that is dealt with. Rejects with why that cannot be. */
  static async attach(options: Omit<ShimmedOptions, "onStarted">, after: number) {
    const process = new ShimmedProcess({ ...options, onStarted: () => undefined });
    const attached = new Promise<AttachedProcess>((resolve) => (process.#onAttached = resolve));
    options.connection.send({ t: "attach", id: options.id, epoch: options.epoch, after });
    process.#onAnswer = unlessWithin(ANSWER_MS, () => process.#giveUp());
    const result = await Promise.race([attached, process.exit]);
    if ("t" in result) return { process, attached: result };
    throw result.error ?? new Error("it has ended");
  }

  get stderrText(): string {
    return this.#stderr.text;
  }

  /** The number of its last line, or of its exit. */
  get lastLine(): number {
    return this.#inbound.last;
  }

  /** A spare has got its session: from now on only the session's owner may tell it anything. */
  own(epoch: number): void {
    this.#epoch = epoch;
    this.#send({ t: "attach", after: this.#inbound.last });
  }

  acknowledge(line: number): void {
    this.#send({ t: "ack", upTo: Math.min(line, this.#inbound.last) });
  }

  /** The request was reported to the session. */
  settle(requestId: string): void {
    this.#inbound.settle(requestId);
  }

  /** Another server has its session. Its epoch may not have reached the shim yet, so nothing that is said from now on may either. */
  letGo(): void {
    this.#isLetGo = true;
    this.#end(TAKEN);
  }

  endInput(): void {
    this.#send({ t: "end-input" });
  }

  /** SIGTERM to the process. */
  terminate(): void {
    this.#send({ t: "signal", signal: "SIGTERM" });
  }

  /** SIGKILL to the process and all below it. */
  killTree(): void {
    this.#send({ t: "kill" });
  }

  /** Presumes the process dead although its shim does not report the end. */
  presumeEnd(): void {
    if (!this.#hasEnded) this.#options.connection.giveUp(this.#options.id, this.#epoch);
    this.#end({ code: null, signal: "SIGKILL", error: new Error(NO_ANSWER) });
  }

  /** What the SDK would do when its session ends, or this server: the process is not its to end. */
  kill(): boolean {
    return true;
  }

  #inboundOptions() {
    return {
      hand: (...parts: Buffer[]) => {
        if (this.#handed.length === 0) queueMicrotask(() => this.#flush());
        this.#handed.push(...parts);
      },
      onExit: ({ code, signal }: Extract<Item, { code: number | null }>) =>
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
        return this.#end(TAKEN);
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
    // They come again.
    this.#stderr = new LastLines(MAX_STDERR_CHARS);
    const onAttached = this.#onAttached;
    this.#onAttached = undefined;
    this.#onAnswer();
    // A spare that has got its session: nothing of it changes.
    if (!onAttached) return;
    const written = new Set(message.written);
    const initialized = message.initialize ? body.subarray(message.record) : undefined;
    // The first that an SDK writes is its initialize.
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

  /** Kills what its shim may still start, or go on with. */
  #giveUp(): void {
    const { connection, id } = this.#options;
    this.killTree();
    this.#lose(NO_ANSWER);
    connection.giveUp(id, this.#epoch);
  }

  /** Nothing more is heard of it: a start that its shim has not reported has failed. */
  #lose(why: string): void {
    if (this.#isStarting) this.#fail(why, undefined);
    else this.#end({ code: null, signal: null, error: new Error(why) });
  }

  /** As Node reports a child that it cannot start. */
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
