import { setTimeout as sleep } from "node:timers/promises";

import { describe, expect, it, vi } from "vitest";

import { scriptTag, type Script } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";
import { isFull, randoms, report } from "../kit/faults/figures.ts";
import { countLost, expectUsable, Watcher } from "../kit/faults/watcher.ts";

const world = useWorld();

const seed = Number(process.env["FAULTS_SEED"] ?? Date.now() % 1_000_000);
/** Duration of a turn that starts, thinks, runs tools and talks, ms. */
const MAX_KILL_MS = 2_500;

/**
 * Returns a random moment in part `run` of `runs` equal parts of the turn, so that few runs still hit its start, middle and
 * end.
 */
const momentOf = (run: number, runs: number, random: () => number) => ((run + random()) / runs) * MAX_KILL_MS;

function turn(): string {
  const command = (text: string) => ({
    tools: [{ name: "Bash", input: { command: `echo ${text}; node -e 'setTimeout(() => {}, 150)'` } }],
  });
  const script: Script = [
    { thinking: "Let me see.", text: "First a look.", ...command("one") },
    { text: ["And ", "another ", "one."], chunkDelayMs: 60, ...command("two") },
    command("three"),
    { text: ["That ", "is ", "all ", "there ", "was."], chunkDelayMs: 60 },
  ];
  return `Do it. ${scriptTag(script)}`;
}
const back = `Go on. ${scriptTag([{ text: "Back." }])}`;

/** Number of processes left after 10 s. */
async function leftOver(): Promise<number> {
  return world.quiet(10_000).then(
    () => 0,
    () => world.processes().length,
  );
}

describe(`kills at random moments (seed ${String(seed)})`, () => {
  const serverRuns = isFull ? 200 : 4;
  it(
    `${String(serverRuns)} kills of the server lose no event that was seen and leave no process, and every session continues`,
    { timeout: serverRuns * 30_000 },
    async () => {
      const random = randoms(seed);
      const sum = { lost: 0, leftOver: 0 };
      const found: Record<string, number> = {};
      for (let run = 0; run < serverRuns; run++) {
        const server = await world.server();
        const { sessionId } = await server.call("claude_code", {
          prompt: turn(),
          cwd: world.folder(),
          allowedTools: ["Bash"],
        });
        const watcher = new Watcher(server);
        const watching = watcher.follow(sessionId);
        await sleep(momentOf(run, serverRuns, random));
        process.kill(server.pid, "SIGKILL");
        await Promise.all([server.gone, watching]);

        const next = await world.server();
        const after = await next.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
        // A session without a recorded process is started again by the next server.
        expect(["idle", "error", "running"]).toContain(after.status);
        const ended = after.status === "running" ? await next.end(sessionId) : after;
        expect(["idle", "error"]).toContain(ended.status);
        found[after.status] = (found[after.status] ?? 0) + 1;
        sum.lost += await countLost(next, sessionId, watcher.seen);
        await expectUsable(next, sessionId, back);
        await next.close();
        sum.leftOver += await leftOver();
      }
      report({ fault: "server killed (SIGKILL)", runs: serverRuns, ...sum, note: `found ${JSON.stringify(found)}` });
      expect(sum).toEqual({ lost: 0, leftOver: 0 });
    },
  );

  const cliRuns = isFull ? 100 : 3;
  it(
    `${String(cliRuns)} kills of Claude Code are reported, lose no event that was seen and leave no process, and sessions continue`,
    { timeout: cliRuns * 30_000 },
    async () => {
      const random = randoms(seed + 1);
      const sum = { lost: 0, leftOver: 0 };
      const found: Record<string, number> = {};
      const server = await world.server();
      for (let run = 0; run < cliRuns; run++) {
        const { sessionId } = await server.call("claude_code", {
          prompt: turn(),
          cwd: world.folder(),
          allowedTools: ["Bash"],
        });
        const watcher = new Watcher(server);
        const watching = watcher.follow(sessionId);
        const isRunning = () => world.processes().some(({ command }) => command.includes(sessionId));
        await expect.poll(isRunning, { timeout: 30_000, interval: 10 }).toBe(true);
        await sleep(momentOf(run, cliRuns, random));
        const claude = world.processes().find(({ command }) => command.includes(sessionId));
        if (claude) process.kill(claude.pid, "SIGKILL");
        await watching;
        // A kill after the end of a turn is noticed a moment later (`processLive`); a prompt in between would be lost with the
        // process.
        const get = { action: "get", sessionId };
        const isLive = async () => (await server.call("claude_code_session", get)).sessions[0]?.["processLive"];
        await vi.waitUntil(async () => !claude || (await isLive()) !== true, { timeout: 30_000, interval: 20 });
        const after = await server.end(sessionId);
        found[after.status] = (found[after.status] ?? 0) + 1;
        expect(`${after.status} ${after.result?.errorSubtype ?? ""}`).toMatch(/^(idle $|error (lost|start_failed)$)/);
        sum.lost += await countLost(server, sessionId, watcher.seen);
        await expectUsable(server, sessionId, back);
        await server.call("claude_code_session", { action: "cancel", sessionId });
        sum.leftOver += await leftOver();
      }
      report({ fault: "Claude Code killed (SIGKILL)", runs: cliRuns, ...sum, note: `found ${JSON.stringify(found)}` });
      expect(sum).toEqual({ lost: 0, leftOver: 0 });
    },
  );
});
