import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PROCESS_VARIABLE } from "../../src/domain/names.ts";
import { descriptorLimit } from "../../src/security/descriptors.ts";
import { readOnlyGit } from "../../src/security/git/read-only-git.ts";
import { Guards } from "../../src/claude/supervise/guards.ts";
import { Spawner } from "../../src/claude/supervise/spawn.ts";
import type { ProcessHandle } from "../../src/claude/supervise/process-handle.ts";
import { endTagged, findTagged } from "../../src/claude/supervise/tagged-processes.ts";
import { killTree, listProcesses, signal, startTime } from "../../src/claude/supervise/tree.ts";

/** Sets the descriptor limit of this process from outside, because without a free descriptor Node cannot start `prlimit`. */
const SETTER = `while read most; do prlimit --pid ${String(process.pid)} --nofile="$most": && echo "$most"; done`;

const before = descriptorLimit() ?? 1024;

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

describe.skipIf(process.platform !== "linux")("a server with few file descriptors", () => {
  let setter: ChildProcessByStdio<Writable, Readable, null>;
  let lines: AsyncIterator<string>;
  let family: { readonly root: number; readonly sleepers: readonly number[] };

  const limit = async (most: number) => {
    setter.stdin.write(`${String(most)}\n`);
    expect((await lines.next()).value).toBe(String(most));
  };
  /** Lowest limit that allows all descriptors in use, including the descriptor of `readdirSync`. */
  const inUse = () => Math.max(...readdirSync("/proc/self/fd").map(Number)) + 1;

  const takeAll = () => {
    const taken: number[] = [];
    try {
      for (;;) taken.push(openSync("/dev/null", "r"));
    } catch {
      return taken;
    }
  };

  beforeEach(async () => {
    setter = spawn("sh", ["-c", SETTER], { stdio: ["pipe", "pipe", "inherit"] });
    lines = createInterface({ input: setter.stdout })[Symbol.asyncIterator]();
    const script = "for each in $(seq 40); do sleep 300 & echo $!; done; echo end; wait";
    const env = { PATH: process.env["PATH"], [PROCESS_VARIABLE]: "few" };
    const root = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "inherit"], env });
    const sleepers: number[] = [];
    for await (const line of createInterface({ input: root.stdout })) {
      if (line === "end") break;
      sleepers.push(Number(line));
    }
    family = { root: root.pid!, sleepers };
  });

  afterEach(async () => {
    await limit(before);
    setter.stdin.end();
    for (const pid of [family.root, ...family.sleepers]) signal(pid, "SIGKILL");
    await once(setter, "close");
  });

  it("all processes are listed with a single free descriptor", async () => {
    await limit(inUse() + 2);
    const taken = takeAll();
    closeSync(taken.pop()!);
    const listed = await listProcesses();
    for (const each of taken) closeSync(each);
    expect(listed.map(({ pid }) => pid)).toEqual(expect.arrayContaining([...family.sleepers]));
  });

  it("git and Claude Code are refused with a message, whichever descriptor is missing, and no process stays behind", async () => {
    const cwd = process.cwd();
    const place = { cwd, environment: { PATH: process.env["PATH"] ?? "" }, wrapper: [], allowed: [[]] };
    const server = { store: "few", pid: process.pid, startedAt: "1" };
    const request = { command: "sleep", args: ["302"], cwd, env: { PATH: process.env["PATH"] } };
    const { signal: never } = new AbortController();
    const guards = await Guards.find({ forceReaper: true });
    const outcomes = new Set<string>();
    for (let free = 0; free <= 14; free += 1) {
      const spawner = new Spawner({ guards, server });
      await limit(inUse() + 16);
      const taken = takeAll();
      for (const each of taken.splice(0, free)) closeSync(each);
      let child: ProcessHandle | undefined;
      try {
        spawner.spawn({ ...request, signal: never }, (spawned) => (child = spawned), { name: "few" });
        outcomes.add("begun");
      } catch (error) {
        outcomes.add(String(error).replace(/ \(.*/, ""));
      }
      await readOnlyGit(place).catch(() => undefined);
      for (const each of taken) closeSync(each);
      child?.kill();
      await child?.gone;
    }
    await limit(before);
    expect([...outcomes]).toEqual(["Error: The server has no file descriptor left for another process", "begun"]);
    const left = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandOf(pid).startsWith("sleep\x00302"));
    expect(left).toEqual([]);
  });

  it("no process is taken for ended while processes cannot be examined", async () => {
    await limit(3);
    await expect(startTime(process.pid)).rejects.toThrow("EMFILE");
    await expect(listProcesses()).rejects.toThrow("EMFILE");
    await expect(findTagged()).rejects.toThrow("EMFILE");
    await expect(killTree(family.root)).resolves.toBeUndefined();
    const ended = endTagged(({ value }) => value === "few", 10_000);
    await limit(before);
    expect(await ended).toBeGreaterThanOrEqual(family.sleepers.length);
  });
});
