import { describe, expect, it } from "vitest";

import { toClaudeRules, anchorRules, rulePath, parseRules } from "../../src/claude/rules.ts";
import { findPossiblePaths, findMentionedPaths } from "../../src/claude/risk/mentioned-paths.ts";
import { namedPaths } from "../../src/security/file-tools.ts";
import type { JsonObject } from "../../src/domain/json.ts";

const folders = { cwd: "/nowhere", additionalDirectories: [], home: "/home/ann", closed: [], programs: [] };

describe("the files that a shell command mentions", () => {
  it.each([
    ["cat a b/c", ["/nowhere/a", "/nowhere/b/c"]],
    ["cat 'a b' \"c d\"", ["/nowhere/a b", "/nowhere/c d"]],
    ["tar -f/etc/x", ["/etc/x"]],
    ["dd of=/dev/x", ["/dev/x"]],
    ["cat ~/x", ["/home/ann/x"]],
    ["echo x>y", ["/nowhere/x", "/nowhere/y"]],
  ])("the files of %s include %j", async (command, paths) => {
    expect(await findMentionedPaths(command, folders)).toEqual(expect.arrayContaining(paths));
  });

  it.each([
    ["a variable", "cat $X"],
    ["a pattern", "cat *"],
    ["the home of another user", "cat ~bob/x"],
    ["a change of folder", "true; cd x"],
    ["more than 10,000 characters", `echo ${"a".repeat(10_000)}`],
    ["more than 200 words", Array.from({ length: 201 }, (_, at) => `w${String(at)}`).join(" ")],
  ])("the files are unknown with %s", async (_, command) => {
    expect(await findMentionedPaths(command, folders)).toBeUndefined();
  });
});

describe("the paths that an unknown tool could take from its input", () => {
  it.each<[string, JsonObject, string[]]>([
    ["texts, however deep", { a: [{ b: "x" }], n: 1, none: null }, ["/nowhere/x"]],
    ["file URLs", { url: " file:///etc/x " }, ["/etc/x"]],
    ["file URLs of another machine as they are written", { url: "file://host/x" }, ["/nowhere/file:/host/x"]],
    ["nothing longer than a path", { text: "a".repeat(4097) }, []],
  ])("possible paths are %s", async (_, input, paths) => {
    expect(await findPossiblePaths(input, folders)).toEqual(paths);
  });

  it("possible paths are unknown if there are more than 2,000 texts", async () => {
    const texts = Array.from({ length: 2001 }, (_, at) => `f${String(at)}`);
    expect(await findPossiblePaths({ texts }, folders)).toBeUndefined();
    expect(await findPossiblePaths({ texts: texts.map(() => "same") }, folders)).toEqual(["/nowhere/same"]);
  });
});

it.each<[string, JsonObject, string[] | undefined]>([
  ["Glob", { pattern: "*.ts" }, ["."]],
  ["Glob", { pattern: "a/b*.ts", path: "src " }, ["src/a/"]],
  ["Glob", { pattern: "/etc/*" }, ["/etc/"]],
  ["Glob", { pattern: "~/x/*", path: "src" }, ["~/x/"]],
  ["Glob", { pattern: "a/*/../../x" }, undefined],
  ["Glob", { pattern: "a\0" }, undefined],
  ["Glob", { pattern: 7 }, undefined],
  ["Glob", { pattern: "*", path: "" }, undefined],
  ["Grep", {}, ["."]],
  ["LS", { path: "src" }, ["src"]],
  ["NotebookRead", { notebook_path: "a.ipynb" }, ["a.ipynb"]],
  ["NotebookEdit", { file_path: "a.ipynb" }, undefined],
  ["Write", { file_path: "a" }, ["a"]],
  ["Write", { file_path: "a\0b" }, undefined],
  ["Write", { file_path: "" }, undefined],
])("%s with %j names %j", (toolName, input, paths) => {
  expect(namedPaths(toolName, input)).toEqual(paths);
});

describe("a rule that is handed to Claude Code", () => {
  it.each([
    ["Read(src/a)", "Read(//w/d/src/a)"],
    ["Edit(./src/**)", "Edit(//w/d/src/**)"],
    ["Read(/src/a)", "Read(//w/d/src/a)"],
    ["Read(.env)", "Read(//w/d/**/.env)"],
    ["Read(//etc/x)", "Read(//etc/x)"],
    ["Read(~/x)", "Read(~/x)"],
    ["Bash(ls src)", "Bash(ls src)"],
    ["Bash", "Bash"],
    ["no rule (", "no rule ("],
  ])("the rule %s in the settings of a folder is passed on as %s", (text, rooted) => {
    expect(anchorRules("/w/d", [text])).toEqual([rooted]);
  });

  it("only rules that can be read are passed on, by behavior", () => {
    const rules = parseRules({ rules: { allow: ["Read(a)", "("], ask: [], deny: ["WebFetch"] } });
    expect(toClaudeRules(rules.allow, "/w")).toEqual(["Read(//w/**/a)"]);
    expect(toClaudeRules(rules.deny, "/w")).toContain("WebFetch");
    expect(rules.ask).toEqual([]);
  });

  it.each([
    ["/a b/c", "//a b/c"],
    ["/a[1]/*?", String.raw`//a\[1\]/\*\?`],
    [String.raw`C:\Users\ann`, "//c/Users/ann"],
  ])("the path %s is written as %s in a rule", (path, written) => {
    expect(rulePath(path)).toBe(written);
  });
});
