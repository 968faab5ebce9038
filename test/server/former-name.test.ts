import { lstatSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FORMER_PRODUCT, PRODUCT } from "../../src/domain/names.ts";
import { letGo } from "../support/store/files.ts";
import { startHttp } from "../support/http-server.ts";
import { connect, type Server } from "../support/stdio-server.ts";
import { addSession, id, run, seed } from "../support/sessions-command.ts";

/** An update from an older version keeps the sessions and the token, under today's name. */

const MOVED = "the state folder was moved to its new name";
const KEPT = "the state folder keeps its former name";

let home: string;
let former: string;
let present: string;
let servers: Pick<Server, "close" | "stderr">[];

beforeEach(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "ccm-name-")));
  [former, present] = [FORMER_PRODUCT, PRODUCT].map((name) => join(home, name)) as [string, string];
  servers = [];
  mkdirSync(former, { mode: 0o700 });
  writeFileSync(join(former, "http-token"), "ccm_of-an-older-version-0123456789abcdef\n", { mode: 0o600 });
  await seed(join(former, "store.db"), async (node) => addSession(node, id(1)));
  await letGo();
});
afterEach(async () => {
  await Promise.all(servers.map(async (server) => server.close()));
  rmSync(home, { recursive: true, force: true });
});

async function start(...args: string[]): Promise<Server> {
  const server = await connect("modern", { args, env: { HOME: home, XDG_STATE_HOME: home } });
  servers.push(server);
  return server;
}

async function listedBy(server: Server): Promise<unknown> {
  const { sessions } = await server.call("claude_code_session", { action: "list" });
  return (sessions as { sessionId: string }[]).map(({ sessionId }) => sessionId);
}

describe("the state folder of an older version", () => {
  it("is moved by one of two servers that begin at once, which says so; both have its sessions", async () => {
    const both = await Promise.all([start(), start()]);
    expect(await Promise.all(both.map(listedBy))).toEqual([[id(1)], [id(1)]]);
    expect(lstatSync(present).isDirectory()).toBe(true);
    expect(lstatSync(former).isSymbolicLink()).toBe(true);
    const lines = both.flatMap((server) => server.stderr().split("\n"));
    expect(lines.filter((line) => line.includes(MOVED))).toHaveLength(1);
    expect(lines.filter((line) => line.includes(KEPT))).toEqual([]);
  });

  it("stays while an older server has it open, whose sessions are shared; the next start moves it", async () => {
    // A server of an older version only opens it by its path.
    const older = await start("--store", join(former, "store.db"));
    expect(await listedBy(older)).toEqual([id(1)]);
    expect(older.stderr()).not.toContain(MOVED);
    const first = await start();
    expect(await listedBy(first)).toEqual([id(1)]);
    await expect.poll(() => first.stderr()).toContain(KEPT);
    expect(lstatSync(former).isDirectory()).toBe(true);
    await Promise.all(servers.splice(0).map(async (server) => server.close()));
    const { stderr, stdout } = await run(["list", "--json"], { HOME: home, XDG_STATE_HOME: home });
    expect(stdout).toContain(id(1));
    expect(stderr).toContain(MOVED);
    // The old path still leads to the same store.
    expect(await listedBy(await start("--store", join(former, "store.db")))).toEqual([id(1)]);
  });

  it("is not touched for a store that is named, though it lies in there", async () => {
    for (const store of [join(former, "own.db"), "memory:"]) {
      expect(await listedBy(await start("--store", store))).toEqual([]);
    }
    expect(lstatSync(former).isDirectory()).toBe(true);
    expect(() => lstatSync(present)).toThrow("ENOENT");
  });

  it("gives the server over HTTP the token that its clients have", async () => {
    const token = readFileSync(join(former, "http-token"), "utf8").trim();
    const env = { HOME: home, XDG_STATE_HOME: home };
    const server = await startHttp({ args: ["--http", "127.0.0.1:0", "--drain-ms", "0"], env, token });
    servers.push(server);
    const client = await server.connect();
    const { sessions } = await client.call("claude_code_session", { action: "list" });
    expect(sessions).toMatchObject([{ sessionId: id(1) }]);
    expect(readFileSync(join(present, "http-token"), "utf8").trim()).toBe(token);
    expect(server.stderr()).not.toContain("created a token");
    await client.close();
  });
});
