import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { RunningFile, daemonsOnFile } from "../../src/daemon/running-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ccm-deaths-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Pids of running processes; `startedAt` of each is `at PID`. */
const running = new Set<number>();
beforeEach(() => running.clear());
const isRunning = async (pid: number, startedAt: string) =>
  Promise.resolve(running.has(pid) && startedAt === `at ${String(pid)}`);

async function beginDaemon(pid: number, name = "n"): Promise<RunningFile> {
  running.add(pid);
  const record = new RunningFile(folder, name, { pid, startedAt: `at ${String(pid)}` });
  await record.begin(isRunning);
  return record;
}

/** Fates of daemon 1 before daemon 2 with the same name begins; `why` is the start of the text that daemon 2 reads. */
const FATES: Record<string, { meet: (first: RunningFile) => unknown; why: string | undefined }> = {
  "a killed daemon": { meet: () => running.delete(1), why: "it was killed without an error" },
  "a crashed daemon": {
    meet: (first) => {
      first.noteCrash(new Error("out of luck"));
      running.delete(1);
    },
    why: "out of luck",
  },
  "a daemon that was stopped": { meet: async (first) => first.end().then(() => running.delete(1)), why: undefined },
  "a daemon that is frozen or has lost its socket": { meet: () => undefined, why: undefined },
};

describe("the next daemon of a name", () => {
  it.each(Object.entries(FATES))(
    "the first successor of %s knows the cause of death, if any; the second successor knows of no death",
    async (_, { meet, why }) => {
      await meet(await beginDaemon(1));
      const next = await beginDaemon(2);
      expect(next.lastDeath?.why.slice(0, why?.length)).toBe(why);
      const last = await beginDaemon(3);
      expect(last.lastDeath).toBeUndefined();
    },
  );
});

it("a daemon knows of its killed predecessor even if another daemon ended while the new one started", async () => {
  await beginDaemon(1);
  running.delete(1);
  await new RunningFile(folder, "n", { pid: 2, startedAt: "at 2" }).end();
  expect((await beginDaemon(3)).lastDeath).toMatchObject({ pid: 1 });
});

it("running daemons are found by their records, and each daemon removes its own record", async () => {
  const [first] = [await beginDaemon(1), await beginDaemon(2), await beginDaemon(3, "other"), await beginDaemon(4)];
  running.delete(4);
  const found = async () => (await daemonsOnFile(folder, isRunning)).map(({ name, pid }) => `${name} ${String(pid)}`);
  expect((await found()).toSorted()).toEqual(["n 1", "n 2", "other 3"]);
  await first.end();
  expect((await found()).toSorted()).toEqual(["n 2", "other 3"]);
  // Pid 4 may belong to another process by now, so the start of daemon 5 has removed the record of the dead daemon 4.
  await beginDaemon(5);
  running.add(4);
  expect(readdirSync(join(folder, "logs"))).not.toContain("daemon-n.running.4");
});
