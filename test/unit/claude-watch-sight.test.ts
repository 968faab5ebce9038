import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { gitIn } from "../kit/git-repository.ts";
import { useWatchedFolders, type WatchedFolder } from "../kit/sessions/watched-folder.ts";

/** Files that tools report as changed, and that a comparison cannot show. */

const { copy, empty } = useWatchedFolders();

async function outOfSight(at: WatchedFolder, paths: readonly string[]): Promise<string[]> {
  const { session, watch } = at.watch();
  const before = await watch.look(session, "t");
  const names = paths.map((path) => at.path(path));
  const { outOfSight: found = [] } = await watch.compare(session, before, "t", names);
  return found.map((path) => path.slice(at.cwd.length + 1)).toSorted();
}

it("in a work tree, files are out of sight that git ignores, in a .git, in another repository, or behind a link", async () => {
  const at = copy();
  at.write("ignored/deep/x.txt", "x");
  at.write("ignored/gone.txt", "x");
  at.write("new.txt", "x");
  at.write("*.txt", "x");
  mkdirSync(at.path("inner"));
  gitIn(at.path("inner"))("init", "-q");
  at.write("inner/y.txt", "y");
  symlinkSync(join(at.place, "state"), at.path("link"));
  mkdirSync(at.state, { recursive: true });
  at.write("link/z.txt", "z");
  at.write(".git/hooks/post-commit", "");
  const reported = ["ignored/deep/x.txt", "ignored/gone.txt", "new.txt", "*.txt", "a.txt", "inner/y.txt", "link/z.txt"];
  rmSync(at.path("ignored/gone.txt"));
  expect(await outOfSight(at, [...reported, ".git/hooks/post-commit"])).toEqual([
    ".git/hooks/post-commit",
    "ignored/deep/x.txt",
    "inner/y.txt",
    "link/z.txt",
  ]);
  expect(await outOfSight(at, [])).toEqual([]);
});

it("outside git, files are out of sight in folders that are not entered", async () => {
  const at = empty();
  at.write("node_modules/x/index.js", "x");
  at.write("new.txt", "x");
  expect(await outOfSight(at, ["node_modules/x/index.js", "new.txt"])).toEqual(["node_modules/x/index.js"]);
});
