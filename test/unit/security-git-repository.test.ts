import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

import { readWorkTree } from "../../src/claude/work-tree.ts";
import { readOnlyGit } from "../../src/security/git/read-only-git.ts";

/** Uses real repositories, made by git. */

const root = realpathSync(mkdtempSync(join(tmpdir(), "git-repository-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const environment = {
  PATH: process.env["PATH"] ?? "",
  HOME: root,
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@b.c",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@b.c",
};

function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", ["-c", "protocol.file.allow=always", ...args], {
    cwd,
    env: environment,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}

const folder = () => mkdtempSync(join(root, "r-"));

/** Makes a repository with one commit. */
function repository(): string {
  const cwd = folder();
  git(cwd, "init", "-q");
  git(cwd, "commit", "-q", "--allow-empty", "-m", "first");
  return cwd;
}

/** Returns "read", "none" without a repository, or the refusal of `readOnlyGit`. */
async function verdict(cwd: string, allowed: readonly (readonly string[])[] = []): Promise<string> {
  const found = await readOnlyGit({ cwd, environment, wrapper: [], allowed });
  return typeof found === "function" ? "read" : (found ?? "none");
}

describe("repositories that are read", () => {
  it("a repository is read from its own folder and from one below", async () => {
    const cwd = repository();
    mkdirSync(join(cwd, "sub"));
    expect([await verdict(cwd), await verdict(join(cwd, "sub"), [[cwd], []])]).toEqual(["read", "read"]);
  });

  it("a repository is read from a work tree that it lists, and as a submodule that names its folder", async () => {
    const [main, inner] = [repository(), repository()];
    git(main, "worktree", "add", "-q", join(main, "tree"));
    git(main, "submodule", "--quiet", "add", inner, "module");
    expect([await verdict(join(main, "tree")), await verdict(join(main, "module"))]).toEqual(["read", "read"]);
  });

  it("a repository that borrows objects from a store within the folder is read", async () => {
    const cwd = repository();
    const other = join(cwd, "other");
    mkdirSync(other);
    git(other, "init", "-q");
    writeFileSync(join(cwd, ".git/objects/info/alternates"), "# a comment\n../../other/.git/objects\n");
    expect(await verdict(cwd)).toBe("read");
  });
});

describe("repositories that are not read", () => {
  it("a folder outside any repository has no repository to read", async () => {
    expect(await verdict(folder())).toBe("none");
    expect(await readOnlyGit({ cwd: folder(), environment: {}, wrapper: [], allowed: [] })).toBeUndefined();
  });

  it("a repository is not read if PATH has no git", async () => {
    const found = await readOnlyGit({ cwd: repository(), environment: {}, wrapper: [], allowed: [] });
    expect(found).toContain("No git was found on the PATH");
  });

  it("a repository is not read from a folder in its own data", async () => {
    expect(await verdict(join(repository(), ".git", "info"))).toMatch(
      /must be run in a work tree|in the data of a repository/,
    );
  });

  it("a repository outside the folders of the session is not read", async () => {
    const cwd = repository();
    expect(await verdict(cwd, [[folder(), "/nowhere"]])).toBe(
      `Its data lies in ${join(cwd, ".git")}, outside the folder.`,
    );
  });

  it("a repository is not read from another folder whose .git leads to it", async () => {
    const [other, cwd] = [repository(), folder()];
    writeFileSync(join(cwd, ".git"), `gitdir: ${join(other, ".git")}\n`);
    expect(await verdict(cwd)).toContain("which does not belong to this folder");
    const linked = folder();
    symlinkSync(join(other, ".git"), join(linked, ".git"));
    expect(await verdict(linked)).toContain("does not belong to this folder");
  });

  it("a repository is not read from a linked work tree that has been moved", async () => {
    const main = repository();
    git(main, "worktree", "add", "-q", join(root, "tree-before"));
    renameSync(join(root, "tree-before"), join(root, "tree-after"));
    expect(await verdict(join(root, "tree-after"))).toContain("does not belong to this folder");
  });

  it("a repository whose work tree is another folder is not read", async () => {
    const cwd = repository();
    git(cwd, "config", "core.worktree", folder());
    expect(await verdict(cwd)).toBe("The repository has its work tree elsewhere.");
  });

  it.each([
    ["an alternate outside", (cwd: string) => writeFileSync(join(cwd, ".git/objects/info/alternates"), "/nowhere\n")],
    [
      "a quoted alternate",
      (cwd: string) => writeFileSync(join(cwd, ".git/objects/info/alternates"), `"${cwd}/.git/objects"\n`),
    ],
    [
      "an alternate of itself",
      (cwd: string) => writeFileSync(join(cwd, ".git/objects/info/alternates"), `${cwd}/.git/objects\n`),
    ],
    ["a link among its folders of objects", (cwd: string) => symlinkSync("/nowhere", join(cwd, ".git/objects/zz"))],
    [
      "a link among its objects",
      (cwd: string) => {
        mkdirSync(join(cwd, ".git/objects/zz"));
        symlinkSync("/nowhere", join(cwd, ".git/objects/zz/x"));
      },
    ],
    ["a link among its files", (cwd: string) => symlinkSync("/nowhere", join(cwd, ".git/packed-refs"))],
  ])("a repository with %s is not read", async (_, spoil) => {
    const cwd = repository();
    spoil(cwd);
    expect(await verdict(cwd)).toMatch(/borrows objects (?:from|in too many steps)|is a symbolic link/);
  });

  it("a repository is not read by a git that lies in its folder", async () => {
    const cwd = repository();
    writeFileSync(join(cwd, "git"), "#!/bin/sh\ntouch ran\n", { mode: 0o755 });
    const own = { ...environment, PATH: cwd };
    expect(await readOnlyGit({ cwd, environment: own, wrapper: [], allowed: [] })).toContain("No git was found");
  });
});

it("an answer of git above 1 MiB is refused, and a failed command is an error", async () => {
  const cwd = repository();
  writeFileSync(join(cwd, "big"), "x".repeat(2_000_000));
  git(cwd, "add", "big");
  const found = await readOnlyGit({ cwd, environment, wrapper: [], allowed: [] });
  if (typeof found !== "function") throw new Error(String(found));
  await expect(found("show", ":big")).rejects.toThrow("more than 1048576 bytes");
  await expect(found("show", ":none")).rejects.toThrow("path 'none' does not exist");
});

it("a folder that git ignores is refused with that reason, unless git tracks a file in it", async () => {
  const cwd = repository();
  const build = join(cwd, "build");
  mkdirSync(build);
  writeFileSync(join(cwd, ".gitignore"), "build\n");
  writeFileSync(join(build, "a"), "a\n");
  const place = { cwd: build, environment, wrapper: [], allowed: [] };
  expect(await readWorkTree(place)).toEqual({ refused: "git ignores this folder. The changes are not shown." });
  git(cwd, "add", "-f", "build/a");
  expect(await readWorkTree(place)).toMatchObject({
    diff: expect.stringContaining("+++ b/a") as unknown,
    untracked: [],
  });
});

it("filters of a repository are switched off, also under names with = and dots", async () => {
  const cwd = repository();
  git(cwd, "config", "filter.a=b.c.clean", "touch ran");
  writeFileSync(join(cwd, ".gitattributes"), "* filter=a=b.c\n");
  writeFileSync(join(cwd, "a"), "a");
  const found = await readOnlyGit({ cwd, environment, wrapper: [], allowed: [] });
  if (typeof found !== "function") throw new Error(String(found));
  expect((await found("config", "filter.a=b.c.clean")).toString()).toBe("\n");
});
