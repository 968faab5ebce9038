import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ShimConnection } from "../../src/claude/shim/connection.ts";
import { Shims, relationWithoutShims } from "../../src/claude/shim/shims.ts";
import type { ShimSettings } from "../../src/claude/shim/start-shim.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import type { SessionState } from "../../src/domain/session.ts";
import { encodeFrame } from "../../src/shim/frame.ts";
import { type FromShim, type ListedProcess, SHIM_PROTOCOL } from "../../src/shim/protocol.ts";
import { HELLO, SHIM_IDENTITY, scriptedShim } from "../kit/shim/scripted-shim.ts";

const CLIENT = { daemon: "d" };
const ID = "p";

/** Opens a connection to a scripted shim that answers `list` with the given message. */
async function openConnection(list?: FromShim) {
  const shim = await scriptedShim(({ t }) => (t === "hello" ? HELLO : t === "list" ? list : undefined));
  return { shim, connection: await ShimConnection.open(shim.address, CLIENT) };
}

describe("a connection to a shim", () => {
  it.each([
    ["refuses", { t: "refused", of: "hello", message: "another daemon's" }, "another daemon's"],
    ["first sends another message", { t: "superseded", id: ID }, "first message is not a hello"],
    ["speaks another protocol", { ...HELLO, protocol: 99 }, `speaks protocol 99, not ${String(SHIM_PROTOCOL)}`],
    ["sends no frames", Buffer.alloc(12, 0xff), "a header has"],
    ["sends an unknown message", encodeFrame({ t: "greeting" }, Buffer.alloc(0)), "not a message of a shim"],
  ] as const)("a connection is not opened if the shim %s", async (_, answer, why) => {
    const { address } = await scriptedShim(() => answer);
    await expect(ShimConnection.open(address, CLIENT)).rejects.toThrow(why);
  });

  it("a connection is not opened if the shim hangs up or does not exist", async () => {
    const shim = await scriptedShim(() => {
      shim.die();
      return undefined;
    });
    await expect(ShimConnection.open(shim.address, CLIENT)).rejects.toThrow(/ended the connection|ECONNRESET|EPIPE/);
    await expect(ShimConnection.open(join(shim.address, "../none"), CLIENT)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("a connection ends at a message that cannot be read, and sends nothing from then on", async () => {
    const { connection, shim } = await openConnection();
    shim.sayRaw(encodeFrame({ t: "greeting" }, Buffer.alloc(0)));
    await connection.closed;
    connection.end();
    expect([connection.isClosed, shim.received.map(({ message }) => message.t)]).toEqual([true, ["hello"]]);
  });

  it("a message of the shim reaches only the process that it names", async () => {
    const { connection, shim } = await openConnection({ t: "processes", processes: [] });
    const heard: string[] = [];
    connection.follow("a", ({ t }, body) => void heard.push(`${t} ${body.toString()}`));
    expect([connection.isFollowed("a"), connection.isFollowed("b")]).toEqual([true, false]);
    shim.say({ t: "stderr", id: "a" }, "1");
    shim.say({ t: "stderr", id: "b" }, "2");
    shim.say({ t: "refused", of: "reaper", message: "no" });
    shim.say({ t: "refused", of: "ack", id: "a", message: "no" }, "3");
    // The answer to `list` comes after the messages above, because a shim answers in order.
    expect(await connection.list()).toEqual([]);
    expect(heard).toEqual(["stderr 1", "refused 3"]);
    connection.unfollow("a");
    expect(connection.isFollowed("a")).toBe(false);
  });
});

const listed = (id: string, more: Partial<ListedProcess>): ListedProcess => ({
  id,
  ...SHIM_IDENTITY,
  epoch: 0,
  tag: "",
  ...more,
});

/** Starts the shim of a former server with `processes`; a process ends on `kill`. */
async function formerShim(...processes: readonly ListedProcess[]) {
  return scriptedShim((message) => {
    if (message.t === "hello") return HELLO;
    if (message.t === "list") return { t: "processes", processes };
    if (message.t === "kill") return { t: "exit", id: message.id, n: 7, code: null, signal: "SIGKILL" };
    return undefined;
  });
}

function shimsOf(sockets: readonly string[], more: Partial<ShimSettings> = {}) {
  const logged: string[] = [];
  const log = {
    debug: () => undefined,
    info: (text: string) => void logged.push(text),
    warn: (text: string) => void logged.push(text),
  };
  const settings: ShimSettings = {
    daemon: "d",
    sdk: "1",
    stateFolder: "/",
    keepMs: 0,
    restart: undefined,
    log,
    newAddress: async () => Promise.reject(new Error("no folder for a socket")),
    findSockets: async () => Promise.resolve(sockets),
    ...more,
  };
  return { shims: new Shims(settings, undefined), logged };
}

const refOf = (address: string, more: object = {}) => ({
  address,
  ...SHIM_IDENTITY,
  daemon: "d",
  sdk: "1",
  keepMs: 0,
  ...more,
});

describe("shims of a former server", () => {
  it("adoption ends the spares of a shim, keeps the processes of sessions, and lets the shim end afterwards", async () => {
    const shim = await formerShim(listed("spare", {}), listed("session", { epoch: 2, session: true }));
    const { shims } = shimsOf([shim.address]);
    shims.adopt();
    expect(await shim.hears("ack")).toEqual({ t: "ack", id: "spare", epoch: 0, upTo: 7 });
    await shim.hears("end");
    const killed = shim.received.flatMap(({ message }) => (message.t === "kill" ? [message.id] : []));
    expect(killed).toEqual(["spare"]);
  });

  it("the server's own shim is not adopted as a former one if it did not come up", async () => {
    const own = "/nowhere/own.shim";
    const { logged, shims } = shimsOf([own], { newAddress: async () => Promise.resolve(own) });
    expect(await shims.own()).toBeUndefined();
    expect(logged.splice(0)).toEqual(["no shim: new processes end with this server"]);
    shims.adopt();
    await shims.end("any");
    expect(logged).toEqual([]);
  });

  it("a shim of another living server is left alone", async () => {
    const shim = await formerShim(listed("spare", {}), listed("session", { epoch: 2, owned: true }));
    const { logged, shims } = shimsOf([shim.address]);
    shims.adopt();
    await shims.end("other");
    expect(logged).toEqual(["a former server has left a shim"]);
    expect(shim.received.map(({ message }) => message.t)).toEqual(["hello", "list", "list"]);
  });

  it("a shim that does not answer does not keep others from being adopted", async () => {
    const shim = await formerShim();
    const { logged, shims } = shimsOf([join(shim.address, "../none"), shim.address]);
    shims.adopt();
    await shim.hears("end");
    expect(logged).toEqual(["a former server has left a shim that does not answer", "a former server has left a shim"]);
  });

  it("a failed search for shims is logged and does no harm", async () => {
    const { logged, shims } = shimsOf([], { findSockets: async () => Promise.reject(new Error("EACCES")) });
    shims.adopt();
    await shims.end("any");
    expect(logged).toEqual(["shims of a former server"]);
  });

  it("a process that no session can go on with is ended, unless this server follows it", async () => {
    const shim = await formerShim(listed("a", { epoch: 2 }), listed("b", { epoch: 3 }));
    const { shims } = shimsOf([shim.address]);
    shims.adopt();
    (await shims.connectTo(refOf(shim.address))).follow("b", () => undefined);
    for (const id of ["a", "b", "unknown"]) await shims.end(id);
    const sent = shim.received.map(({ message }) => message).filter((message) => "id" in message);
    expect(sent.slice(0, 2)).toEqual([
      { t: "attach", id: "a", epoch: 2, after: 0 },
      { t: "kill", id: "a", epoch: 2 },
    ]);
    expect(sent.some(({ id }) => id !== "a")).toBe(false);
  });

  it("a shim is reported with its running processes while it is connected", async () => {
    const shim = await formerShim(listed("a", { epoch: 2 }), listed("b", { epoch: 2, exited: true }));
    const { shims } = shimsOf([]);
    const connection = await shims.connectTo(refOf(shim.address));
    expect(await shims.report()).toEqual([
      { pid: SHIM_IDENTITY.pid, address: shim.address, processes: [SHIM_IDENTITY] },
    ]);
    shim.die();
    await connection.closed;
    expect(await shims.report()).toEqual([]);
  });

  it("a shim has one connection, and a new one after its end; another shim at its address is refused", async () => {
    const shim = await formerShim();
    const { shims } = shimsOf([]);
    const connection = await shims.connectTo(refOf(shim.address));
    expect(await shims.connectTo(refOf(shim.address))).toBe(connection);
    await expect(shims.connectTo(refOf(shim.address, { pid: 18 }))).rejects.toThrow(
      "the socket now belongs to another shim",
    );
    await expect(shims.connectTo(refOf(shim.address, { startedAt: "1" }))).rejects.toThrow(
      "the socket now belongs to another shim",
    );
    shim.die();
    await connection.closed;
    const again = await shims.connectTo(refOf(shim.address));
    expect([again === connection, again.isClosed]).toEqual([false, false]);
    await shims.close();
    await shim.hears("end");
  });

  it("every shim is told of the lease of this node, when it is renewed and before anything else", async () => {
    const [first, later] = [await formerShim(), await formerShim()];
    const { shims } = shimsOf([]);
    await shims.connectTo(refOf(first.address));
    expect(first.received.map(({ message }) => message.t)).toEqual(["hello"]);
    shims.leaseRenewed(27_000);
    expect((await first.hears("lease")).forMs).toBeGreaterThan(26_000);
    await shims.connectTo(refOf(later.address));
    const { forMs } = await later.hears("lease");
    expect([forMs > 20_000, forMs <= 27_000]).toEqual([true, true]);
    expect(later.received.map(({ message }) => message.t)).toEqual(["hello", "lease"]);
    await shims.close();
  });
});

describe("the relation of a process in a shim to a server", async () => {
  const living = { pid: process.pid, startedAt: (await startTime(process.pid))! };
  const withShim = (ref?: object) =>
    ({ phase: "live", ...(ref && { shim: refOf("/none", ref) }) }) as SessionState["process"];

  it.each([
    ["ours", withShim(living), "theirs"],
    ["gone", withShim({ ...living, sdk: "2" }), "theirs"],
    ["gone", withShim({ ...living, startedAt: "1" }), "gone"],
    ["theirs", withShim({ ...living, daemon: "e" }), "theirs"],
    ["gone", withShim({ ...living, daemon: "e", startedAt: "1" }), "gone"],
    ["gone", withShim(), "gone"],
    ["gone", { phase: "none" } as const, "gone"],
  ] as const)("the relation of a process to this server is %s", async (own, process, without) => {
    expect([await shimsOf([]).shims.relationTo(process), await relationWithoutShims(process)]).toEqual([own, without]);
  });
});

it("if no shim can be started, the reason is logged once, and none is started after the close", async () => {
  const { logged, shims } = shimsOf([]);
  expect([await shims.own(), shims.fallback]).toEqual([undefined, "no folder for a socket"]);
  expect(logged).toEqual(["no shim: new processes end with this server"]);
  await shims.close();
  expect(await shims.own()).toBeUndefined();
  expect(logged).toHaveLength(1);
});
