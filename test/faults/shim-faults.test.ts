import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { back } from "../support/faults/driving.ts";
import { expectLost, homeOf, killDaemons, persistently, theShim, untilGone } from "../support/faults/shims.ts";
import { expectUsable } from "../support/faults/watcher.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

/** Shims that die, and shims for which no daemon comes. Which server has a turn is not Claude Code's to know: the stand-in has it. */

const world = useWorld({ agent: "stand-in" });
const REPOSITORY = join(import.meta.dirname, "../..");

/** A turn that waits for its model. */
async function begin(client: Server) {
  const gate = `never-${world.folder()}`;
  const prompt = scriptTag([{ gateBefore: gate, text: "x" }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  return { home: homeOf(world), sessionId, shim: theShim(world) };
}

it("a turn whose shim is killed is lost, and reported once; nothing is left, and the next prompt works", async () => {
  const client = await world.shared();
  const { shim, ...turn } = await begin(client);
  const [claude] = world.processes();
  process.kill(shim, "SIGKILL");
  const said = await expectLost(client, turn);
  expect(said).toContain("in the middle of the turn");
  expect(world.daemons()).toHaveLength(1);
  await untilGone([shim, claude!.pid]);
  await expectUsable(client, turn.sessionId, back);
  expect(theShim(world)).not.toBe(shim);
  await client.close();
  await world.closeServers();
  await world.quiet(10_000);
});

it("so it is where shim and daemon are both killed, at the next daemon", async () => {
  const client = await world.shared();
  const { shim, ...turn } = await begin(client);
  const [daemon] = world.daemons();
  const claude = world.processes().map(({ pid }) => pid);
  // Neither can do anything about the death of the other.
  const both = [shim, daemon!];
  for (const pid of both) process.kill(pid, "SIGSTOP");
  for (const pid of both) process.kill(pid, "SIGKILL");
  await untilGone(both);
  const said = await expectLost(client, turn);
  expect(said).toContain("The server that ran it has died.");
  await untilGone(claude);
  await expectUsable(client, turn.sessionId, back);
  await client.close();
  await world.closeServers();
  await world.quiet(10_000);
});

it("where nothing can bring the daemon back, a shim ends all after --keep-ms, and the next server says why", async () => {
  const root = mkdtempSync(join(world.folder(), "package-"));
  for (const part of ["dist", "package.json"]) cpSync(join(REPOSITORY, part), join(root, part), { recursive: true });
  symlinkSync(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
  const args = ["--keep-ms", "2500"];
  const client = await world.shared({ main: join(root, "dist/cli/main.js"), args });
  const { home, sessionId, shim } = await begin(client);
  await client.close();
  rmSync(root, { recursive: true });
  const started = performance.now();
  await killDaemons(world);
  await untilGone([shim]);
  expect(performance.now() - started).toBeGreaterThan(2_400);
  await world.quiet(10_000);
  expect(world.daemons()).toEqual([]);
  const logs = join(home, ".local/state/claude-agents-mcp/logs");
  const shimLog = readdirSync(logs).filter((name) => name.endsWith(".shim.log"));
  const log = shimLog.map((name) => readFileSync(join(logs, name), "utf8")).join("");
  expect(log).toContain("what was to start the daemon has ended with 1");
  expect(log).toContain("within 2500 ms: it is ended");

  const next = await world.shared({ args });
  expect(await expectLost(next, { home, sessionId })).toContain("The server that ran it has died.");
  await expectUsable(next, sessionId, back);
  await persistently(async () => next.call("claude_code_session", { action: "cancel", sessionId }));
  await next.close();
});
