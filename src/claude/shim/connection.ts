import { connect, type Socket } from "node:net";
import { type Frame, FrameReader, ProtocolError, writeFrame } from "../../shim/frame.ts";
import { type FromShim, type ListedProcess, readFromShim, SHIM_PROTOCOL, type ToShim } from "../../shim/protocol.ts";
import { unlessWithin } from "../process/time-limit.ts";

/** Connects this server to a shim, for all its processes there. */

/** Identifies the connecting server: a shim serves a single daemon name. */
export interface ShimClient {
  readonly daemon: string;
  /** Version of the Agent SDK. */
  readonly sdk: string;
}

/** Message from a shim about a process. */
export type FromProcess = Extract<FromShim, { id: string }> | (Extract<FromShim, { t: "refused" }> & { id: string });

export type ProcessListener = (message: FromProcess, body: Buffer) => void;

/** Time limit for an answer of a shim, ms. A shim without an answer is frozen. */
export const ANSWER_MS = 5_000;
const NO_ANSWER = "the shim does not answer";
const HUNG_UP = "the shim has ended the connection";

export class ShimConnection {
  readonly address: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #listeners = new Map<string, ProcessListener>();
  /** Epochs of given-up processes, by id, for acknowledging their lines and exit. */
  readonly #givenUp = new Map<string, number>();
  /** Waiting `list` calls; called without `processes` at the end of the connection. */
  #onList: ((processes?: readonly ListedProcess[]) => void)[] = [];
  #isClosed = false;

  private constructor(address: string, socket: Socket, { pid, startedAt }: Extract<FromShim, { t: "hello" }>) {
    this.address = address;
    this.pid = pid;
    this.startedAt = startedAt;
    this.#socket = socket;
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    void this.closed.then(() => this.#onClosed());
  }

  /** Rejects with the error of the system (ENOENT or ECONNREFUSED without a shim), or with the shim's refusal. */
  static async open(address: string, client: Pick<ShimClient, "daemon">): Promise<ShimConnection> {
    const socket = connect(address);
    const reader = new FrameReader();
    let connection: ShimConnection | undefined;
    const onHello = unlessWithin(ANSWER_MS, () => socket.destroy(new Error(NO_ANSWER)));
    const hello = new Promise<ShimConnection>((resolve, reject) => {
      socket.on("error", reject).once("close", () => reject(new Error(HUNG_UP)));
      socket.on("data", (chunk) => {
        try {
          for (const frame of reader.push(chunk)) {
            if (connection) connection.#take(frame);
            else resolve((connection = new ShimConnection(address, socket, readHello(frame))));
          }
        } catch (error) {
          socket.destroy(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
    const ours: ToShim = { t: "hello", protocol: SHIM_PROTOCOL, daemon: client.daemon };
    writeFrame(socket, ours);
    const opened = await hello.finally(onHello);
    // The connection alone must not keep this server alive, see `follow`.
    socket.unref();
    return opened;
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#socket.destroyed;
  }

  /** No-op after the end of the connection, see `closed`. */
  send(message: ToShim, body?: Buffer): void {
    if (!this.isClosed) writeFrame(this.#socket, message, body);
  }

  /**
   * Keeps this server alive until `unfollow`, because a regular shutdown waits for the end of processes, and maybe for nothing
   * else.
   */
  follow(id: string, listener: ProcessListener): void {
    this.#listeners.set(id, listener);
    this.#socket.ref();
  }

  isFollowed(id: string): boolean {
    return this.#listeners.has(id);
  }

  unfollow(id: string): void {
    this.#listeners.delete(id);
    if (this.#listeners.size === 0) this.#socket.unref();
  }

  /** Ignores further messages of a process being ended; a frozen shim may end the process later. */
  giveUp(id: string, epoch: number): void {
    this.unfollow(id);
    this.#givenUp.set(id, epoch);
  }

  /** Rejects if the shim does not answer. */
  async list(): Promise<readonly ListedProcess[]> {
    if (this.isClosed) throw new Error(HUNG_UP);
    return new Promise((resolve, reject) => {
      const onAnswer = unlessWithin(ANSWER_MS, () => reject(new Error(NO_ANSWER)));
      this.#onList.push((processes) => {
        onAnswer();
        if (processes) resolve(processes);
        else reject(new Error(HUNG_UP));
      });
      this.send({ t: "list" });
    });
  }

  /** Lets the shim end as soon as no process is left. */
  end(): void {
    this.send({ t: "end" });
  }

  #onClosed(): void {
    this.#isClosed = true;
    for (const answer of this.#onList.splice(0)) answer();
  }

  #take(frame: Frame): void {
    const message = readFromShim(frame.header);
    if (message.t === "processes") this.#onList.shift()?.(message.processes);
    else if (isFromProcess(message)) (this.#listeners.get(message.id) ?? this.#passOver)(message, frame.body);
  }

  /** Acknowledges lines and exit of a given-up process, so that its shim forgets the process. */
  readonly #passOver: ProcessListener = (message) => {
    const epoch = this.#givenUp.get(message.id);
    if (epoch === undefined || (message.t !== "lines" && message.t !== "exit")) return;
    this.send({ t: "ack", id: message.id, epoch, upTo: message.n });
    if (message.t === "exit") this.#givenUp.delete(message.id);
  };
}

function isFromProcess(message: FromShim): message is FromProcess {
  return message.t === "refused" ? message.id !== undefined : "id" in message;
}

function readHello({ header }: Frame): Extract<FromShim, { t: "hello" }> {
  const message = readFromShim(header);
  if (message.t === "refused") throw new ProtocolError(message.message);
  if (message.t !== "hello") throw new ProtocolError("the shim's first message is not a hello");
  if (message.protocol === SHIM_PROTOCOL) return message;
  throw new ProtocolError(`the shim speaks protocol ${String(message.protocol)}, not ${String(SHIM_PROTOCOL)}`);
}
