import { rmSync, symlinkSync, utimesSync } from "node:fs";
import { expect, it } from "vitest";
import { shortened, useWatchedFolders } from "../kit/sessions/watched-folder.ts";

const { copy, empty } = useWatchedFolders();

it("outside git, files are compared by a walk that skips named folders", async () => {
  const at = empty();
  at.write("same.txt", "1");
  at.write("a.txt", "1");
  at.write("gone.txt", "1");
  at.write("touched.txt", "1");
  const compared = await at.turn(() => {
    at.write("a.txt", "2");
    rmSync(at.path("gone.txt"));
    at.write("deep/new.txt", "1\n");
    at.write("node_modules/x/new.txt", "1\n");
    utimesSync(at.path("touched.txt"), 1, 1);
    symlinkSync("/etc", at.path("link"));
  });
  expect(shortened(compared)).toEqual(["changed a.txt", "added deep/new.txt +1 -0", "deleted gone.txt", "added link"]);
  expect(compared).toMatchObject({ by: "tree", complete: true });
  expect(compared.after.folders[0]).toEqual({ path: at.cwd, kind: "files", stamps: expect.any(String) as string });
  expect(compared.notSeen.join()).toMatch(/node_modules/);
});

it("outside git, a comparison can begin where the last one ended", async () => {
  const at = empty();
  at.write("a.txt", "1");
  at.write("b.txt", "1");
  const { session, watch } = at.watch();
  const { after } = await watch.compare(session, await watch.look(session, "1"), "1");
  await watch.forget("1");
  expect(watch.differences(after, after)).toBe(0);
  at.write("a.txt", "2");
  utimesSync(at.path("b.txt"), 1, 1);
  const second = await watch.compare(session, after, "2");
  expect(shortened(second)).toEqual(["changed a.txt"]);
  expect(second).toMatchObject({ by: "tree", complete: true });
  expect(watch.differences(after, second.after)).toBe(1);
});

it("a repository that the turn makes is compared with the files before", async () => {
  const at = empty();
  at.write("before.txt", "1\n");
  const compared = await at.turn(() => {
    at.git("init", "-q", "-b", "main");
    at.write("new.txt", "1\n");
    at.commit("begin");
  });
  expect(shortened(compared)).toEqual(["added new.txt +1 -0"]);
  expect(compared).toMatchObject({ by: "tree", complete: true, commits: [{ subject: "begin" }] });
});

it("a work tree without a git program is compared as outside git", async () => {
  const at = copy();
  const compared = await at.turn(() => at.write("a.txt", "x\n"), { env: { PATH: "/nowhere" } });
  expect(shortened(compared)).toEqual(["changed a.txt"]);
  expect(compared.notSeen.join()).toMatch(/No git was found/);
});

it("a folder that git ignores is compared as outside git", async () => {
  const at = copy();
  at.write("ignored/a.txt", "1");
  const compared = await at.turn(() => at.write("ignored/new.txt", "1\n"), { below: "ignored" });
  expect(shortened(compared)).toEqual(["added new.txt +1 -0"]);
  expect(compared.notSeen).toContainEqual(expect.stringMatching(/git ignores this folder/));
  const both = await at.turn(() => at.write("ignored/more.txt", "1\n"), { folders: [at.path("ignored")] });
  expect(shortened(both)).toEqual(["added ignored/more.txt +1 -0"]);
});

it("files that are no more ignored are listed with the remark that they may be old", async () => {
  const at = copy();
  at.write("ignored/a.txt", "1\n");
  const compared = await at.turn(() => at.write(".gitignore", ""));
  expect(shortened(compared)).toEqual(["changed .gitignore +0 -1", "added ignored/a.txt +1 -0"]);
  expect(compared.notSeen).toContainEqual(expect.stringMatching(/may have been there before/));
});
