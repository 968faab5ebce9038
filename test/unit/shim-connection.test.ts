import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ShimConnection } from "../../src/claude/shim/connection.ts";
import { type ShimSettings, Shims, standingWithout } from "../../src/claude/shim/shims.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import type { SessionState } from "../../src/domain/session.ts";
import { encodeFrame } from "../../src/shim/frame.ts";
import { type FromShim, type ListedProcess, SHIM_PROTOCOL } from "../../src/shim/protocol.ts";
import { HELLO, SHIM_IDENTITY, scriptedShim } from "../kit/shim/scripted-shim.ts";

const CLIENT = { daemon: "d" };
const ID = "p";

/** A shim that answers as told, and a connection to it. */
async function connected(list?: FromShim) {
  const shim = await scriptedShim(({ t }) => (t === "hello" ? HELLO : t === "list" ? list : undefined));
  return { shim, connection: await ShimConnection.open(shim.address, CLIENT) };
}

describe("a connection to a shim", () => {
  it.each([
    ["refuses", { t: "refused", of: "hello", message: "another daemon's" }, "another daemon's"],
    ["says something else first", { t: "superseded", id: ID }, "first message is not a hello"],
    ["speaks another protocol", { ...HELLO, protocol: 99 }, `speaks protocol 99, not ${String(SHIM_PROTOCOL)}`],
    ["sends no frames", Buffer.alloc(12, 0xff), "a header has"],
    ["sends an unknown message", encodeFrame({ t: "greeting" }, Buffer.alloc(0)), "not a message of a shim"],
  ] as const)("is not opened where the shim %s", async (_, answer, why) => {
    const { address } = await scriptedShim(() => answer);
    await expect(ShimConnection.open(address, CLIENT)).rejects.toThrow(why);
  });

  it("is not opened where the shim hangs up, or there is none", async () => {
    const shim = await scriptedShim(() => {
      shim.die();
      return undefined;
    });
    await expect(ShimConnection.open(shim.address, CLIENT)).rejects.toThrow(/ended the connection|ECONNRESET|EPIPE/);
    await expect(ShimConnection.open(join(shim.address, "../none"), CLIENT)).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("ends at a message that cannot be read, and sends nothing from then on", async () => {
    const { connection, shim } = await connected();
    shim.sayRaw(encodeFrame({ t: "greeting" }, Buffer.alloc(0)));
    await connection.closed;
    connection.end();
    expect([connection.isClosed, shim.received.map(({ message }) => message.t)]).toEqual([true, ["hello"]]);
  });

  it("gives each process what the shim says of it, and no process what is said of others", async () => {
    const { connection, shim } = await connected({ t: "processes", processes: [] });
    const heard: string[] = [];
    connection.follow("a", ({ t }, body) => void heard.push(`${t} ${body.toString()}`));
    expect([connection.isFollowed("a"), connection.isFollowed("b")]).toEqual([true, false]);
    shim.say({ t: "stderr", id: "a" }, "1");
    shim.say({ t: "stderr", id: "b" }, "2");
    shim.say({ t: "refused", of: "reaper", message: "no" });
    shim.say({ t: "refused", of: "ack", id: "a", message: "no" }, "3");
    // Answered in order.
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

/** What a former server has left: a shim that has these processes, and ends each that it is told to. */
async function left(...processes: readonly ListedProcess[]) {
  return scriptedShim((message) => {
    if (message.t === "hello") return HELLO;
    if (message.t === "list") return { t: "processes", processes };
    if (message.t === "kill") return { t: "exit", id: message.id, n: 7, code: null, signal: "SIGKILL" };
    return undefined;
  });
}

function shimsOf(found: readonly string[], more: Partial<ShimSettings> = {}) {
  const said: string[] = [];
  const log = {
    debug: () => undefined,
    info: (text: string) => void said.push(text),
    warn: (text: string) => void said.push(text),
  };
  const settings: ShimSettings = {
    daemon: "d",
    sdk: "1",
    stateFolder: "/",
    keepMs: 0,
    restart: undefined,
    log,
    newAddress: async () => Promise.reject(new Error("no folder for a socket")),
    found: async () => Promise.resolve(found),
    ...more,
  };
  return { shims: new Shims(settings, undefined), said };
}

const refOf = (address: string, more: object = {}) => ({
  address,
  ...SHIM_IDENTITY,
  daemon: "d",
  sdk: "1",
  keepMs: 0,
  ...more,
});

describe("the shims that a former server has left", () => {
  it("lose their spares, keep the processes of sessions, and are needed no more", async () => {
    const shim = await left(listed("spare", {}), listed("session", { epoch: 2, session: true }));
    const { shims } = shimsOf([shim.address]);
    shims.adopt();
    expect(await shim.hears("ack")).toEqual({ t: "ack", id: "spare", epoch: 0, upTo: 7 });
    await shim.hears("end");
    const killed = shim.received.flatMap(({ message }) => (message.t === "kill" ? [message.id] : []));
    expect(killed).toEqual(["spare"]);
  });

  it("are not those that this server has started, should one not have come up", async () => {
    const own = "/nowhere/own.shim";
    const { said, shims } = shimsOf([own], { newAddress: async () => Promise.resolve(own) });
    expect(await shims.own()).toBeUndefined();
    expect(said.splice(0)).toEqual(["no shim: new processes end with this server"]);
    shims.adopt();
    await shims.end("any");
    expect(said).toEqual([]);
  });

  it("are left alone where another server lives", async () => {
    const shim = await left(listed("spare", {}), listed("session", { epoch: 2, owned: true }));
    const { said, shims } = shimsOf([shim.address]);
    shims.adopt();
    await shims.end("other");
    expect(said).toEqual(["a former server has left a shim"]);
    expect(shim.received.map(({ message }) => message.t)).toEqual(["hello", "list", "list"]);
  });

  it("do not keep others from being adopted when they do not answer", async () => {
    const shim = await left();
    const { said, shims } = shimsOf([join(shim.address, "../none"), shim.address]);
    shims.adopt();
    await shim.hears("end");
    expect(said).toEqual(["a former server has left a shim that does not answer", "a former server has left a shim"]);
  });

  it("are no fault of the server when they cannot be searched", async () => {
    const { said, shims } = shimsOf([], { found: async () => Promise.reject(new Error("EACCES")) });
    shims.adopt();
    await shims.end("any");
    expect(said).toEqual(["shims of a former server"]);
  });

  it("end a process that no session can go on with, unless this server follows it", async () => {
    const shim = await left(listed("a", { epoch: 2 }), listed("b", { epoch: 3 }));
    const { shims } = shimsOf([shim.address]);
    shims.adopt();
    (await shims.at(refOf(shim.address))).follow("b", () => undefined);
    for (const id of ["a", "b", "unknown"]) await shims.end(id);
    const told = shim.received.map(({ message }) => message).filter((message) => "id" in message);
    expect(told.slice(0, 2)).toEqual([
      { t: "attach", id: "a", epoch: 2, after: 0 },
      { t: "kill", id: "a", epoch: 2 },
    ]);
    expect(told.some(({ id }) => id !== "a")).toBe(false);
  });

  it("are reported with the processes that run, as long as they are connected", async () => {
    const shim = await left(listed("a", { epoch: 2 }), listed("b", { epoch: 2, exited: true }));
    const { shims } = shimsOf([]);
    const connection = await shims.at(refOf(shim.address));
    expect(await shims.report()).toEqual([
      { pid: SHIM_IDENTITY.pid, address: shim.address, processes: [SHIM_IDENTITY] },
    ]);
    shim.die();
    await connection.closed;
    expect(await shims.report()).toEqual([]);
  });

  it("are connected to once, anew when the connection has ended, and never in another's place", async () => {
    const shim = await left();
    const { shims } = shimsOf([]);
    const connection = await shims.at(refOf(shim.address));
    expect(await shims.at(refOf(shim.address))).toBe(connection);
    await expect(shims.at(refOf(shim.address, { pid: 18 }))).rejects.toThrow("another shim has its socket");
    await expect(shims.at(refOf(shim.address, { startedAt: "1" }))).rejects.toThrow("another shim has its socket");
    shim.die();
    await connection.closed;
    const again = await shims.at(refOf(shim.address));
    expect([again === connection, again.isClosed]).toEqual([false, false]);
    await shims.close();
    await shim.hears("end");
  });
});

describe("the standing of a process with its shim", async () => {
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
  ] as const)("is %s for a server of its name, whatever it is for others", async (own, process, without) => {
    expect([await shimsOf([]).shims.standing(process), await standingWithout(process)]).toEqual([own, without]);
  });
});

it("starts without a shim where none can be started, says why, and starts none once it ends", async () => {
  const { said, shims } = shimsOf([]);
  expect([await shims.own(), shims.fallback]).toEqual([undefined, "no folder for a socket"]);
  expect(said).toEqual(["no shim: new processes end with this server"]);
  await shims.close();
  expect(await shims.own()).toBeUndefined();
  expect(said).toHaveLength(1);
});
