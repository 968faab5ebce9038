import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Listener, type DaemonClient, type ListenerOptions } from "../../src/daemon/listener.ts";
import { existingFolders, socketFolders } from "../../src/daemon/socket-folders.ts";
import { describeDaemons } from "../../src/daemon/status.ts";
import { bind, checkName, connectByName, removeDeadSockets } from "../../src/daemon/socket.ts";
import { ALIVE, firstLine, PROTOCOL, WATCH, type ClientHello } from "../../src/daemon/wire.ts";
import { ConfigError } from "../../src/config/error.ts";
import { processorMs } from "../kit/runner/processor-time.ts";

let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), "ccm-daemon-"))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const hello: ClientHello = {
  protocol: PROTOCOL,
  purpose: "mcp",
  cwd: "/home/ann",
  argv: ["--spares", "0"],
  environment: { HOME: "/home/ann" },
  commandLine: ["node", "x"],
};

describe("a daemon's socket", () => {
  const hellos: ClientHello[] = [];
  const clients: DaemonClient[] = [];
  let listener: Listener;
  const options = (): ListenerOptions => ({
    folders: [root],
    name: "n",
    mayDisplace: false,
    version: "1.2.3",
    maxConnections: 1,
    accept: async (received) => {
      if (received.argv.includes("--bad")) throw new ConfigError("--bad cannot be used.");
      hellos.push(received);
      return Promise.resolve((client) => void clients.push(client));
    },
    status: async () =>
      Promise.resolve({
        pid: 1,
        startedAt: "",
        version: "",
        nodeVersion: "",
        nodeId: "",
        state: "ready",
        sessions: 0,
        processes: 0,
        turns: [],
      }),
    onStop: () => undefined,
    onCount: () => undefined,
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
  });
  beforeEach(async () => {
    clients.length = 0;
    hellos.length = 0;
    listener = new Listener(options());
    await listener.listen();
  });
  afterEach(async () => {
    await listener.refuseNew();
    await listener.end();
  });

  async function greeted(first: object | string) {
    const socket = await connectByName([root], "n");
    socket.on("error", () => undefined);
    socket.write(`${typeof first === "string" ? first : JSON.stringify(first)}\n`);
    return { socket, answer: JSON.parse(await firstLine(socket, 5_000)) as Record<string, unknown> };
  }

  it.each<[string, object | string, string]>([
    ["another protocol", { ...hello, protocol: 1 }, "protocol 1, and this daemon 2"],
    ["a relative folder", { ...hello, cwd: "x" }, "absolute"],
    ["an unknown purpose", { ...hello, purpose: "x" }, "purpose"],
    ["no JSON", "GET / HTTP/1.1", "JSON"],
  ])("a hello with %s is refused, with the reason", async (_, first, why) => {
    const { answer } = await greeted(first);
    expect(answer["refused"]).toContain(why);
    expect(clients).toEqual([]);
  });

  it("a client with wrong settings is refused with `isOfClient`", async () => {
    const { answer } = await greeted({ ...hello, argv: ["--bad"] });
    expect(answer).toMatchObject({ refused: "--bad cannot be used.", isOfClient: true });
  });

  it("a daemon answers and stops on request in any protocol version", async () => {
    expect((await greeted({ protocol: 99, purpose: "status" })).answer).toMatchObject({ state: "ready" });
    expect((await greeted({ protocol: 99, purpose: "stop" })).answer).toMatchObject({ protocol: PROTOCOL });
  });

  it("a removed socket is bound again; a socket that another daemon has put there stays", async () => {
    await listener.refuseNew();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const again = new Listener(options());
      const path = await again.listen();
      rmSync(path);
      await vi.advanceTimersByTimeAsync(5_000);
      await vi.waitUntil(() => existsSync(path), { interval: 5 });
      (await connectByName([root], "n")).destroy();
      rmSync(path);
      const other = createServer();
      await bind(other, { folders: [root], name: "n", mayDisplace: false });
      const { ino } = statSync(path);
      await vi.advanceTimersByTimeAsync(20_000);
      expect(statSync(path).ino).toBe(ino);
      await again.refuseNew();
      expect(existsSync(path)).toBe(true);
      other.close();
    } finally {
      vi.useRealTimers();
    }
  });

  it("a hello of 4 MB is read, 20 larger ones at once are refused, and the next client is served", async () => {
    const large = JSON.stringify({ ...hello, more: "x".repeat(4_000_000) });
    expect((await greeted(large)).answer["refused"]).toBeUndefined();
    const silent = await Promise.all(Array.from({ length: 20 }, async () => connectByName([root], "n")));
    const answers = silent.map(async (socket) => {
      socket.on("error", () => undefined).write("x".repeat(5_000_000));
      return firstLine(socket, 10_000);
    });
    for (const answer of answers) expect(await answer).toContain("more than 4194304 bytes");
    expect((await greeted(hello)).answer).toMatchObject({ pid: process.pid });
  });

  it("a whole hello is answered at once while 24 other connections send nothing or part of a hello", async () => {
    const others = await Promise.all(Array.from({ length: 24 }, async () => connectByName([root], "n")));
    const left = others.map((socket, at) => {
      if (at % 2 === 0) socket.write("{");
      return once(socket, "close");
    });
    const isFirst = await Promise.race([
      greeted(hello).then(() => true),
      ...left.map(async (each) => each.then(() => false)),
    ]);
    expect(isFirst).toBe(true);
    for (const socket of others) socket.destroy();
  });

  it("an endless `#` line between proxy and daemon is not kept in memory", async () => {
    const { socket } = await greeted(hello);
    const { stdin } = clients[0]!.streams;
    let received = "";
    stdin.on("data", (chunk: Buffer) => (received += chunk.toString()));
    const part = Buffer.alloc(65_536, "#");
    // Takes some 50 ms if linear in the bytes; with the line kept in memory it took more than 10 s.
    const ms = await processorMs(async () => {
      for (let count = 0; count < 512; count += 1) {
        if (!socket.write(part)) await once(socket, "drain");
      }
      socket.write('\n{"a":1}\n');
      await expect.poll(() => received).toBe('{"a":1}\n');
    });
    expect(ms).toBeLessThan(3_000);
    socket.destroy();
  });

  it("a client above `maxConnections` is refused, and the next one is accepted after a client has left", async () => {
    const first = await greeted(hello);
    expect(first.answer).toMatchObject({ protocol: PROTOCOL, pid: process.pid, version: "1.2.3" });
    expect(hellos[0]).toEqual(hello);
    expect((await greeted(hello)).answer["refused"]).toContain("1 clients");
    first.socket.end();
    await expect.poll(() => listener.clients).toBe(0);
    expect((await greeted(hello)).answer["refused"]).toBeUndefined();
  });

  it("lines pass in any pieces, `#` lines stay between proxy and daemon, and `WATCH` is answered with `ALIVE`", async () => {
    const { socket } = await greeted(hello);
    let received = "";
    clients[0]?.streams.stdin.on("data", (chunk: Buffer) => (received += chunk.toString()));
    socket.write('{"a":"#x"');
    socket.write(`}\n${WATCH.slice(0, 3)}`);
    socket.write(`${WATCH.slice(3)}\n{"b":1}\n`);
    expect(await firstLine(socket, 5_000)).toBe(ALIVE);
    expect(received).toBe('{"a":"#x"}\n{"b":1}\n');
  });

  it("others get their turn within 100 lines of a client that sends 1,000 lines at once", async () => {
    const { socket } = await greeted(hello);
    let [lines, linesBefore] = [0, 0];
    clients[0]?.streams.stdin.on("data", () => {
      if (lines === 0) setImmediate(() => (linesBefore = lines));
      lines += 1;
    });
    socket.write('{"a":1}\n'.repeat(1_000));
    await expect.poll(() => lines).toBe(1_000);
    expect(linesBefore).toBeLessThan(100);
    socket.destroy();
  });

  it("a client that reads nothing gets no notifications beyond 32 MB, and loses its connection at the next answer", async () => {
    const { socket } = await greeted(hello);
    socket.pause();
    const { stdout } = clients[0]!.streams;
    const line = (message: object) =>
      `${JSON.stringify({ jsonrpc: "2.0", ...message, text: "x".repeat(1_000_000) })}\n`;
    for (let count = 0; count < 60; count += 1) stdout.write(line({ method: "notifications/progress" }));
    expect(listener.clients).toBe(1);
    stdout.write(line({ id: 1, result: {} }));
    await expect.poll(() => listener.clients).toBe(0);
    socket.destroy();
  });
});

describe("folders of daemon sockets", () => {
  it("socket folders are the runtime, state and /tmp folders, whatever the environment, if the path is short enough", async () => {
    const state = join(root, "state");
    const user = String(process.geteuid?.());
    const own = expect.stringMatching(`^/tmp/claude-agents-mcp-${user}-[0-9a-f]{16}$`) as string;
    const runtime = expect.stringMatching(`^/run/user/${user}/claude-agents-mcp/[0-9a-f]{16}$`) as string;
    vi.stubEnv("XDG_RUNTIME_DIR", root).stubEnv("TMPDIR", root);
    expect(await socketFolders(state)).toEqual([runtime, join(state, "run"), own]);
    expect(await socketFolders(join(root, "x".repeat(100)))).toEqual([runtime, own]);
    vi.unstubAllEnvs();
  });

  it("a later folder takes the socket if the first cannot, and every folder must be the user's alone", async () => {
    writeFileSync(join(root, "file"), "");
    const folders = [join(root, "file", "run"), join(root, "second")];
    const server = createServer();
    const { path } = await bind(server, { folders, name: "n", mayDisplace: false });
    expect(path).toBe(join(root, "second", "n.sock"));
    expect([join(root, "second"), path].map((each) => statSync(each).mode & 0o777)).toEqual([0o700, 0o600]);
    (await connectByName(folders, "n")).destroy();
    server.close();
    chmodSync(join(root, "second"), 0o755);
    expect(await existingFolders(folders)).toEqual([]);
    await expect(bind(createServer(), { folders, name: "m", mayDisplace: false })).rejects.toThrow("takes a socket");
    await expect(
      bind(createServer(), { folders: [join(root, "second")], name: "m", mayDisplace: false }),
    ).rejects.toThrow("only you can enter");
  });

  it("a name belongs to one daemon; `release` keeps a successor's socket; `removeDeadSockets` removes sockets of dead daemons", async () => {
    const [first, second] = [createServer(), createServer()];
    const naming = { folders: [root], name: "n", mayDisplace: false };
    const { path, release } = await bind(first, naming);
    await expect(bind(createServer(), naming)).rejects.toThrow('Another daemon has the name "n"');
    await removeDeadSockets([root]);
    expect(readdirSync(root)).toEqual(["n.sock"]);
    rmSync(path);
    await bind(second, naming);
    await release();
    expect(existsSync(path)).toBe(true);
    first.close();
    writeFileSync(join(root, "dead.sock"), "");
    await removeDeadSockets([root]);
    expect(readdirSync(root)).toEqual(["n.sock"]);
    second.close();
    await once(second, "close");
  });

  it("with `mayDisplace` the next daemon takes the name of a frozen one, whose `release` keeps the new socket", async () => {
    const [frozen, next] = [createServer(), createServer()];
    const naming = { folders: [root], name: "n", mayDisplace: true };
    const { release } = await bind(frozen, naming);
    const { path } = await bind(next, naming);
    const reached = once(next, "connection");
    const client = await connectByName([root], "n");
    await reached;
    await release();
    expect(existsSync(path)).toBe(true);
    client.destroy();
    frozen.close();
    next.close();
  });

  it.each(["", "../x", "a b", "x".repeat(40)])("%j is refused as a daemon name", (name) => {
    expect(() => checkName(name)).toThrow("must be");
  });
});

it("a daemon asked while it binds its socket is listed under the socket where it was asked", async () => {
  const path = join(root, "n.sock");
  const daemon = createServer((socket) => socket.once("data", () => socket.end('{"pid":1,"socket":""}\n')));
  daemon.listen(path);
  await once(daemon, "listening");
  expect(await describeDaemons([{ name: "n", path }])).toMatchObject({ running: [{ socket: path }], silent: [] });
  daemon.close();
});
