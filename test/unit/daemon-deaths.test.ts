import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { DeathRecord, recordedDaemons } from "../../src/daemon/deaths.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ccm-deaths-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Pids of processes that run; each began when its pid says. */
const running = new Set<number>();
beforeEach(() => running.clear());
const isRunning = async (pid: number, startedAt: string) =>
  Promise.resolve(running.has(pid) && startedAt === `at ${String(pid)}`);

async function begun(pid: number, name = "n"): Promise<DeathRecord> {
  running.add(pid);
  const record = new DeathRecord(folder, name, { pid, startedAt: `at ${String(pid)}` });
  await record.begin(isRunning);
  return record;
}

/** How the first daemon of the name, 1, has fared when the next one, 2, begins. */
const FATES: Record<string, { fare: (first: DeathRecord) => unknown; told: string | undefined }> = {
  "was killed": { fare: () => running.delete(1), told: "it was killed without an error" },
  "has crashed": {
    fare: (first) => {
      first.crashed(new Error("out of luck"));
      running.delete(1);
    },
    told: "out of luck",
  },
  "has ended in order": { fare: async (first) => first.end().then(() => running.delete(1)), told: undefined },
  "is frozen, or has lost its socket": { fare: () => undefined, told: undefined },
};

describe("the next daemon of a name, when the first", () => {
  it.each(Object.entries(FATES))("%s, is told so", async (_, { fare, told }) => {
    await fare(await begun(1));
    const next = await begun(2);
    expect(next.last?.why.slice(0, told?.length)).toBe(told);
    const last = await begun(3);
    expect(last.last).toBeUndefined();
  });
});

it("a daemon knows of the one before it that was killed, also when another ended between them while it started", async () => {
  await begun(1);
  running.delete(1);
  await new DeathRecord(folder, "n", { pid: 2, startedAt: "at 2" }).end();
  expect((await begun(3)).last).toMatchObject({ pid: 1 });
});

it("daemons that run are found by their records, of which each removes its own", async () => {
  const [first] = [await begun(1), await begun(2), await begun(3, "other"), await begun(4)];
  running.delete(4);
  const found = async () => (await recordedDaemons(folder, isRunning)).map(({ name, pid }) => `${name} ${String(pid)}`);
  expect((await found()).toSorted()).toEqual(["n 1", "n 2", "other 3"]);
  await first.end();
  expect((await found()).toSorted()).toEqual(["n 2", "other 3"]);
  // The pid is another process's now.
  await begun(5);
  running.add(4);
  expect(readdirSync(join(folder, "logs"))).not.toContain("daemon-n.running.4");
});
