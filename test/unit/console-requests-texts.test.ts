import { describe, expect, test } from "vitest";
import { changedLines } from "../../console/src/parts/diff-lines.ts";
import { escapeInvisible, splitInvisible } from "../../console/src/requests/words/invisible.ts";
import { readObject } from "../../console/src/requests/words/json-error.ts";
import { headline, shapeOf } from "../../console/src/requests/words/subject.ts";
import { timeLeft } from "../../console/src/parts/format.ts";
import type { PendingRequest } from "../../src/console/wire.ts";

const request = (changes: Partial<PendingRequest> = {}): PendingRequest => ({
  sessionId: "s1",
  title: "Mend the tests",
  cwd: "/home/ann/shop",
  requestId: "r1",
  eventId: 7,
  type: "permission",
  toolName: "Bash",
  input: { command: "npm test", description: "Run the tests" },
  remember: ["Bash(npm test)"],
  approver: "console",
  createdAt: 1_000,
  expiresAt: 60_000,
  approvals: ["user", "console", "caller"],
  approverDeadline: 60_000,
  ...changes,
});

describe("typed JSON", () => {
  test("typed JSON is read as an object", () => {
    expect(readObject(' {"a": [1, -2.5e3, "\\u00e9 \\"", null, {}]} ')).toEqual({
      ok: true,
      value: { a: [1, -2500, 'é "', null, {}] },
    });
  });

  test.each([
    ['{\n  "a": 1\n  "b": 2\n}', 'Line 3, column 3: expected a comma or }, found "\\"".'],
    ['{"a": 1,}', 'Line 1, column 9: expected a name in double quotes ", found "}".'],
    ['{"a" 1}', 'Line 1, column 6: expected a colon, found "1".'],
    ['{"a": tru}', 'Line 1, column 7: expected a value, found "t".'],
    ['{"a": 01}', 'Line 1, column 7: expected a value, found "0".'],
    ['{"a": [1, 2}', 'Line 1, column 12: expected a comma or ], found "}".'],
    ['{"a": "b', 'Line 1, column 9: expected the closing quote " (a new line is written \\n), found the end.'],
    ['{"a": "b\nc"}', 'Line 1, column 9: expected the closing quote " (a new line is written \\n), found "\\n".'],
    ['{"a": "C:\\x"}', 'Line 1, column 10: expected a known escape (a lone \\ is written \\\\), found "\\\\".'],
    ["{} {}", 'Line 1, column 4: expected nothing more, found "{".'],
    ["", "Line 1, column 1: expected a value, found the end."],
    ["[1]", 'Line 1, column 1: expected one object in braces { }, found "[".'],
  ])("invalid JSON is refused with the position of the error: %j", (text, problem) => {
    expect(readObject(text)).toMatchObject({ ok: false, problem });
  });

  test("the reported position of an error in JSON is never behind the fault", () => {
    const good = JSON.stringify({ a: [1, { b: "x\ny" }, true], c: -0.5, d: null }, undefined, 1);
    const late = Array.from(
      good,
      (_, at) => [at, readObject(good.slice(0, at)), readObject(`${good.slice(0, at)}@`)] as const,
    )
      .flatMap(([at, ...reads]) => reads.map((read) => ({ at, read })))
      .filter(({ at, read }) => read.ok || read.at > at + 1);
    expect(late).toEqual([]);
  });
});

describe("the description of a request", () => {
  test("the headline of a request says who asks, and for what", () => {
    expect(headline(request())).toBe("Claude Code asks to run a command");
    expect(headline(request(), true)).toBe("Claude Code asked to run a command");
    expect(headline(request({ agentId: "a", toolName: "Write" }))).toBe("A subagent asks to write a file");
    const agent = { description: "Check the shop", eventId: 6 };
    expect(headline(request({ agentId: "a", agent }))).toBe("Check the shop (subagent) asks to run a command");
    expect(headline(request({ toolName: "mcp__git__hub__open" }))).toBe(
      "Claude Code asks to use hub__open of the MCP server git",
    );
    expect(headline(request({ toolName: "toString" }))).toBe("Claude Code asks to use a tool");
    expect(headline(request({ type: "question", input: { questions: [1, 2] } }))).toBe("Claude Code has 2 questions");
  });

  test("the description of a request omits nothing of an input", () => {
    const inputs: [string, Record<string, unknown>][] = [
      ["Bash", { command: "ls", description: "List", timeout: 5, run_in_background: true }],
      ["Bash", { command: ["ls"] }],
      ["Write", { file_path: "/a", content: "x", mode: 1 }],
      ["Edit", { file_path: "/a", old_string: "x", new_string: "y", replace_all: true }],
      ["MultiEdit", { file_path: "/a", edits: [{ old_string: "x", new_string: "y" }] }],
      ["MultiEdit", { file_path: "/a", edits: [{ old_string: "x", new_string: "y", replace_all: true }] }],
      ["toString", { a: 1 }],
    ];
    const kinds = inputs.map(([toolName, input]) => shapeOf({ toolName, input }));
    expect(kinds.map(({ kind, rest }) => [kind, rest])).toEqual([
      ["command", { timeout: 5, run_in_background: true }],
      ["fields", { command: ["ls"] }],
      ["diffs", { mode: 1 }],
      ["diffs", { replace_all: true }],
      ["diffs", {}],
      ["fields", inputs[5]?.[1]],
      ["fields", { a: 1 }],
    ]);
  });

  test("invisible characters are escaped, and all other characters are shown as they are", () => {
    expect(escapeInvisible("ls\u001B[2K\u202Egpj.exe\r\n\tend\u200B")).toBe(
      "ls\\x1b[2K\\u{202e}gpj.exe\\x0d\n\tend\\u{200b}",
    );
    expect(splitInvisible("a\u0000b").map(({ isOdd, raw, text }) => [text, raw, isOdd])).toEqual([
      ["a", "a", false],
      ["\\x00", "\u0000", true],
      ["b", "b", false],
    ]);
    expect(escapeInvisible("grüße 🙂 שלום")).toBe("grüße 🙂 שלום");
  });

  test("changed lines are shown as removed, added or the same", () => {
    const shownLines = (before: string, after: string) =>
      changedLines(before, after).flatMap(({ kind, lines }) => lines.map((line) => `${kind} ${line}`));
    expect(shownLines("", "a\n\nb\n")).toEqual(["added a", "added ", "added b"]);
    expect(shownLines("a\nb\n", "a\nc\n")).toEqual(["same a", "removed b", "added c"]);
    expect(shownLines("a", "a\n")).toEqual(["same a", "added "]);
    expect(shownLines("a", "")).toEqual(["removed a"]);
  });

  test("a remaining time is shown in minutes and seconds, in hours, or in days", () => {
    expect([-5, 9_000, 161_000, 3_900_000, 200_000_000].map(timeLeft)).toEqual([
      "0:00",
      "0:09",
      "2:41",
      "1 h 05 min",
      "2 days",
    ]);
  });
});

describe("a request of a verification", () => {
  const asked = request({ toolName: "Verification", input: { commands: ["npm test", "npm run lint"], shell: "sh" } });

  test("the server asks, and the commands are shown one by one before the other fields", () => {
    expect(headline(asked)).toBe("The server asks to verify the work with 2 commands");
    expect(headline(request({ ...asked, input: { commands: ["npm test"] } }), true)).toBe(
      "The server asked to verify the work with 1 command",
    );
    expect(shapeOf(asked)).toEqual({
      kind: "commands",
      commands: ["npm test", "npm run lint"],
      rest: { shell: "sh" },
    });
  });

  test("an input of another form is shown as a whole", () => {
    const other = request({ toolName: "Verification", input: { commands: ["npm test", 3] } });
    expect(shapeOf(other)).toEqual({ kind: "fields", rest: other.input });
    expect(headline(other)).toBe("Claude Code asks to use a tool");
  });
});
