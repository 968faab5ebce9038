import { connect, type Socket } from "node:net";
import { type Frame, FrameReader, ProtocolError, writeFrame } from "../../shim/frame.ts";
import { type FromShim, type ListedProcess, readFromShim, SHIM_PROTOCOL, type ToShim } from "../../shim/protocol.ts";
import { unlessWithin } from "../process/time-limit.ts";

/** One connection of this server to a shim, for all processes that it has there. */

/** Who connects: a shim serves the daemon of one name. */
export interface ShimClient {
  readonly daemon: string;
  /** Version of the Agent SDK. */
  readonly sdk: string;
}

/** What a shim says of one process. */
export type FromProcess = Extract<FromShim, { id: string }> | (Extract<FromShim, { t: "refused" }> & { id: string });

export type ProcessListener = (message: FromProcess, body: Buffer) => void;

/** A shim answers at once; one that does not is frozen, ms. */
export const ANSWER_MS = 5_000;
const NO_ANSWER = "the shim does not answer";
const HUNG_UP = "the shim has ended the connection";

export class ShimConnection {
  readonly address: string;
  readonly pid: number;
  readonly startedAt: string;
  /** Resolves when it has ended. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #listeners = new Map<string, ProcessListener>();
  /** Epochs of processes that this server has given up, by id: their shim is to forget them once they have ended. */
  readonly #givenUp = new Map<string, number>();
  /** Called without a list when the connection has ended. */
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

  /** Rejects with the error of the system, ENOENT or ECONNREFUSED where no shim is there, or with why it does not serve this server. */
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
            else resolve((connection = new ShimConnection(address, socket, helloIn(frame))));
          }
        } catch (error) {
          socket.destroy(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
    const ours: ToShim = { t: "hello", protocol: SHIM_PROTOCOL, daemon: client.daemon };
    writeFrame(socket, ours);
    const opened = await hello.finally(onHello);
    // By itself it must not be what keeps this server alive; see `follow`.
    socket.unref();
    return opened;
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#socket.destroyed;
  }

  /** No-op on an ended connection, see `closed`. */
  send(message: ToShim, body?: Buffer): void {
    if (!this.isClosed) writeFrame(this.#socket, message, body);
  }

  /** Until `unfollow` this server lives: one that ends in good order waits for the end of its processes, and may have nothing else to wait for. */
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

  /** Nothing more is heard of the process, which is being ended. Its shim may be frozen, and end it later. */
  giveUp(id: string, epoch: number): void {
    this.unfollow(id);
    this.#givenUp.set(id, epoch);
  }

  /** Rejects when the shim does not answer. */
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

  /** The shim is needed no more: it ends as soon as it has no process. */
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

  /** Acknowledges what comes of a process that was given up, so that its shim forgets it. */
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

function helloIn({ header }: Frame): Extract<FromShim, { t: "hello" }> {
  const message = readFromShim(header);
  if (message.t === "refused") throw new ProtocolError(message.message);
  if (message.t !== "hello") throw new ProtocolError("the shim's first message is no hello");
  if (message.protocol === SHIM_PROTOCOL) return message;
  throw new ProtocolError(`the shim speaks protocol ${String(message.protocol)}, not ${String(SHIM_PROTOCOL)}`);
}
