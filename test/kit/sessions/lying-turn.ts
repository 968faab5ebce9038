import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { z } from "zod";
import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Connection } from "../clients/connection.ts";
import { gitIn } from "../git-repository.ts";

/** Plays turns in which Claude Code says other things than it does, and checks their receipts. */

export interface Lie {
  readonly says: string;
  /** Changes the repository before the turn. `place`: empty folder of the test, outside. */
  readonly prepare?: (folder: string, place: string) => void;
  /** True if the caller is asked for `Bash`, and denies. */
  readonly asks?: boolean;
  /** Answers of the model before it says so. */
  readonly does: (folder: string, place: string) => object[];
  /** Fields of the small receipt, beside `turn`, `by` and `complete`. */
  readonly minimal: object;
  /** Fields of the whole receipt. */
  readonly whole?: (folder: string, place: string) => object;
  /** Words of each sentence in `notSeen`. Default: none for a turn without commands, and `UNSEEN` for another. */
  readonly notSeen?: readonly string[];
}

/** Words of `notSeen` after commands: in any folder, and in a work tree. */
export const ELSEWHERE = "Effects of commands outside the session's folders";
export const UNSEEN = ["Files that git ignores are listed only if a tool", ELSEWHERE];

const TESTS = `const { test } = require("node:test");
test("one", () => {});
test("two", () => {});
test("three", () => {});
`;

/** Creates a repository with a source, three tests, and a script that runs them. */
export function projectIn(folder: string): void {
  const files = {
    "package.json": `{ "scripts": { "test": "node --test" } }\n`,
    "src/sum.cjs": "exports.sum = 1;\n",
    "test/sum.test.cjs": TESTS,
    ".gitignore": "*.log\n",
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  commitAll(folder);
}

function commitAll(folder: string): void {
  const git = gitIn(folder);
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-qm", "begin");
}

/** File that programs of a hostile repository create. */
export const wasRun = (place: string): string => join(place, "was-run");

const Whole = z.looseObject({ notSeen: z.array(z.string()).default([]) });

/** Runs a turn, and checks its receipt in both forms. */
export async function expectTruth(server: Connection, lie: Lie, cwd: string, place: string): Promise<void> {
  lie.prepare?.(cwd, place);
  const prompt = scriptTag([...lie.does(cwd, place), { text: lie.says }]);
  const allowedTools = ["Edit", "Write", ...(lie.asks === true ? [] : ["Bash"])];
  const begun = await server.call("claude_code", { prompt, cwd, allowedTools, waitMs: 40_000 });
  const { sessionId } = begun;
  for (const { requestId } of begun.actions) {
    const answer = { action: "respond_permission", sessionId, requestId, decision: "deny" };
    await server.call("claude_code_check", answer);
  }
  const { result } = begun.actions.length === 0 ? begun : await server.end(sessionId);
  expect(result?.result).toBe(lie.says);
  const whole = Whole.parse((await server.call("claude_code_session", { action: "receipt", sessionId }))["receipt"]);
  const words = lie.notSeen ?? ("commands" in lie.minimal ? UNSEEN : []);
  // Before the receipt, because a surprise in `notSeen` tells why the receipt is another.
  expect(whole.notSeen.filter((sentence) => !words.some((word) => sentence.includes(word)))).toEqual([]);
  expect(words.filter((word) => !whole.notSeen.some((sentence) => sentence.includes(word)))).toEqual([]);
  const receipt = result?.["receipt"];
  expect(receipt).toEqual({ turn: 1, by: "tree", complete: true, ...lie.minimal });
  expect(Buffer.byteLength(JSON.stringify(receipt))).toBeLessThanOrEqual(400);
  expect(whole).toMatchObject(lie.whole?.(cwd, place) ?? {});
  expect(existsSync(wasRun(place))).toBe(false);
}

export const bash = (command: string, more: object = {}) => ({
  tools: [{ name: "Bash", input: { command, ...more } }],
});
export const read = (path: string) => ({ tools: [{ name: "Read", input: { file_path: path } }] });
export const write = (path: string, content = "1\n2\n") => ({
  tools: [{ name: "Write", input: { file_path: path, content } }],
});
export const edit = (path: string, old: string, now: string) => ({
  tools: [{ name: "Edit", input: { file_path: path, old_string: old, new_string: now } }],
});
export const subagent = (script: object[], more: object = {}) => {
  const prompt = `Do it. ${scriptTag([...script, { text: "The subagent is done." }])}`;
  const input = { description: "work", subagent_type: "general-purpose", prompt, ...more };
  return { tools: [{ name: "Agent", input }] };
};
