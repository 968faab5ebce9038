import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Stands between a server and a port on loopback, and causes the faults of a network. */
export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #state: "continued" | "cut" | "frozen" = "continued";

  private constructor(target: number) {
    this.#server = createServer((client) => {
      if (this.#state === "cut") return void client.destroy();
      const server = connect(target, "127.0.0.1");
      this.#join(client, server);
      this.#join(server, client);
    });
  }

  static async open(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a TCP server has no other kind of address
    return (this.#server.address() as AddressInfo).port;
  }

  /** Passes on what `from` sends, and its end. */
  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on("data", (bytes) => {
      if (to.write(bytes)) return;
      from.pause();
      to.once("drain", () => this.#state === "frozen" || from.resume());
    });
    from.on("error", () => undefined);
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    if (this.#state === "frozen") from.pause();
  }

  /** Ends all connections and refuses others, as if the server were down. */
  cut(): void {
    this.#state = "cut";
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Lets nothing through, as a network that drops packets: connections stay, without an answer. */
  freeze(): void {
    this.#state = "frozen";
    for (const socket of this.#sockets) socket.pause();
  }

  /** Delivers what was held back, and takes connections again. */
  continue(): void {
    this.#state = "continued";
    for (const socket of this.#sockets) socket.resume();
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }
}
