import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { half } from "../kit/runner/amount.ts";
import { constants } from "../kit/servers/constants.ts";
import { BACK_PROMPT } from "../kit/faults/driving.ts";
import { commandOf, killDaemons, persistently, theShim, untilGone } from "../kit/faults/shims.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { preloading } from "../kit/servers/preload.ts";
import { useWorld } from "../kit/world.ts";

/**
 * Shims that stop while their daemon waits for the next message: frozen or killed (test/kit/faults/stop-shim.mjs). Each turn
 * must end, and new sessions of the daemon must start.
 */

const world = useWorld({ agent: "stand-in" });
const STOPPER = join(import.meta.dirname, "../kit/faults/stop-shim.mjs");
const stopped = new Set<number>();

/** Kills frozen shims, because they hold Claude Code processes, and closes all servers. */
async function endAll(): Promise<void> {
  for (const pid of stopped) if (commandOf(pid) !== "") process.kill(pid, "SIGKILL");
  stopped.clear();
  await world.closeServers();
  await world.quiet(20_000);
}

/** Connects a client to a daemon that sends its shim `signal` at `point`. */
async function clientOf(point: string, signal: NodeJS.Signals, env: Record<string, string> = {}) {
  const mark = join(world.folder(), "stopped");
  const node = [preloading(STOPPER, { STOP_MARK: mark, STOP_POINT: point, STOP_SIGNAL: signal })];
  // HOME is new, so that each client has its own daemon.
  const client = await world.shared({ node, env: { HOME: world.folder(), ...env } });
  const shim = async () => {
    await vi.waitUntil(() => existsSync(mark) && readFileSync(mark, "utf8") !== "", { timeout: 30_000, interval: 20 });
    const pid = Number(readFileSync(mark, "utf8"));
    stopped.add(pid);
    return pid;
  };
  return { client, shim };
}

async function begin(client: Server, prompt: string, more: object = {}): Promise<string> {
  const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder(), ...more });
  return sessionId;
}

/** Begins a turn blocked at a gate. */
async function beginHeld(client: Server): Promise<string> {
  const sessionId = await begin(client, scriptTag([{ gateBefore: `gate-${world.folder()}`, text: "Never." }]));
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  // The request reaches the model before a busy daemon has stored the first message, without which the turn never started.
  const get = { action: "get", sessionId };
  const isReported = async () => /"reported":\{"/.test(JSON.stringify(await client.call("claude_code_session", get)));
  await vi.waitUntil(isReported, { timeout: 30_000, interval: 50 });
  return sessionId;
}

/** Returns status and result, or `errorSubtype`, of the ended turn. */
async function endOf(client: Server, sessionId: string): Promise<string> {
  const { result, status } = await persistently(async () => client.end(sessionId, 1));
  return `${status} ${result?.errorSubtype ?? result?.result ?? ""}`;
}

/** More sessions than may start at a time. */
const MANY = [1, 2, 3, 4, 5];

async function expectNewSessions(client: Server): Promise<void> {
  const ids = await Promise.all(MANY.map(async () => begin(client, BACK_PROMPT)));
  expect(await Promise.all(ids.map(async (id) => endOf(client, id)))).toEqual(MANY.map(() => "idle Back."));
}

const FAILED = /^(idle Back\.|error start_failed)$/;
/** By point and signal: permitted ends of turns that begin then. */
const STARTS = [
  ["its own start", "spawn", "SIGKILL", /^idle Back\.$/],
  ["its own start", "spawn", "SIGSTOP", /^idle Back\.$/],
  ["its hello", "hello", "SIGKILL", /^idle Back\.$/],
  ["its hello", "hello", "SIGSTOP", /^idle Back\.$/],
  ["the look before a start", "list", "SIGSTOP", /^idle Back\.$/],
  ["the start of a process", "start", "SIGKILL", FAILED],
  ["the start of a process", "start", "SIGSTOP", FAILED],
  ["the first line to a process", "write", "SIGKILL", /^(idle Back\.|error (start_failed|lost))$/],
  ["the first line to a process", "write", "SIGSTOP", /^(idle Back\.|error (start_failed|init_timeout))$/],
] as const;

describe("turns at a silent shim", () => {
  afterAll(endAll);

  async function expectEnds(turns: Awaited<ReturnType<typeof threeTurns>>, outcomes: RegExp): Promise<void> {
    const told = await Promise.all(turns.ids.map(async (id) => endOf(turns.client, id)));
    for (const each of told) expect(each).toMatch(outcomes);
    await expectNewSessions(turns.client);
    await turns.client.close();
  }

  async function threeTurns(point: string, signal: NodeJS.Signals) {
    const { client, shim } = await clientOf(point, signal);
    const ids = await Promise.all(
      [1, 2, 3].map(async () => begin(client, BACK_PROMPT, { sessionInitTimeoutMs: 15_000 })),
    );
    return { client, ids, shim: await shim() };
  }

  it.concurrent.each(half(STARTS))(
    "turns end and new sessions start when a shim, at %s (%s), gets %s",
    { timeout: 120_000 },
    async (_, point, signal, outcomes) => expectEnds(await threeTurns(point, signal), outcomes),
  );

  it.concurrent(
    "turns end and new sessions start when a shim is frozen at process starts and then killed",
    { timeout: 120_000 },
    async () => {
      const turns = await threeTurns("start", "SIGSTOP");
      process.kill(turns.shim, "SIGKILL");
      await expectEnds(turns, FAILED);
    },
  );

  it.concurrent("a shim frozen at process starts runs no prompt after it thaws", { timeout: 120_000 }, async () => {
    const { client, ids, shim } = await threeTurns("start", "SIGSTOP");
    const told = await Promise.all(ids.map(async (id) => endOf(client, id)));
    const failed = ids.filter((_, at) => told[at] === "error start_failed");
    expect(failed.length).toBeGreaterThan(0);
    process.kill(shim, "SIGCONT");
    await untilGone([shim]);
    expect(
      world.model.requests.flatMap(({ sessionId = "" }) => (failed.includes(sessionId) ? [sessionId] : [])),
    ).toEqual([]);
    await client.close();
  });

  it.concurrent.each(["SIGSTOP", "SIGKILL"] as const)(
    "turns end and new sessions start when a shim gets %s between the kill of a process and its exit",
    { timeout: 120_000 },
    async (signal) => {
      const { client, shim } = await clientOf("kill", signal, constants({ inactivityMs: 1000 }));
      const sessionId = await beginHeld(client);
      // Freezes Claude Code, so that the interrupt has no effect and the shim has to kill it.
      for (const { command, pid } of world.processes()) if (command.includes(sessionId)) process.kill(pid, "SIGSTOP");
      const pid = await shim();
      expect(await endOf(client, sessionId)).toBe("error inactivity");
      await expectNewSessions(client);
      // A thawed shim ends with its last process.
      if (signal === "SIGSTOP") process.kill(pid, "SIGCONT");
      await untilGone([pid]);
      await client.call("claude_code_reply", { sessionId, prompt: BACK_PROMPT, waitMs: 0 });
      expect(await endOf(client, sessionId)).toBe("idle Back.");
      await client.close();
    },
  );
});

describe("turns at a frozen shim of a dead daemon", () => {
  afterEach(endAll);

  it(
    "a turn is lost, and new sessions start, if the shim of a dead daemon is frozen",
    { timeout: 120_000 },
    async () => {
      const client = await world.shared();
      const sessionId = await beginHeld(client);
      const pid = theShim(world);
      stopped.add(pid);
      process.kill(pid, "SIGSTOP");
      await killDaemons(world);
      expect(await endOf(client, sessionId)).toBe("error lost");
      await expectNewSessions(client);
      await client.close();
    },
  );

  it(
    "a turn is lost, and new sessions start, if a shim freezes before the next daemon has attached",
    { timeout: 120_000 },
    async () => {
      const { client, shim } = await clientOf("attach", "SIGSTOP");
      const sessionId = await beginHeld(client);
      const pid = theShim(world);
      await killDaemons(world);
      expect(await endOf(client, sessionId)).toBe("error lost");
      expect(await shim()).toBe(pid);
      await expectNewSessions(client);
      await client.close();
    },
  );
});
