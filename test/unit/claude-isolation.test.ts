import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Guards } from "../../src/claude/supervise/guards.ts";
import { findPidNamespace } from "../../src/claude/supervise/isolation.ts";

/** Programs in front of the command of Claude Code, chosen by `Guards` and `findPidNamespace`. */

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ccm-programs-"));
  vi.stubEnv("PATH", folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** Writes a program; with `refusal`, the program prints the text and fails. */
function program(name: string, refusal?: string): string {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${refusal === undefined ? "" : `echo '${refusal}' >&2; exit 1`}\n`, { mode: 0o755 });
  return file;
}

describe.runIf(process.platform === "linux")("a pid namespace", () => {
  const runAs = (uid: number) => void vi.spyOn(process as { getuid: () => number }, "getuid").mockReturnValue(uid);
  beforeEach(() => runAs(0));

  it("a pid namespace is made by unshare for root if unshare works, otherwise by bwrap", async () => {
    const bwrap = program("bwrap");
    expect((await findPidNamespace())[0]).toBe(bwrap);
    const unshare = program("unshare", "Operation not permitted");
    expect((await findPidNamespace())[0]).toBe(bwrap);
    program("unshare");
    expect(await findPidNamespace()).toEqual([unshare, "--pid", ...Array(9).fill(expect.any(String)), "init"]);
    runAs(1000);
    expect((await findPidNamespace())[0]).toBe(bwrap);
  });

  it("`findPidNamespace` fails with the error of each program if none works", async () => {
    program("bwrap", "No permissions");
    await expect(findPidNamespace()).rejects.toThrow("unshare: is not installed; bwrap: No permissions");
  });
});

describe.runIf(process.platform === "linux")("the guards of a process", () => {
  const starter = { store: "/store.db", pid: 7, startedAt: "1" };

  it("the kernel ends a process together with its starter, except with `forceReaper`", async () => {
    const setpriv = program("setpriv");
    const wrapped = (guards: Guards) => guards.wrap(guards.newTag(starter, "a:1"), "claude", ["-p"]);
    expect(wrapped(await Guards.find({ forceReaper: false }))).toEqual([
      setpriv,
      ["--pdeathsig", "TERM", "--", "claude", "-p"],
    ]);
    expect(wrapped(await Guards.find({ forceReaper: false, isolation: ["unshare", "--"] }))).toEqual([
      setpriv,
      ["--pdeathsig", "KILL", "--", "unshare", "--", "claude", "-p"],
    ]);
    expect(wrapped(await Guards.find({ forceReaper: true }))).toEqual(["claude", ["-p"]]);
  });

  // A machine may have lowered the hard limit of file locks for all processes.
  const canNumber = () => /^Max file locks +\S+ +unlimited/m.test(readFileSync("/proc/self/limits", "utf8"));

  it.runIf(process.platform === "linux" && canNumber())("each process has its own limit of file locks", async () => {
    const prlimit = program("prlimit");
    const guards = await Guards.find({ forceReaper: true });
    const [one, two] = [guards.newTag(starter, "a:1"), guards.newTag(starter, "a:1")];
    expect(guards.wrap(one, "claude", [])).toEqual([prlimit, [`--locks=${String(one.number)}:`, "--", "claude"]]);
    expect(one.number).not.toBe(two.number);
  });

  it("an exit code of a pid namespace is reported as the signal that ended the process", async () => {
    const isolated = await Guards.find({ forceReaper: true, isolation: ["unshare", "--"] });
    expect(isolated.exitOf({ code: 137, signal: null })).toEqual({ code: null, signal: "SIGKILL" });
    for (const code of [1, 128, 250]) {
      expect(isolated.exitOf({ code, signal: null })).toEqual({ code, signal: null });
    }
    const exit = { code: 137, signal: null };
    expect((await Guards.find({ forceReaper: true })).exitOf(exit)).toEqual(exit);
  });
});
