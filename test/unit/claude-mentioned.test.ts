import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findMentionedPaths, findShownPaths } from "../../src/claude/risk/mentioned-paths.ts";
import { whyUnclear } from "../../src/security/shell/unclear-paths.ts";

/** Paths in the text of a shell command, and the reasons for paths that stay unknown. */

let root = "";
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "mentioned-")));
  mkdirSync(join(root, "src", "sub"), { recursive: true });
  mkdirSync(join(root, "real"));
  symlinkSync(join(root, "real"), join(root, "src", "link"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const folders = () => ({ cwd: join(root, "src"), additionalDirectories: [], home: root, closed: [], programs: [] });

describe("reasons why the files of a command are unknown", () => {
  it.each([
    ["cat $x", "`$`"],
    ["cat `x`", "```"],
    ["cat *", "`*`"],
    ["cat a?", "`?`"],
    ["cat [ab]", "`[`"],
    ["cat {a,b}", "`{`"],
    ["cat a\\ b", "`\\`"],
    ["cat !x", "`!`"],
    ["cat ~ann/x", "`~`"],
    ["cd x && ls", "`cd`"],
    ["ls; pushd x", "`pushd`"],
    ["eval ls", "`eval`"],
    [". ./x", "`.`"],
    ["git -C x status", "`-C`"],
    ["x".repeat(10_001), "its length"],
    ["x ".repeat(201).replaceAll(/x/g, () => `x${String(Math.random())}`), "the number of its words"],
  ])("`whyUnclear` names the reason for %s", async (command, why) => {
    expect(whyUnclear(command)).toBe(why);
    expect(await findMentionedPaths(command, folders())).toBeUndefined();
  });

  it("a plain command hides nothing; its files are known by real path", async () => {
    const command = "cat sub/a link/b ~/c > out 2>&1";
    expect(whyUnclear(command)).toBeUndefined();
    const paths = await findMentionedPaths(command, folders());
    const named = ["src/sub/a", "src/link/b", "real/b", "c", "src/out"].map((path) => join(root, path));
    expect(paths).toEqual(expect.arrayContaining(named));
  });
});

describe("files that stay known in a partly unreadable command", () => {
  const file = () => join(root, "src", "secret");
  it.each([
    ["echo $x; cat secret", true],
    ["cat $(cat secret)", true],
    ["for f in 1; do cat secret $f; done", true],
    ["cat * secret", true],
    ["cat 'secret' $x", true],
    ["cat $x/secret", false],
    ["cat secre?", false],
    ["cd sub && cat ../secret", true],
    ["cd sub; cat ../secret", true],
    ["cd sub && cat secret", false],
    ["cd sub && cd .. && cat secret", false],
    ["cd $x && cat secret", false],
    ["cd - && cat secret", false],
    ["git -C sub log secret", false],
    ["eval cat secret", false],
    ["cat secret; cd sub", true],
    ["cat secret && eval ls", true],
    ["git -C sub status; cat secret", true],
    ["git -C sub status && cd x && cat secret", false],
    [`echo ${Array.from({ length: 300 }, (_, at) => `w${String(at)}`).join(" ")}; cat secret`, true],
  ])("a file is found in %s: %s", async (command, isFound) => {
    expect((await findShownPaths(command, folders())).includes(file())).toBe(isFound);
  });

  it.each([
    ["cat secret/*", "secret/*"],
    ["for f in a; do cat secret/$f; done", "secret/$f"],
    ["cat *.key", "*.key"],
  ])("a pattern counts as a path below the folder written before it: %s", async (command, path) => {
    expect(await findShownPaths(command, folders())).toContain(join(root, "src", path));
  });

  it("a file is found by its absolute path and by ~, wherever the command may have gone", async () => {
    for (const way of [file(), "~/src/secret"]) {
      expect(await findShownPaths(`cd $x && cat ${way}`, folders())).toContain(file());
    }
  });
});
