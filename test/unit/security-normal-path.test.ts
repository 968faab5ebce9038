import { describe, expect, it } from "vitest";
import { foldedPath, foldedSpellings, hasUnseen, isNormal, normalPath } from "../../src/security/normal-path.ts";

const BASES = { cwd: "/repo", home: "/home/ann" };

describe("the form in which Claude Code uses a path", () => {
  it.each([
    ["/etc/hostname", "/etc/hostname"],
    [" /etc/hostname", "/etc/hostname"],
    ["/etc/hostname ", "/etc/hostname"],
    ["/etc/hostname\t", "/etc/hostname"],
    ["/etc/hostname\r\n", "/etc/hostname"],
    ["/etc/hostname\v", "/etc/hostname"],
    ["/etc/hostname\u00A0", "/etc/hostname"],
    ["/etc/hostname\u202F", "/etc/hostname"],
    ["/etc/hostname\u3000", "/etc/hostname"],
    ["/etc/hostname\uFEFF", "/etc/hostname"],
    ["/etc/hostname\u2028", "/etc/hostname"],
    // Characters that Claude Code keeps in a path.
    ["/etc/hostname\u200B", "/etc/hostname\u200B"],
    ["/etc/hostname\u0085", "/etc/hostname\u0085"],
    ["/etc/hostname\u180E", "/etc/hostname\u180E"],
    ["/project/cafe\u0301", "/project/cafe\u0301"],
    ["/etc/./x/../hostname", "/etc/hostname"],
    ["/etc/", "/etc"],
    ["/", "/"],
    ["a/b", "/repo/a/b"],
    [" ../a", "/a"],
    [".", "/repo"],
    ["~", "/home/ann"],
    [" ~/.ssh/config", "/home/ann/.ssh/config"],
    ["~//etc/hostname", "/home/ann/etc/hostname"],
    ["~/../bob", "/home/bob"],
    ["~bob/x", "/repo/~bob/x"],
    ["$HOME/x", "/repo/$HOME/x"],
  ])("Claude Code uses the path %j as %j", (named, normal) => expect(normalPath(named, BASES)).toBe(normal));

  it.each(["", " ", "\u00A0\t", "/etc/x\0", "/etc/hostname /.", "/etc/hostname /x/..", "/etc/a\u00A0/"])(
    "the path %j is refused",
    (named) => expect(normalPath(named, BASES)).toBeUndefined(),
  );

  it("a path is normal only if normalization leaves it unchanged", () => {
    expect(["/a", "/a ", "/a\uFEFF", "\t/a", "/a\u200B", "/a\0"].map(isNormal)).toEqual([
      true,
      false,
      false,
      false,
      true,
      false,
    ]);
  });
});

describe("paths that a file system may treat as equal", () => {
  it.each([
    ["/p/.GIT/Config", "/p/.git/config"],
    ["/p/.g\u200Cit", "/p/.git"],
    ["/p/.\u202Egit", "/p/.git"],
    ["/p/.git\u2028", "/p/.git"],
    ["/p/.\u017F\u017Fh", "/p/.ssh"],
    ["/p/\u212Aey", "/p/key"],
    ["/p/cafe\u0301", "/p/caf\u00E9"],
    ["/p/a\u202Fb", "/p/a b"],
  ])("%j folds to %j", (path, folded) => expect(foldedPath(path)).toBe(folded));

  it.each([
    ["/p/.git./x", "/p/.git/x"],
    ["/p/.git /x", "/p/.git/x"],
    ["C:\\p\\.bashrc::$DATA", "c:\\p\\.bashrc"],
    ["/p/.git::$INDEX_ALLOCATION/config", "/p/.git/config"],
  ])("%j also folds to %j", (path, bare) => expect(foldedSpellings(path)).toContain(bare));

  it.each([
    ["/p/a b.txt", false],
    ["/p/\u00FCber.txt", false],
    ["/p/a\u200Bb", true],
    ["/p/a\u202Ecod.exe", true],
    ["/p/a\u00A0b", true],
    ["/p/a\tb", true],
    ["/p/a\uFE0F", true],
    ["/p/a\u3164", true],
  ])("%j has invisible characters: %s", (path, has) => expect(hasUnseen(path)).toBe(has));
});
