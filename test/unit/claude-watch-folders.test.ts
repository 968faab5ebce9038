import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { gitIn, repository } from "../kit/git-repository.ts";
import { FILES, shortened, useWatchedFolders } from "../kit/sessions/watched-folder.ts";

const { copy, empty } = useWatchedFolders();

it("commits of a turn are listed, with the net changes of their files", async () => {
  const at = copy();
  const before = at.head();
  const hashes: string[] = [];
  const compared = await at.turn(() => {
    at.append("a.txt", "4\n");
    hashes.unshift(at.commit("one"));
    at.write("b.txt", "");
    at.write("new.txt", "n\n");
    hashes.unshift(at.commit("two"));
    at.write("b.txt", FILES["b.txt"]);
  });
  expect(shortened(compared)).toEqual(["changed a.txt +1 -0", "added new.txt +1 -0"]);
  expect(compared.commits).toEqual([
    { hash: hashes[0], subject: "two" },
    { hash: hashes[1], subject: "one" },
  ]);
  expect(compared.folders).toEqual([
    { path: at.cwd, kind: "git", headBefore: before, headAfter: hashes[0], branchBefore: "main", branchAfter: "main" },
  ]);
});

const OTHER_HISTORY = /HEAD moved to a commit that does not contain the former one/;

it("an amended commit, a reset and a switch of branches are told as such", async () => {
  const at = copy();
  const amended = await at.turn(() => at.git("commit", "-q", "--amend", "-m", "amended"));
  expect(amended).toMatchObject({ files: [], commits: [{ subject: "amended" }] });
  expect(amended.notSeen).toContainEqual(expect.stringMatching(OTHER_HISTORY));
  at.write("a.txt", "");
  at.commit("second");
  const reset = await at.turn(() => at.git("reset", "-q", "--hard", "HEAD~1"));
  expect(shortened(reset)).toEqual(["changed a.txt +3 -0"]);
  expect(reset.commits).toEqual([]);
  expect(reset.notSeen).toContainEqual(expect.stringMatching(OTHER_HISTORY));
  const old = { GIT_COMMITTER_DATE: "2020-01-01T00:00:00Z", GIT_AUTHOR_DATE: "2020-01-01T00:00:00Z" };
  const switched = await at.turn(() => {
    at.git("switch", "-q", "-c", "other");
    at.write("old.txt", "1\n");
    at.git("add", ".");
    execFileSync("git", ["-C", at.cwd, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "old"], {
      env: { ...process.env, ...old },
    });
  });
  expect(shortened(switched)).toEqual(["added old.txt +1 -0"]);
  expect(switched).toMatchObject({ commits: [], folders: [{ branchBefore: "main", branchAfter: "other" }] });
  expect(switched.notSeen).toContainEqual(expect.stringMatching(/1 of the commits .* older than the turn/));
  const detached = await at.turn(() => at.git("switch", "-q", "--detach", "main"));
  expect(shortened(detached)).toEqual(["deleted old.txt +0 -1"]);
  expect(detached.folders[0]).not.toHaveProperty("branchAfter");
});

it("the first commit of a repository is a commit of its turn", async () => {
  const at = empty();
  at.git("init", "-q", "-b", "main");
  at.write("before.txt", "1\n");
  const first = await at.turn(() => at.write("new.txt", "1\n"));
  expect(shortened(first)).toEqual(["added new.txt +1 -0"]);
  const committed = await at.turn(() => {
    at.write("more.txt", "1\n2\n");
    at.commit("first");
  });
  expect(shortened(committed)).toEqual(["added more.txt +2 -0"]);
  expect(committed).toMatchObject({ by: "tree", complete: true, commits: [{ subject: "first" }] });
});

it("changes of git's configuration, hooks and excludes are listed, without the samples", async () => {
  const at = copy();
  const compared = await at.turn(() => {
    at.git("config", "core.editor", "true");
    at.write(".git/hooks/pre-commit", "#!/bin/sh\n");
    at.write(".git/hooks/other.sample", "#!/bin/sh\n");
    at.write(".git/info/exclude", "x\n");
  });
  expect(compared.gitFiles).toEqual(["config", "hooks/pre-commit", "info/exclude"]);
});

it("a submodule is seen when its commit moves, and not when its files change", async () => {
  const at = copy();
  at.write("inner/x", "");
  repository(at.path("inner"), "inner");
  at.commit("with a submodule");
  const inner = gitIn(at.path("inner"));
  const dirty = await at.turn(() => at.write("inner/b.txt", "other\n"));
  expect(shortened(dirty)).toEqual([]);
  const moved = await at.turn(() => inner("commit", "-qm", "moved", "--allow-empty"));
  expect(shortened(moved)).toEqual(["changed inner"]);
  const again = await at.turn(() => inner("commit", "-qm", "again", "--allow-empty"));
  expect(shortened(again)).toEqual(["changed inner"]);
  const recorded = await at.turn(() => at.commit("the moved submodule"));
  expect(shortened(recorded)).toEqual([]);
  expect(recorded).toMatchObject({ by: "tree", complete: true });
});

it("above 1,000 changed paths, only results of tools count", async () => {
  const at = copy();
  const compared = await at.turn(() => {
    at.commit("a commit");
    for (let number = 0; number <= 1_000; number += 1) at.write(`many/${String(number)}.txt`, "");
  });
  expect(compared.commits).toMatchObject([{ subject: "a commit" }]);
  expect(compared).toMatchObject({ by: "tools", complete: false, files: [], after: { folders: [{ kind: "unseen" }] } });
  expect(compared.notSeen).toContainEqual(expect.stringMatching(/more than 1000 files are changed or untracked/));
});

it("a session in a part of a repository sees its own folder, and all commits", async () => {
  const at = copy();
  const compared = await at.turn(
    () => {
      at.write("a.txt", "");
      at.append("sub/c.txt", "d\n");
      at.commit("both");
      at.write("sub/new.txt", "n\n");
      at.write("b.txt", "");
    },
    { below: "sub" },
  );
  expect(shortened(compared)).toEqual(["changed c.txt +1 -0", "added new.txt +1 -0"]);
  expect(compared.commits).toMatchObject([{ subject: "both" }]);
  expect(compared.notSeen).toContainEqual(expect.stringMatching(/part of a larger repository/));
});

it("additional folders and worktrees made in the turn are compared too, each file once", async () => {
  const at = copy();
  const [other, tree] = [copy(), at.path(".claude/worktrees/w")];
  const compared = await at.turn(
    () => {
      at.write("sub/c.txt", "");
      other.append("a.txt", "4\n");
      at.git("worktree", "add", "-q", "-b", "w", tree);
      at.write(".claude/worktrees/w/b.txt", "");
      at.write(".claude/worktrees/w/new.txt", "1\n");
      const git = gitIn(tree);
      git("add", ".");
      git("commit", "-qm", "of the subagent");
    },
    { folders: [other.cwd, at.path("sub")] },
  );
  expect(shortened(compared)).toEqual([
    "changed .claude/worktrees/w/b.txt +0 -4",
    "added .claude/worktrees/w/new.txt +1 -0",
    `changed ${other.path("a.txt")} +1 -0`,
    "changed sub/c.txt +0 -1",
  ]);
  expect(compared).toMatchObject({ by: "tree", complete: true, commits: [{ subject: "of the subagent" }] });
  const removed = await at.turn(() => at.git("worktree", "remove", "--force", tree));
  expect(removed).toMatchObject({ by: "tree", files: [] });
  expect(removed.notSeen).toContainEqual(expect.stringMatching(/worktrees\/w is no folder of the session any more/));
});

it("a repository inside the folder is named as not looked at", async () => {
  const at = copy();
  const compared = await at.turn(() => {
    at.write("clone/x", "");
    repository(at.path("clone"), "clone");
  });
  expect(compared).toMatchObject({ complete: false, files: [] });
  expect(compared.notSeen).toContain("clone is a repository of its own, which is not looked at.");
});

it.each(["2", "4"])(
  "files that an index of version %s hides from git are compared, and new marks are told",
  async (version) => {
    const at = copy();
    at.git("update-index", "--index-version", version);
    at.git("update-index", "--assume-unchanged", "a.txt");
    at.git("update-index", "--skip-worktree", "sub/c.txt");
    const compared = await at.turn(() => {
      at.append("a.txt", "4\n");
      rmSync(at.path("sub/c.txt"));
    });
    expect(shortened(compared)).toEqual(["changed a.txt +1 -0", "deleted sub/c.txt +0 -1"]);
    expect(compared).toMatchObject({ by: "tree", complete: true });
    const marked = await at.turn(() => at.git("update-index", "--assume-unchanged", "b.txt"));
    expect(marked).toMatchObject({ complete: false, files: [] });
    expect(marked.notSeen).toContainEqual(expect.stringMatching(/^b.txt was marked in git's index/));
  },
);

it("filters and monitors that a repository configures do not run, and filters are named as switched off", async () => {
  const at = copy();
  const marker = join(at.place, "was-run");
  at.write(".gitattributes", "* filter=evil\n");
  at.append(
    ".git/config",
    `[filter "evil"]\n\tclean = touch ${marker}; cat\n[core]\n\tfsmonitor = touch ${marker}; true\n`,
  );
  const compared = await at.turn(() => at.write("a.txt", ""));
  expect(shortened(compared)).toEqual(["changed a.txt +0 -3"]);
  expect(compared.notSeen).toContainEqual(
    expect.stringMatching(/filters of git \(such as LFS\), which are switched off/),
  );
  expect(existsSync(marker)).toBe(false);
});

it("a lost state, a lost walk and a folder that is gone leave the comparison incomplete", async () => {
  const at = copy();
  const { session, watch } = at.watch();
  expect(await watch.compare(session, undefined, "k")).toMatchObject({ by: "tools", complete: false });
  const plain = empty();
  const { session: other, watch: former } = plain.watch();
  const before = await former.look(other, "k");
  expect(await plain.watch().watch.compare(other, before, "k")).toMatchObject({ by: "tools", complete: false });
  const state = await watch.look(session, "k");
  rmSync(at.cwd, { recursive: true });
  const gone = await watch.compare(session, state, "k");
  expect(gone).toMatchObject({ by: "tools", complete: false });
  expect(gone.notSeen.join()).toMatch(/does not exist/);
});

it("old bytes are private, and go with the turn or with their server", async () => {
  const at = copy();
  at.write("a.txt", "the old bytes\n");
  const { session, watch } = at.watch();
  await watch.look(session, "k");
  const folders = join(at.state, "watch");
  const [own = ""] = readdirSync(folders);
  const [file = ""] = readdirSync(join(folders, own));
  expect(statSync(join(folders, own)).mode & 0o777).toBe(0o700);
  expect(statSync(join(folders, own, file)).mode & 0o777).toBe(0o600);
  await watch.forget("k");
  expect(readdirSync(join(folders, own))).toEqual([]);
  await watch.look(session, "k");
  at.watch({ dependencies: { server: { store: "a store", pid: process.pid, startedAt: "2" } } });
  await expect.poll(() => existsSync(join(folders, own))).toBe(false);
});

it("differences counts paths, and nothing after a moved head", async () => {
  const at = copy();
  at.write("a.txt", "x\n");
  const { session, watch } = at.watch();
  const first = await watch.look(session, "k");
  at.write("b.txt", "y\n");
  at.write("a.txt", FILES["a.txt"]);
  const second = await watch.look(session, "k");
  expect(watch.differences(first, first)).toBe(0);
  expect(watch.differences(first, second)).toBe(2);
  at.commit("moved");
  expect(watch.differences(second, await watch.look(session, "k"))).toBeUndefined();
  await watch.forget("k");
});
