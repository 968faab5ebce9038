import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import { constants } from "./constants.ts";
import { childrenRunning, commandOf } from "../process-tree.ts";
import type { Server } from "./stdio-server.ts";
import type { World } from "../world.ts";

/** Ways for a server to end in the middle of a turn; none may leave a process behind. */

/** Starts a session whose Bash runs forever; resolves once the command runs. */
export async function withRunningShell(world: World, server: Server): Promise<{ sessionId: string; cwd: string }> {
  const cwd = world.folder();
  const command = `touch started && exec node -e 'setInterval(() => {}, 1000)' ${cwd}`;
  const script = [{ text: "I run it.", tools: [{ name: "Bash", input: { command } }] }, { text: "never" }];
  const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] });
  while (
    !world.processes().some((process) => process.command.includes(`setInterval`) && process.command.includes(cwd))
  ) {
    await sleep(20);
  }
  return { sessionId, cwd };
}

type Killing = (server: Server) => Promise<void> | void;

const KILLINGS = {
  SIGKILL: ({ pid }) => void process.kill(pid, "SIGKILL"),
  SIGTERM: ({ pid }) => void process.kill(pid, "SIGTERM"),
  SIGINT: ({ pid }) => void process.kill(pid, "SIGINT"),
  // The client closes the server's stdin and waits.
  "stdin end": async (server) => server.close(),
  "a real client's SIGINT, SIGTERM after 100 ms, SIGKILL after 400 ms more": async ({ pid }) => {
    process.kill(pid, "SIGINT");
    await sleep(100);
    process.kill(pid, "SIGTERM");
    await sleep(400);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The server had already ended.
    }
  },
} satisfies Record<string, Killing>;

export type KillingName = keyof typeof KILLINGS;
export const KILLING_NAMES = Object.keys(KILLINGS) as KillingName[];

/** Means to end the sessions of a dead server: constants for setpriv beside the reaper, or for the reaper alone. */
export const MEANS = { "setpriv and the reaper": {}, "the reaper alone": constants({ reaperAlone: true }) };
export type MeansName = keyof typeof MEANS;

/** Cases that `npm test` runs with the real Claude Code: each means, and the ends that give a server no time. */
export const ENDS_SHOWN: readonly (readonly [KillingName, MeansName])[] = [
  ["SIGKILL", "setpriv and the reaper"],
  ["SIGKILL", "the reaper alone"],
  ["a real client's SIGINT, SIGTERM after 100 ms, SIGKILL after 400 ms more", "the reaper alone"],
];

/** Ends the world's only server while a Bash runs; expects that no process is left after 10 s. */
export async function expectNothingLeft(world: World, means: MeansName, name: KillingName): Promise<void> {
  const server = await world.server({ env: MEANS[means] });
  await withRunningShell(world, server);
  const reapers = childrenRunning(server.pid, "reaper-process.js");
  expect(reapers).toHaveLength(1);
  await KILLINGS[name](server);
  await server.gone;
  await world.quiet(10_000);
  const deadline = Date.now() + 2000;
  while (reapers.some((pid) => commandOf(pid) !== "") && Date.now() < deadline) await sleep(50);
  expect(reapers.filter((pid) => commandOf(pid) !== "")).toEqual([]);
}
