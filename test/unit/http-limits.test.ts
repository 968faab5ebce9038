import { EventEmitter } from "node:events";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { Connections } from "../../src/http/http-limits.ts";

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string;
  readonly writableLength = 0;
  isOpen = true;

  constructor(address: number) {
    super();
    this.remoteAddress = `192.0.2.${String(address)}`;
  }

  destroy(): void {
    this.isOpen = false;
    this.emit("close");
  }
}

function makeConnections(most: number) {
  const server = new EventEmitter();
  const connections = new Connections({ most, anonymousMs: 60_000 }, { warn: () => undefined });
  connections.guard(server as unknown as Server);
  const sockets: FakeSocket[] = [];
  return {
    sockets,
    connect: () => {
      const socket = new FakeSocket(sockets.length);
      sockets.push(socket);
      server.emit("connection", socket);
    },
    authenticate: (at: number) => connections.markAuthenticated(sockets[at] as unknown as Socket),
    open: () => sockets.map(({ isOpen }) => isOpen),
  };
}

it("connections without a token take at most half of the limit; beyond, the oldest of them is closed", () => {
  const { connect, open } = makeConnections(4);
  connect();
  connect();
  expect(open()).toEqual([true, true]);
  connect();
  expect(open()).toEqual([false, true, true]);
});

it("a new connection is closed if clients with a token hold all connections", () => {
  const { authenticate, connect, open } = makeConnections(2);
  connect();
  authenticate(0);
  connect();
  authenticate(1);
  connect();
  expect(open()).toEqual([true, true, false]);
});
