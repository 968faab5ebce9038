import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { daemonStatus, reportedShims } from "../kit/faults/shims.ts";
import { storedEvents, storedNodes } from "../kit/store/stored.ts";
import { AT_WORK, runShortTurn } from "../kit/faults/daemon-work.ts";
import { useWorld } from "../kit/world.ts";

/** Tests a second daemon of a name: no action before the name is free, no harm to a living first daemon. */

const world = useWorld({ agent: "stand-in" });
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");
const ARGS = ["--drain-ms", "0"];

/** Runs another daemon `name`; resolves to the whole stderr. */
async function runSecond(home: string, name: string): Promise<string> {
  const child = spawn(process.execPath, [MAIN, "daemon", "run", "--daemon", name], {
    env: { PATH: process.env["PATH"] ?? "", HOME: home },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
  await once(child, "close");
  return said;
}

/** Leaves a socket of a dead process at `path`. */
function leaveSocket(path: string): void {
  const program = `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", program, path]);
}

it("a second daemon that does not get the name changes nothing, whatever the first daemon does", async () => {
  for (const begin of Object.values(AT_WORK)) {
    const env = { HOME: world.folder() };
    const first = await world.daemon({ name: "one", env, args: [...ARGS, "--spares", "1"] });
    const client = await first.client();
    await begin(client, world.folder());
    const shims = reportedShims(env.HOME);
    expect(shims).toHaveLength(1);
    const nodes = await storedNodes(env.HOME);
    expect(await runSecond(env.HOME, "one")).toContain('the daemon "one" runs already, with pid ');
    expect(reportedShims(env.HOME)).toEqual(shims);
    expect(await storedNodes(env.HOME)).toBe(nodes);
    expect(await runShortTurn(client, world.folder())).toMatchObject({ result: { result: "done" } });
    expect(reportedShims(env.HOME)).toEqual(shims);
    await client.close();
    await first.close();
  }
});

it("only the daemon with the name cleans up after dead daemons; a second one changes nothing", async () => {
  const env = { HOME: world.folder() };
  const state = join(env.HOME, ".local/state/claude-agents-mcp");
  const first = await world.daemon({ name: "one", env, args: ARGS });
  const run = dirname(daemonStatus(env.HOME)[0]!.socket);
  const other = await world.daemon({ name: "other", env: { ...env, ...constants({ shim: false }) } });
  const client = await other.client();
  const prompt = scriptTag([{ text: "late", gateBefore: "never" }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  first.signal("SIGSTOP");
  await other.end("SIGKILL");
  await client.close();
  leaveSocket(join(run, "one.0a1b2c3d.shim"));
  const log = join(state, "logs", "daemon-gone.log");
  mkdirSync(join(state, "logs"), { recursive: true });
  writeFileSync(log, "of a daemon that is gone\n");
  const longAgo = new Date(Date.now() - 8 * 86_400_000);
  utimesSync(log, longAgo, longAgo);
  const look = async () => ({
    files: [run, join(state, "logs")].map((folder) => readdirSync(folder).toSorted()),
    nodes: await storedNodes(env.HOME),
    events: (await storedEvents(env.HOME, sessionId)).map(({ type }) => type),
  });

  const before = await look();
  expect(before.files[0]).toContain("other.sock");
  expect(await runSecond(env.HOME, "one")).toContain('the daemon "one" runs already, with pid ');
  expect(await look()).toEqual(before);
  // The next daemon with the name cleans up.
  await first.end("SIGKILL");
  const next = await world.daemon({ name: "one", env, args: ARGS });
  await expect.poll(async () => (await look()).events, { timeout: 20_000 }).toContain("turn.ended");
  const { files } = await look();
  expect(files.flat()).not.toContain("daemon-gone.log");
  expect(files[0]!.filter((file) => /^other|0a1b2c3d/.test(file))).toEqual([]);
  await next.close();
});
