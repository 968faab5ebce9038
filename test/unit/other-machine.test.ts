import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { Shims } from "../../src/claude/shim/shims.ts";
import { explainGone } from "../../src/claude/shim/why-gone.ts";
import { endLeftover } from "../../src/claude/supervise/leftover-processes.ts";
import { identityHere } from "../../src/claude/supervise/machine.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import { EndedRecord } from "../../src/shim/ended.ts";

/** A process recorded on another machine, whose pid belongs to a process of this machine. */

const ELSEWHERE = "other pid:[4026531836] 0a";
const folder = realpathSync(mkdtempSync(join(tmpdir(), "ccm-machine-")));
const address = join(folder, "d1.shim");
let child: ChildProcess;
let known: { readonly pid: number; readonly startedAt: string };

beforeEach(async () => {
  child = spawn("sleep", ["100"]);
  const pid = child.pid!;
  known = { pid, startedAt: (await startTime(pid))! };
});
afterEach(async () => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The shim, and the process, that a session has recorded. */
function recorded(host: string | undefined, daemon = "d1") {
  const shim = { ...known, address, daemon, sdk: "1", keepMs: 1 };
  return { phase: "live", id: "1", since: 0, ...known, shim, ...(host !== undefined && { host }) } as const;
}

function createShims(): Shims {
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined };
  const places = { newAddress: async () => Promise.resolve(address), findSockets: async () => Promise.resolve([]) };
  const settings = { daemon: "d1", sdk: "1", stateFolder: folder, keepMs: 1, restart: undefined, log, ...places };
  return new Shims(settings, undefined);
}

describe("a process that another machine has recorded", () => {
  it("a process here is not ended for its pid", async () => {
    await endLeftover({ processTag: "none:1", ...known, host: ELSEWHERE }, "store");
    expect(await startTime(known.pid)).toBe(known.startedAt);
    await endLeftover({ processTag: "none:1", ...(await identityHere(known.pid)) }, "store");
    expect(await startTime(known.pid)).toBe(undefined);
  });

  it("its shim is neither this server's nor another server's here", async () => {
    const { host } = await identityHere(known.pid);
    const shims = createShims();
    const relations = async (where: string | undefined) =>
      Promise.all(["d1", "d2"].map(async (daemon) => shims.relationTo(recorded(where, daemon))));
    expect(await relations(ELSEWHERE)).toEqual(["gone", "gone"]);
    for (const here of [host, undefined]) expect(await relations(here)).toEqual(["ours", "theirs"]);
  });

  it("a session of it is not explained by the files of a shim here", async () => {
    new EndedRecord(address, known).add("tag", "It was ended here.");
    const { host } = await identityHere(known.pid);
    const explain = async (where: string) =>
      explainGone({ tag: "tag", process: recorded(where), server: { daemon: "d1", sdk: "1" } });
    expect(await explain(host)).toBe("It was ended here.");
    expect(await explain(ELSEWHERE)).toBe("It ran on another machine, or before this machine was started again.");
  });
});
