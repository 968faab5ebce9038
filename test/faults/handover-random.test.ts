import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";

import { isFull, randoms, report } from "../kit/faults/figures.ts";
import { beginTurn, driveTurn, expectWholeTurn } from "../kit/faults/random-turn.ts";
import { persistently, untilGone } from "../kit/faults/shims.ts";
import { useWorld } from "../kit/world.ts";

/** Kills the daemon at random moments of turns of the real Claude Code: the next daemon continues the turns. */

const world = useWorld();
const seed = Number(process.env["FAULTS_SEED"] ?? Date.now() % 1_000_000);
const runs = isFull ? 200 : 10;
/** Number of concurrent runs, which mostly wait. */
const LANES = 5;
/** Time from the answer to the first call to the end of the queued prompt, ms. */
const MAX_KILL_MS = 6_000;

const daemonOf = (home: string) => world.daemons().filter((pid) => environmentOf(pid).includes(`HOME=${home}`));

function environmentOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${String(pid)}/environ`, "utf8").split("\0");
  } catch {
    // The daemon of another lane was just killed.
    return [];
  }
}

async function killAt(home: string, ms: number): Promise<void> {
  await sleep(ms);
  const killed = daemonOf(home);
  expect(killed).toHaveLength(1);
  for (const pid of killed) process.kill(pid, "SIGKILL");
  await untilGone(killed);
}

/** Runs a turn and kills its daemon; in half of the runs, no client is connected (`killAt` after `close`). */
async function run(number: number, home: string, random: () => number): Promise<void> {
  const env = { HOME: home };
  const ms = ((number + random()) / runs) * MAX_KILL_MS;
  const start = async () => world.shared({ env, settings: { maxLive: 8 } });
  const client = await start();
  await persistently(async () => client.call("claude_code_session", { action: "list" }));
  const turn = await beginTurn(client, world);
  const driven = driveTurn(client, turn);
  if (number % 2 === 0) {
    await Promise.all([driven, killAt(home, ms)]);
    await expectWholeTurn(world, home, turn);
    // A daemon killed after the turn leaves shims without an owner: the next call starts a daemon.
    await persistently(async () => client.call("claude_code_session", { action: "list" }));
    await client.close();
    return;
  }
  // Calls in progress end with the client.
  driven.catch(() => undefined);
  await sleep(ms);
  await client.close();
  await killAt(home, 0);
  const next = await start();
  await driveTurn(next, turn);
  await expectWholeTurn(world, home, turn);
  await next.close();
}

it(
  `a turn is whole when its daemon is killed, ${String(runs)} times at random moments (seed ${String(seed)})`,
  { timeout: runs * 30_000 },
  async () => {
    const random = randoms(seed);
    const numbers = Array.from({ length: runs }, (_, at) => at);
    const failed: string[] = [];
    const lane = async (home: string) => {
      for (let number = numbers.shift(); number !== undefined; number = numbers.shift()) {
        const at = number;
        await run(at, home, random).catch((error: unknown) => failed.push(`run ${String(at)}: ${String(error)}`));
      }
    };
    await Promise.all(Array.from({ length: LANES }, async () => lane(world.folder())));
    report({ fault: "daemon killed at a random moment, handed over", runs, lost: failed.length, leftOver: 0 });
    expect(failed).toEqual([]);
  },
);
