import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { bash, bypass, outputs, tries } from "../support/attacks/sandboxed-server.ts";
import { daemonStatus, homeOf } from "../support/faults/shims.ts";
import { useWorld } from "../support/world.ts";

/** Who connects to a shim or a daemon rules its sessions: a sandboxed session's own shell and other users cannot. */

const world = useWorld();
const hasSandbox = spawnSync("bwrap", ["--version"]).status === 0;
const isRoot = process.geteuid?.() === 0;
/** Of an account without rights, on every system. */
const NOBODY = 65_534;

const program = (path: string) =>
  `require("net").connect(${JSON.stringify(path)}).on("connect", () => { console.log("reached"); process.exit(); }).on("error", (e) => console.log("no", e.code))`;

/** Of a daemon and its shim. */
function socketsOf(home: string): { folder: string; sockets: string[] } {
  const folder = dirname(daemonStatus(home)[0]?.socket ?? "");
  const sockets = readdirSync(folder).filter((name) => /\.(sock|shim)$/.test(name));
  expect(sockets.map((name) => name.replace(/.*\./, "")).toSorted()).toEqual(["shim", "sock"]);
  return { folder, sockets: sockets.map((name) => join(folder, name)) };
}

const connected = (path: string, as: object = {}) =>
  spawnSync(process.execPath, ["-e", program(path)], { encoding: "utf8", cwd: "/", ...as }).stdout.trim();

it.runIf(hasSandbox)("with --sandbox required (needs bubblewrap), a session's shell reaches neither", async () => {
  const env = { IS_SANDBOX: "1" };
  const client = await world.shared({ args: ["--sandbox", "required", "--allow-bypass"], env });
  const gate = world.folder();
  const holding = { prompt: scriptTag([{ gateBefore: gate, text: "held" }]), cwd: world.folder(), ...bypass };
  const { sessionId } = await client.call("claude_code", holding);
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  const { sockets } = socketsOf(homeOf(world));
  expect(sockets.map((path) => connected(path))).toEqual(["reached", "reached"]);
  const tried = await tries(
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
});

it.runIf(isRoot)("another user (needs root) reaches neither, by the mode of their folder", async () => {
  const client = await world.shared();
  const gate = world.folder();
  const holding = { prompt: scriptTag([{ gateBefore: gate, text: "held" }]), cwd: world.folder() };
  const { sessionId } = await client.call("claude_code", holding);
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  const home = homeOf(world);
  const { folder, sockets } = socketsOf(home);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  // Only this folder keeps them out.
  for (let above = dirname(folder); above.startsWith(home); above = dirname(above)) chmodSync(above, 0o755);
  const as = { uid: NOBODY, gid: NOBODY };
  expect(sockets.map((path) => connected(path, as))).toEqual(["no EACCES", "no EACCES"]);
  world.model.release(gate);
  await client.end(sessionId);
  await client.close();
});
