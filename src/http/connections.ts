import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "../engine/ports.ts";

/**
 * How many connections there are at a time. One takes a file descriptor before anybody knows whose it is, and without
 * descriptors no session can start its Claude Code. So connections on which nobody has been admitted yet give way: to
 * newer ones, the oldest first, because whoever has a token shows it at once; and to time.
 */

export interface ConnectionLimits {
  /** All connections of the server. */
  readonly most: number;
  /** A connection on which nobody was admitted is cut off after so long, ms. */
  readonly strangerMs: number;
}

/** Of all connections so large a share may be strangers'. */
const STRANGERS = 0.5;
/** Of all connections so large a share, and never more than so many, may be strangers' from one address. */
const ONE_ADDRESS = 0.25;
const MAX_PER_ADDRESS = 64;
/** The log says no more often that connections were cut off, ms. */
const TELL_EVERY_MS = 60_000;

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #log: Pick<Logger, "warn">;
  readonly #all = new Set<Socket>();
  /** With the timer that ends them, the oldest first. */
  readonly #strangers = new Map<Socket, NodeJS.Timeout>();
  readonly #byAddress = new Map<string, Set<Socket>>();
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(limits: ConnectionLimits, log: Pick<Logger, "warn">) {
    this.#limits = limits;
    this.#log = log;
  }

  guard(server: Server): void {
    server.on("connection", (socket: Socket) => this.#take(socket));
  }

  /** Somebody was admitted on it. */
  know(socket: Socket): void {
    clearTimeout(this.#strangers.get(socket));
    this.#strangers.delete(socket);
    this.#leaveAddress(socket);
  }

  #take(socket: Socket): void {
    const { most, strangerMs } = this.#limits;
    const address = socket.remoteAddress ?? "";
    const ofAddress = this.#byAddress.get(address) ?? new Set();
    if (ofAddress.size >= Math.max(1, Math.min(MAX_PER_ADDRESS, Math.floor(most * ONE_ADDRESS)))) {
      this.#cut(first(ofAddress), `more than ${String(ofAddress.size)} without a token from one address`);
    } else if (this.#strangers.size >= Math.max(1, most * STRANGERS) || this.#all.size >= most) {
      const oldest = first(this.#strangers.keys());
      const isFull = this.#all.size >= most;
      this.#cut(
        oldest ?? socket,
        `${isFull ? "all" : "half"} of ${String(most)} (--max-connections) are taken${isFull ? "" : " without a token"}`,
      );
      if (!oldest) return;
    }
    this.#all.add(socket);
    const timer = setTimeout(() => this.#timeOut(socket), strangerMs).unref();
    this.#strangers.set(socket, timer);
    this.#byAddress.set(address, ofAddress.add(socket));
    // By then the socket has forgotten where it came from.
    socket.once("close", () => this.#forget(socket, address));
  }

  /** An answer that is on its way may take longer: how long, is for who looks after slow readers. */
  #timeOut(socket: Socket): void {
    if (socket.writableLength > 0) this.#strangers.get(socket)?.refresh();
    else socket.destroy();
  }

  #cut(socket: Socket | undefined, why: string): void {
    if (socket) this.know(socket);
    socket?.destroy();
    if (performance.now() < this.#toldAt + TELL_EVERY_MS) return;
    this.#toldAt = performance.now();
    this.#log.warn("connections are cut off: there are too many", { why });
  }

  #forget(socket: Socket, address: string): void {
    this.#all.delete(socket);
    this.know(socket);
    this.#byAddress.get(address)?.delete(socket);
    if (this.#byAddress.get(address)?.size === 0) this.#byAddress.delete(address);
  }

  #leaveAddress(socket: Socket): void {
    this.#byAddress.get(socket.remoteAddress ?? "")?.delete(socket);
  }
}

function first<T>(all: Iterable<T>): T | undefined {
  for (const one of all) return one;
  return undefined;
}
