import { describe, expect, it, vi } from "vitest";

import {
  begin,
  connected,
  ended,
  expectOnce,
  inOwnWorld,
  type LimitedTurn,
  refusal,
  shown,
  SOON,
  untilWaiting,
  WENT_ON,
} from "../kit/faults/at-limit.ts";
import { killDaemons, persistently, theShim, untilGone } from "../kit/faults/shims.ts";
import { amount } from "../kit/runner/amount.ts";

/** Ends the process, the daemon or both of a turn that waits at a limit. The turn must go on after the reset, once. */

const TIMEOUT = { timeout: 120_000 };

/** Time until the reset, s: enough to end a daemon and to start the next on a busy machine. */
const RESET_S = 7;
/** Least time without work after which a process is closed, ms. */
const IDLE_MS = 1_000;

interface Fate {
  readonly name: string;
  readonly args?: string[];
  readonly during: (turn: LimitedTurn) => Promise<LimitedTurn | void>;
}

const claudesOf = ({ sessionId, world }: LimitedTurn) =>
  world.processes().filter(({ command }) => command.includes(sessionId) && !command.includes("reaper"));

async function untilClosed(turn: LimitedTurn): Promise<void> {
  const isLive = async () => (await shown(turn)).session?.["processLive"];
  await vi.waitUntil(async () => (await isLive()) === false, { timeout: 20_000, interval: 50 });
}

/** Kills the daemon, the shim with its Claude Code, and with them all that was known of the client's environment. */
async function killAll({ client, world }: LimitedTurn): Promise<void> {
  const shim = theShim(world);
  const claudes = world.processes().map(({ pid }) => pid);
  const daemons = world.daemons();
  for (const pid of [...daemons, shim, ...claudes]) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Another kill has ended the process.
    }
  }
  await untilGone([...daemons, ...claudes]);
  await client.close();
}

const FATES: readonly Fate[] = [
  { name: "stays live", during: async () => Promise.resolve() },
  { name: "is closed while it waits", args: ["--idle-process-ms", String(IDLE_MS)], during: untilClosed },
  {
    name: "is killed",
    during: async (turn) => {
      for (const { pid } of claudesOf(turn)) process.kill(pid, "SIGKILL");
      await untilClosed(turn);
    },
  },
  {
    name: "is kept by its shim while the daemon is killed",
    during: async (turn) => {
      await killDaemons(turn.world);
      const { session } = await shown(turn);
      expect(session).toMatchObject({ status: "running", processLive: true });
    },
  },
  {
    name: "is ended in order with the daemon",
    during: async ({ world }) => {
      const daemons = world.daemons();
      for (const pid of daemons) process.kill(pid, "SIGTERM");
      await untilGone(daemons);
    },
  },
  {
    name: "is killed with the daemon, and the environment is lost until a client brings it",
    during: async (turn) => {
      await killAll(turn);
      const other = await connected(turn.world, { env: { CLAUDE_CONFIG_DIR: turn.world.folder() } });
      await untilWaiting({ ...turn, client: other }, { kind: "environment" });
      expect(turn.world.model.requests).toHaveLength(turn.calls + 1);
      return { ...turn, client: await connected(turn.world) };
    },
  },
];

const CASES = FATES.flatMap(({ name, ...fate }, index) =>
  [0, 3].flatMap((calls, at) => {
    const title = `goes on once after ${String(calls)} tool calls when Claude Code ${name}`;
    return amount(at === index % 2 ? 1 : 0, 1) === 1 ? [{ title, calls, fate }] : [];
  }),
);

describe.concurrent("a turn that waits at a limit", () => {
  it.for(CASES)("$title", TIMEOUT, async ({ calls, fate }) =>
    inOwnWorld(async (world) => {
      const client = await connected(world, { args: fate.args ?? [] });
      const turn = await begin(world, { client, calls, refusals: [refusal(RESET_S)] });
      const { until = "" } = await untilWaiting(turn);
      const now = (await fate.during(turn)) ?? turn;
      const end = await ended(now);
      expect(end).toMatchObject({ status: "idle", result: { result: WENT_ON, isError: false } });
      const [again] = world.model.requests.slice(calls + 1);
      expect(again?.time).toBeGreaterThanOrEqual(Date.parse(until) - 400);
      await expectOnce(now);
    }),
  );

  it("goes on at the next server of its user when its server without a daemon is killed", TIMEOUT, async () =>
    inOwnWorld(async (world) => {
      const first = await world.server({ env: SOON });
      const turn = await begin(world, { client: first, refusals: [refusal(4)] });
      await untilWaiting(turn);
      process.kill(first.pid, "SIGKILL");
      await first.gone;
      const client = await world.server({ env: SOON });
      const end = await persistently(async () => client.end(turn.sessionId, 1));
      expect(end).toMatchObject({ status: "idle", result: { result: WENT_ON } });
      await expectOnce({ ...turn, client });
    }),
  );
});
