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

it.skipIf(process.platform === "win32")("git is killed with all its children at the time limit", async () => {
  execFileSync("git", ["init", "-q"], { cwd });
  const environment = { PATH: process.env["PATH"] ?? "" };
  // Runs every command but `diff`, which hangs with a child.
  const hangs = `case "$*" in *" diff"*) sleep 987654 & wait;; *) exec "$@";; esac`;
  const git = await readOnlyGit({ cwd, environment, wrapper: ["sh", "-c", hangs, "sh"], allowed: [] }, 1500);
  if (typeof git !== "function") throw new Error(`no git: ${String(git)}`);
  await expect(git("diff")).rejects.toThrow("it took longer than 1500 ms");
  const left = () => execFileSync("ps", ["-A", "-o", "stat=,args="], { encoding: "utf8" });
  await expect.poll(() => /^[^Z].*sleep 987654$/m.test(left())).toBe(false);
});

it.skipIf(process.platform === "win32").each(["config", "info/exclude"])(
  "git reads no repository whose %s is a link",
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
