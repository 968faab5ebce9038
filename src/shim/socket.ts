import { chmodSync, existsSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { Connection, HELLO_MS } from "./connection.ts";
import { beginsWithFrame, type Frame } from "./frame.ts";
import { firstPart, HelloQueue } from "./hello-queue.ts";

interface SocketHandlers {
  frame(connection: Connection, frame: Frame): void;
  closed(connection: Connection): void;
  /** Reports that a connection was not accepted, or that the socket was removed and bound again. Open connections go on. */
  fault(message: string): void;
}

const CLOSE_MS = 1_000;
/** Interval of checks for a removed socket, ms. */
const LOOK_MS = 5_000;
const MAX_CONNECTIONS = 64;

/** Socket of a shim. Limits how many connections are read before their hello (`HelloQueue`). */
export class ShimSocket {
  readonly connections = new Set<Connection>();
  readonly #handlers: SocketHandlers;
  readonly #hellos = new HelloQueue();
  #server: Server | undefined;
  #watchTimer: NodeJS.Timeout | undefined;

  constructor(handlers: SocketHandlers) {
    this.#handlers = handlers;
  }

  /** Binds `path`, and again each time the file is removed. Rejects with the system error of the first attempt. */
  async listen(path: string): Promise<void> {
    await this.#bind(path);
    this.#watchTimer = setInterval(() => {
      if (existsSync(path)) return;
      // Closes the old server first, because closing removes the file at its path.
      this.#server?.close();
      this.#bind(path).then(
        () => this.#handlers.fault(`${path} was removed: it is bound again`),
        // Binding fails if the folder is gone as well: the daemon makes the folder again.
        () => undefined,
      );
    }, LOOK_MS);
  }

  async #bind(path: string): Promise<void> {
    const server = createServer((socket) => void this.#take(socket));
    server.maxConnections = MAX_CONNECTIONS;
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
    chmodSync(path, 0o600);
    // Emitted if Node cannot accept a connection, for example without free file descriptors.
    server.on("error", ({ message }) => this.#handlers.fault(message));
  }

  /** Removes the socket. Resolves after all answers are sent, or after `CLOSE_MS`. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      setTimeout(resolve, CLOSE_MS);
      clearInterval(this.#watchTimer);
      this.#server?.close(() => resolve());
      for (const connection of this.connections) connection.end();
    });
  }

  async #take(socket: Socket): Promise<void> {
    const connection = new Connection(socket, {
      frame: (from, frame) => this.#handlers.frame(from, frame),
      closed: (from) => {
        this.connections.delete(from);
        this.#handlers.closed(from);
      },
    });
    this.connections.add(connection);
    const first = await firstPart(socket, HELLO_MS);
    await this.#hellos.run(async () => connection.read(), beginsWithFrame(first));
  }
}
