import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { amount } from "../kit/runner/amount.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";
import { writing } from "../kit/faults/driving.ts";

/**
 * Sets the system clock (suspend, NTP, a person) during two turns: the first runs, the second has a request open. The monotonic
 * clock stays real (`FAKETIME_DONT_FAKE_MONOTONIC`): otherwise the test would show nothing.
 */

const LIBRARY = ["x86_64", "aarch64"]
  .map((cpu) => `/usr/lib/${cpu}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path));

const HOUR = 3600;
/** Jumps of the clock, s: beyond a lease, back, and by hours. With AMOUNTS=full, two more. */
const JUMPS = [40, -HOUR, 5 * HOUR, ...[-40, HOUR].slice(0, amount(0, 2))];
/** Time for an expired lease to take effect, ms. */
const LOOK_ON_MS = 17_000;

const world = useWorld({ agent: "stand-in" });

/** Keeps Claude Code off the fake clock by an empty `LD_PRELOAD`: Claude Code does not even start under libfaketime. */
const REAL = { advanced: { env: { LD_PRELOAD: "" }, sessionInitTimeoutMs: 60_000 } };

/** System clock of some servers, faked by libfaketime. */
class Clock {
  readonly #file: string;
  readonly env: Record<string, string>;

  constructor(folder: string) {
    this.#file = join(folder, "clock");
    this.set(0);
    const how = { FAKETIME_DONT_FAKE_MONOTONIC: "1", FAKETIME_NO_CACHE: "1", FAKETIME_DONT_RESET: "1" };
    const store = { CLAUDE_CODE_MCP_STORE: join(folder, "store.db") };
    this.env = { ...how, ...store, LD_PRELOAD: LIBRARY!, FAKETIME_TIMESTAMP_FILE: this.#file };
  }

  set(seconds: number): void {
    writeFileSync(this.#file, `${seconds < 0 ? "" : "+"}${String(seconds)}`);
  }
}

const poll = async (server: Server, sessionId: string) =>
  server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });

const rowOf = async (server: Server, sessionId: string) => {
  const { sessions } = await server.call("claude_code_session", { action: "get", sessionId });
  return sessions[0]!;
};

describe.concurrent("changes of the system clock", { timeout: 300_000 }, () => {
  it.each(JUMPS)("a clock jump of %i s ends no turn, as seen from any server", async (jump) => {
    const clock = new Clock(world.folder());
    const [owner, other] = [await world.server({ env: clock.env }), await world.server({ env: clock.env })];
    const gate = `clock-${String(jump)}`;
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    const running = await owner.call("claude_code", {
      prompt: scriptTag([{ gateBefore: gate, text: "Ran on." }]),
      cwd,
      ...REAL,
    });
    const asking = await owner.call("claude_code", { prompt: writing(file), cwd, waitMs: 40_000, ...REAL });
    expect(asking.status).toBe("waiting_permission");
    const ids = [running.sessionId, asking.sessionId];
    const statuses = async (server: Server) =>
      Promise.all(ids.map(async (sessionId) => (await poll(server, sessionId)).status));
    const both = ["running", "waiting_permission"];
    const { remainingMs } = (await poll(owner, asking.sessionId)).actions[0]!;

    clock.set(jump);
    const late = await world.server({ env: clock.env });
    for (const server of [owner, other, late]) expect(await statuses(server)).toEqual(both);
    await Promise.all(
      [owner, other, late].map(async (server) =>
        server.call("claude_code_check", {
          action: "poll",
          sessionId: running.sessionId,
          until: "end",
          waitMs: LOOK_ON_MS,
        }),
      ),
    );
    for (const server of [owner, other, late]) expect(await statuses(server)).toEqual(both);
    // `remainingMs` is correct again.
    const shown = (await poll(late, asking.sessionId)).actions[0]!;
    expect(Math.abs(shown.remainingMs - remainingMs)).toBeLessThan(60_000);

    await late.call("claude_code_check", {
      action: "respond_permission",
      sessionId: asking.sessionId,
      requestId: shown.requestId,
      decision: "allow",
      waitMs: 0,
    });
    world.model.release(gate);
    expect((await other.end(running.sessionId)).result).toMatchObject({ isError: false, result: "Ran on." });
    expect((await other.end(asking.sessionId)).result).toMatchObject({ isError: false, result: "Written." });
    expect(readFileSync(file, "utf8")).toBe("hello");
    for (const sessionId of ids) {
      const { lastActiveAt, processStarts } = await rowOf(other, sessionId);
      expect(processStarts).toBe(1);
      // `lastActiveAt` proves that the servers used the fake clock.
      expect(Math.abs(Date.parse(String(lastActiveAt)) - Date.now() - jump * 1000)).toBeLessThan(30_000);
    }
  });
});
