import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { half } from "../kit/runner/amount.ts";
import { leaveDaemons, type Kind } from "../kit/sessions/background-commands.ts";
import { childrenRunning } from "../kit/process-tree.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Processes left behind by a killed server, and the server that ends them later. */

const world = useWorld();
afterEach(async () => world.closeServers());

const LASTING: readonly Kind[] = ["setsid", "env -i setsid"];
const WITH_SPARE = { CLAUDE_CODE_MCP_SPARES: "1" };

/** Kills the reaper too: otherwise the reaper would end the leftover processes. */
async function killWithReaper(server: Server): Promise<void> {
  const reapers = childrenRunning(server.pid, "reaper-process.js");
  expect(reapers).toHaveLength(1);
  for (const pid of reapers) process.kill(pid, "SIGKILL");
  process.kill(server.pid, "SIGKILL");
  await server.gone;
}

/** Returns the pids of a server's Claude Code processes, including its spare. */
function agentsOf(server: Server): number[] {
  return childrenRunning(server.pid, "stream-json");
}

async function withSpare(server: Server): Promise<void> {
  await server.call("claude_code", { prompt: scriptTag([{ text: "done" }]), cwd: world.folder(), waitMs: 40_000 });
  // A spare starts only at an idle server, which is late beside other attacks.
  await expect.poll(() => server.stderr(), { timeout: 60_000 }).toContain("a spare is ready");
}

/** Times of SIGKILL while a session and a spare are being ended, ms; every second one without AMOUNTS=full. */
const MOMENTS_MS = half([15, 18, 21, 24]);

it.each(MOMENTS_MS)(
  "a SIGKILL %d ms after the end of stdin, while a session and a spare are being ended, leaves no process behind",
  async (ms) => {
    const server = await world.server({ env: WITH_SPARE });
    await withSpare(server);
    expect(world.processes().length).toBeGreaterThan(1);
    const closed = server.close();
    await sleep(ms);
    process.kill(server.pid, "SIGKILL");
    await closed;
    await world.quiet(10_000);
  },
);

it("a suspended Claude Code, which does not notice the server's death, is ended by the next server", async () => {
  const server = await world.server({ env: WITH_SPARE });
  await withSpare(server);
  const stopped = world.processes().filter(({ command }) => !command.includes("reaper-process"));
  for (const { pid } of stopped) process.kill(pid, "SIGSTOP");
  await killWithReaper(server);
  await sleep(500);
  expect(world.processes().map(({ pid }) => pid)).toEqual(expect.arrayContaining(stopped.map(({ pid }) => pid)));
  const next = await world.server();
  await next.call("claude_code_session", { action: "list" });
  await world.quiet(10_000);
});

it("a server ends the processes that a dead server of its store has left behind, and no others", async () => {
  const elsewhere = ["--store", join(world.folder(), "store.db")];
  const [dead, foreign, neighbour, inMemory] = await Promise.all([
    world.server(),
    world.server({ args: elsewhere }),
    world.server({ env: WITH_SPARE }),
    world.server({ args: ["--store", "memory:"] }),
  ]);
  const leave = async (server: Server, advanced?: Record<string, unknown>) =>
    leaveDaemons(server, { cwd: world.folder(), kinds: LASTING, ...(advanced && { advanced }) });
  const left = await leave(dead);
  const theirs = {
    "a dead server of another store": await leave(foreign),
    "a neighbour": await leave(neighbour),
    "a session that is not kept": await leave(neighbour, { persistSession: false }),
    "a server with its store in memory": await leave(inMemory),
  };
  await expect.poll(() => neighbour.stderr()).toContain("a spare is ready");
  await killWithReaper(dead);
  await killWithReaper(foreign);
  await expect.poll(() => world.processes().length).toBeGreaterThan(0);
  // Compares `kinds()`, not pids: between fork and exec, a child of a daemon looks like the daemon.
  const living = () => Object.entries(theirs).map(([whose, daemons]) => [whose, daemons.kinds()]);
  const before = living();
  const agents = agentsOf(neighbour);
  expect(agents.length).toBeGreaterThan(0);

  const next = await world.server();
  await next.call("claude_code_session", { action: "list" });
  expect(await left.leftAfter(10_000)).toEqual([]);
  expect(living()).toEqual(before);
  expect(agentsOf(neighbour)).toEqual(expect.arrayContaining(agents));
  for (const each of Object.values(theirs)) each.kill();
});
