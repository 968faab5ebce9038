import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { foldersBelow } from "../../src/claude/preflight/session-paths.ts";

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-browse-")));
  for (const folder of ["in/alpha/deep", "in/alps", "in/.hidden", "out/secret"]) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  writeFileSync(join(root, "in/album"), "a file");
  symlinkSync(join(root, "out"), join(root, "in/almost-out"));
  symlinkSync(join(root, "in/alps"), join(root, "in/also-in"));
  symlinkSync(join(root, "nowhere"), join(root, "in/aloof"));
});
afterAll(() => rmSync(root, { recursive: true }));

const below = async (typed: string, allowDirs: string[]) =>
  (await foldersBelow(typed, { allowDirs })).map((path) => path.replace(root, ""));

it("a typed path is completed with folders, not with files", async () => {
  expect(await below(join(root, "in/al"), [])).toEqual(["/in/almost-out", "/in/alpha", "/in/alps", "/in/also-in"]);
  expect(await below(`${root}/in/alpha/`, [])).toEqual(["/in/alpha/deep"]);
  expect(await below(`${root}/in/`, [])).not.toContain("/in/.hidden");
  expect(await below(`${root}/in/.h`, [])).toEqual(["/in/.hidden"]);
});

it("completions stay inside the allowed folders by real path", async () => {
  const allowed = [join(root, "in")];
  expect(await below(`${root}/in/al`, allowed)).toEqual(["/in/alpha", "/in/alps", "/in/also-in"]);
  for (const outside of ["/out/", "/out/s", "/in/almost-out/", "/in/alpha/../../out/", "/in/almost-out/s"]) {
    expect([outside, ...(await below(root + outside, allowed))]).toEqual([outside]);
  }
  // Users may see the parents of an allowed folder, but no siblings of a parent.
  expect(await below(`${root}/`, allowed)).toEqual(["/in"]);
  expect(await below("", allowed)).toEqual(["/in"]);
});

it("an invalid path has no completions", async () => {
  expect(await below("", [])).toEqual([]);
  expect(await below("in", [])).toEqual([]);
  expect(await below(`${root}/nowhere/`, [])).toEqual([]);
  expect(await below(`${root}/in/album/`, [])).toEqual([]);
});
