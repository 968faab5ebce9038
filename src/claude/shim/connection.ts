import { connect, type Socket } from "node:net";
import { type Frame, FrameReader, ProtocolError, writeFrame } from "../../shim/frame.ts";
import { type FromShim, type ListedProcess, readFromShim, SHIM_PROTOCOL, type ToShim } from "../../shim/protocol.ts";

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
const HELLO_MS = 5_000;
const LIST_MS = 2_000;

export class ShimConnection {
  readonly address: string;
  readonly pid: number;
  readonly startedAt: string;
  /** Resolves when it has ended. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #listeners = new Map<string, ProcessListener>();
  #onList: ((processes: readonly ListedProcess[]) => void)[] = [];
  #isClosed = false;

  private constructor(address: string, socket: Socket, { pid, startedAt }: Extract<FromShim, { t: "hello" }>) {
    this.address = address;
    this.pid = pid;
    this.startedAt = startedAt;
    this.#socket = socket;
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    void this.closed.then(() => (this.#isClosed = true));
  }

  /** Rejects with the error of the system, ENOENT or ECONNREFUSED where no shim is there, or with why it does not serve this server. */
  static async open(address: string, client: Pick<ShimClient, "daemon">): Promise<ShimConnection> {
    const socket = connect(address);
    const reader = new FrameReader();
    let connection: ShimConnection | undefined;
    const hello = new Promise<ShimConnection>((resolve, reject) => {
      socket.setTimeout(HELLO_MS, () => socket.destroy(new Error("the shim does not answer")));
      socket.on("error", reject).once("close", () => reject(new Error("the shim has ended the connection")));
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
    const opened = await hello;
    socket.setTimeout(0);
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

  /** Rejects when the shim does not answer. */
  async list(): Promise<readonly ListedProcess[]> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("the shim does not answer")), LIST_MS);
      this.#onList.push((processes) => {
        clearTimeout(timer);
        resolve(processes);
      });
      this.send({ t: "list" });
    });
  }

  /** The shim is needed no more: it ends as soon as it has no process. */
  end(): void {
    this.send({ t: "end" });
  }

  #take(frame: Frame): void {
    const message = readFromShim(frame.header);
    if (message.t === "processes") this.#onList.shift()?.(message.processes);
    else if (isFromProcess(message)) this.#listeners.get(message.id)?.(message, frame.body);
  }
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
