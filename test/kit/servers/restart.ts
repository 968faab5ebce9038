import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { expect } from "vitest";

import { KINDS } from "../../../bench/over-http/clients.mjs";
import { Counts } from "../../../bench/over-http/counts.mjs";
import { compare, type Stored } from "../../../bench/over-http/log.mjs";
import { Watcher } from "../../../bench/over-http/watcher.mjs";
import { scriptTag } from "../../../src/demo/model/script.ts";
import { CLIENT_KINDS } from "../clients/connection.ts";
import type { HttpServer } from "./http-server.ts";
import type { World } from "../world.ts";

/** A server that ends while sessions run and clients wait, and a second server that replaces it. */

export interface Restart {
  readonly signal: "SIGKILL" | "SIGTERM";
  /** Number of sessions; the model continues half of them while the server drains. */
  readonly sessions: number;
  readonly clients: number;
  readonly drainMs: number;
  /** Length of a wait, ms; a library whose stream broke gives up after twice `waitMs`. */
  readonly waitMs: number;
}

const run = promisify(execFile);

/** Starts sessions in the middle of a turn: each has run a command, and waits for the model at its gate. */
async function begin(world: World, server: HttpServer, gates: readonly string[]): Promise<string[]> {
  const client = await server.connect();
  const works = gates.map(async (gateBefore) => {
    const step = { text: "A look.", tools: [{ name: "Bash", input: { command: "seq 20", description: "Count" } }] };
    const prompt = scriptTag([step, { gateBefore, text: "to the end" }]);
    const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder(), allowedTools: ["Bash"] });
    await world.model.waitForRequest((request) => {
      return request.sessionId === sessionId && "entry" in request.served && request.served.entry === 1;
    });
    return sessionId;
  });
  return Promise.all(works);
}

async function log(sessionId: string, store: string): Promise<Stored[]> {
  const command = ["dist/cli/main.js", "sessions", "export", sessionId, "--store", store];
  const { stdout } = await run(process.execPath, command, { maxBuffer: 100_000_000 });
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Stored]));
}

const ENDS = {
  SIGKILL: { inTime: { isError: true, errorSubtype: "lost" }, late: { isError: true, errorSubtype: "lost" } },
  SIGTERM: { inTime: { isError: false, result: "to the end" }, late: { isError: true, errorSubtype: "shutdown" } },
} as const;

/** Expects that clients and sessions continue with the second server, and that nothing is lost, repeated or left behind. */
export async function expectRecovery(world: World, restart: Restart): Promise<void> {
  const { clients, drainMs, sessions, signal, waitMs } = restart;
  const store = `${world.folder()}/store.db`;
  const args = ["--store", store, "--drain-ms", String(drainMs), "--max-live", String(sessions)];
  const first = await world.http({ args });
  const gates = Array.from({ length: sessions }, (_, index) => `${signal}-${String(index)}`);
  const inTime = sessions / 2;
  const ids = await begin(world, first, gates);
  const counts = new Counts();
  const habits = {
    vanishes: () => undefined,
    rests: () => 0,
    readLate: () => 0,
    waitMs,
    patienceMs: 2 * waitMs,
  };
  const watchers = Array.from({ length: clients }, (_, index) => {
    const own = [ids[index % sessions] ?? "", ...(index % 5 === 0 ? [ids[(index + 1) % sessions] ?? ""] : [])];
    const kind = KINDS[index % KINDS.length] ?? "";
    return new Watcher({ counts, door: { url: first.url, token: first.token }, habits, kind, sessions: own });
  });
  const following = watchers.map(async (watcher) => watcher.follow());
  const hasSeen = ({ seen }: Watcher) => [...seen.values()].every((events) => events.size > 0);
  await expect.poll(() => watchers.every(hasSeen)).toBe(true);

  first.signal(signal);
  if (signal === "SIGTERM") {
    await first.logged("ending");
    for (const gate of gates.slice(0, inTime)) world.model.release(gate);
  }
  await first.exited;
  const second = await world.http({ args: [...args, "--http", new URL(first.url).host] });

  for (const [index, sessionId] of ids.entries()) {
    const client = await second.connect(CLIENT_KINDS[index % CLIENT_KINDS.length]);
    const ended = await client.end(sessionId);
    expect(ended.result).toMatchObject(ENDS[signal][index < inTime ? "inTime" : "late"]);
    const reply = { sessionId, prompt: scriptTag([{ text: "Back." }]), waitMs: 40_000 };
    expect((await client.call("claude_code_reply", reply)).result).toMatchObject({
      isError: false,
      result: "Back.",
    });
  }

  for (const watcher of watchers) watcher.leave();
  await Promise.all(following);
  expect(counts.failed).toEqual([]);
  // Clients of the 2025 era continued their MCP sessions of the first server.
  expect(counts.unknown).toBe(0);
  expect(watchers.map(({ twice }) => twice)).toEqual(watchers.map(() => 0));
  for (const sessionId of ids) {
    const own = watchers.flatMap(({ seen }) => seen.get(sessionId) ?? []);
    const found = compare(await log(sessionId, store), own);
    expect(found).toEqual({ holes: 0, missed: 0, changed: 0, invented: 0 });
  }
  await second.close();
  await world.quiet(10_000);
}
