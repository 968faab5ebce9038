import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { bash, bypass, outputs, playTools } from "../kit/attacks/sandboxed-server.ts";
import { daemonStatus, homeOf, killDaemons, persistently, wholeLog } from "../kit/faults/shims.ts";
import { useWorld } from "../kit/world.ts";

/**
 * A process connected to a shim or a daemon controls its sessions. A sandboxed session's shell and other users must not
 * connect.
 */

const world = useWorld();
const hasSandbox = spawnSync("bwrap", ["--version"]).status === 0;
const isRoot = process.geteuid?.() === 0;
/** Uid of an account without rights, on every system. */
const NOBODY = 65_534;

const program = (path: string) =>
  `require("net").connect(${JSON.stringify(path)}).on("connect", () => { console.log("reached"); process.exit(); }).on("error", (e) => console.log("no", e.code))`;

/** Returns the sockets of daemon and shim, and their folder. */
function socketsOf(home: string): { folder: string; sockets: string[] } {
  const folder = dirname(daemonStatus(home)[0]?.socket ?? "");
  const sockets = readdirSync(folder).filter((name) => /\.(sock|shim)$/.test(name));
  expect(sockets.map((name) => name.replace(/.*\./, "")).toSorted()).toEqual(["shim", "sock"]);
  return { folder, sockets: sockets.map((name) => join(folder, name)) };
}

const connected = (path: string, as: object = {}) =>
  spawnSync(process.execPath, ["-e", program(path)], { encoding: "utf8", cwd: "/", ...as }).stdout.trim();

it.runIf(hasSandbox)(
  "with --sandbox required (needs bubblewrap), a session's shell reaches the sockets of neither daemon nor shim",
  async () => {
    const env = { IS_SANDBOX: "1" };
    const client = await world.shared({ args: ["--sandbox", "required", "--allow-bypass"], env });
    const gate = world.folder();
    const holding = { prompt: scriptTag([{ gateBefore: gate, text: "held" }]), cwd: world.folder(), ...bypass };
    const { sessionId } = await client.call("claude_code", holding);
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    const { sockets } = socketsOf(homeOf(world));
    expect(sockets.map((path) => connected(path))).toEqual(["reached", "reached"]);
    const tried = await playTools(
      client,
      sockets.map((path) => bash(`node -e '${program(path)}'`)),
      { cwd: world.folder() },
    );
    expect(outputs(tried)).not.toContain("reached");
    expect(outputs(tried).match(/^no E/gm)).toHaveLength(2);
    world.model.release(gate);
    await client.end(sessionId);
    await client.close();
    await world.closeServers();
  },
);

it.runIf(hasSandbox)("a session stays in its sandbox when its daemon is killed (needs bubblewrap)", async () => {
  const client = await world.shared({ args: ["--sandbox", "required", "--allow-bypass"], env: { IS_SANDBOX: "1" } });
  const [gate, cwd, outside] = [world.folder(), world.folder(), join(world.folder(), "made")];
  const step = (at: number) => ({
    tools: [bash(`echo ${String(at)} >> ran.txt; touch ${outside} || echo kept in >> ran.txt`)],
  });
  const steps = scriptTag([step(0), { gateBefore: gate, ...step(1) }, { text: "done" }]);
  const { sessionId } = await client.call("claude_code", { prompt: steps, cwd, ...bypass });
  await world.model.waitForRequest(
    ({ served, sessionId: id }) => id === sessionId && "entry" in served && served.entry === 1,
  );
  await killDaemons(world);
  world.model.release(gate);
  const ended = await persistently(async () => client.end(sessionId, 1));
  expect([ended.status, ended.result?.result]).toEqual(["idle", "done"]);
  expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe("0\nkept in\n1\nkept in\n");
  expect(existsSync(outside)).toBe(false);
  const types = (await wholeLog(homeOf(world), sessionId)).map(({ event, type }) => `${type} ${event}`);
  expect(types.filter((each) => /^process\.started|owner\.changed/.test(each))).toHaveLength(2);
  await client.close();
  await world.closeServers();
});

it.runIf(isRoot)(
  "another user (needs root) reaches the sockets of neither daemon nor shim, because of their folder's mode",
  async () => {
    const client = await world.shared();
    const gate = world.folder();
    const holding = { prompt: scriptTag([{ gateBefore: gate, text: "held" }]), cwd: world.folder() };
    const { sessionId } = await client.call("claude_code", holding);
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    const home = homeOf(world);
    const { folder, sockets } = socketsOf(home);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    // Opens the folders above, so that only `folder` keeps other users out.
    for (let above = dirname(folder); above.startsWith(home); above = dirname(above)) chmodSync(above, 0o755);
    const as = { uid: NOBODY, gid: NOBODY };
    expect(sockets.map((path) => connected(path, as))).toEqual(["no EACCES", "no EACCES"]);
    world.model.release(gate);
    await client.end(sessionId);
    await client.close();
  },
);

it.runIf(isRoot)(
  "a folder made by another user (needs root) is used for no socket, even if the client names it",
  async () => {
    const runtime = world.folder();
    // Creates the product's own folder first: only the folders above can then be rejected.
    mkdirSync(join(runtime, "claude-agents-mcp"), { mode: 0o700 });
    chownSync(runtime, NOBODY, NOBODY);
    chmodSync(runtime, 0o777);
    const client = await world.shared({ env: { XDG_RUNTIME_DIR: runtime, TMPDIR: runtime } });
    const held = { prompt: scriptTag([{ text: "done" }]), cwd: world.folder(), waitMs: 40_000 };
    expect((await client.call("claude_code", held)).status).toBe("idle");
    // `daemon status` runs in another environment than the client.
    const sockets = daemonStatus(homeOf(world)).map(({ socket }) => socket);
    expect(sockets.map((path) => statSync(path).mode & 0o777)).toEqual(sockets.map(() => 0o600));
    expect(sockets.filter((path) => path.startsWith(runtime))).toEqual([]);
    expect(sockets).not.toEqual([]);
    expect(readdirSync(join(runtime, "claude-agents-mcp"))).toEqual([]);
    await client.close();
  },
);
