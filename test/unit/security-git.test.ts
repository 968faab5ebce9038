import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, expect, it } from "vitest";

import { readOnlyGit } from "../../src/security/git/read-only-git.ts";

const cwd = mkdtempSync(join(tmpdir(), "git-limit-"));
afterAll(() => {
  rmSync(cwd, { recursive: true, force: true });
});

it.skipIf(process.platform === "win32")("at the time limit, git is killed with all its child processes", async () => {
  execFileSync("git", ["init", "-q"], { cwd });
  const environment = { PATH: process.env["PATH"] ?? "" };
  // Hangs with a child process for `diff`, and runs all other commands.
  const hangs = `case "$*" in *" diff"*) sleep 987654 & wait;; *) exec "$@";; esac`;
  const git = await readOnlyGit({ cwd, environment, wrapper: ["sh", "-c", hangs, "sh"], allowed: [] }, 1500);
  if (typeof git !== "function") throw new Error(`no git: ${String(git)}`);
  await expect(git("diff")).rejects.toThrow("no answer within 1500 ms");
  const left = () => execFileSync("ps", ["-A", "-o", "stat=,args="], { encoding: "utf8" });
  await expect.poll(() => /^[^Z].*sleep 987654$/m.test(left())).toBe(false);
});

it.skipIf(process.platform === "win32").each(["config", "info/exclude"])(
  "a repository whose %s is a symbolic link is not read",
  async (name) => {
    const own = mkdtempSync(join(tmpdir(), "git-link-"));
    try {
      execFileSync("git", ["init", "-q"], { cwd: own });
      const file = join(own, ".git", name);
      renameSync(file, join(own, "elsewhere"));
      symlinkSync(join(own, "elsewhere"), file);
      const environment = { PATH: process.env["PATH"] ?? "" };
      expect(await readOnlyGit({ cwd: own, environment, wrapper: [], allowed: [] })).toMatch(/is a symbolic link/);
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  },
);
