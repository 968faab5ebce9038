import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fileGuard, hooksOf } from "../../src/claude/process/hooks.ts";
import { protectedPaths } from "../../src/security/protected-paths.ts";

let root = "";
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "looking-")));
  for (const folder of ["work/src", "state"]) mkdirSync(join(root, folder), { recursive: true });
  symlinkSync(join(root, "state"), join(root, "work/linked"), "junction");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function decisionOf(
  tool_name: string,
  tool_input: object,
  about: { mode?: string; allowsCommands?: boolean } = {},
) {
  const { allowsCommands = false, mode: permission_mode = "acceptEdits" } = about;
  const closed = await protectedPaths([{ path: join(root, "state"), extent: "tree", why: "the server" }]);
  const places = { cwd: join(root, "work"), additionalDirectories: [], home: join(root, "home"), programs: [] };
  const hook = { hook_event_name: "PreToolUse" as const, tool_name, tool_input, tool_use_id: "t", permission_mode };
  const input = { ...hook, session_id: "s", transcript_path: "", cwd: places.cwd };
  const guard = fileGuard({ folders: { ...places, closed }, allowsCommands });
  const answer = await guard(input, "t", { signal: new AbortController().signal });
  const output = "hookSpecificOutput" in answer ? answer.hookSpecificOutput : undefined;
  return output?.hookEventName === "PreToolUse" ? output.permissionDecision : undefined;
}

describe("a shell command in acceptEdits", () => {
  it.each([
    "mv x/envrc .envrc",
    "cp a .v''imrc",
    "cp a .vim\\rc",
    "/bin/cp a bin/git",
    "mkdir -p .github/workflows",
    "echo x > .pdbrc",
    "echo x >.pdbrc",
    "true; touch HEAD",
    "sed -n 'w .psqlrc' a",
    "cp a $X",
    "cd src && cp a b",
    "cat a >| head",
  ])("a shell command needs approval if it may write a file that runs commands: %s", async (command) => {
    expect(await decisionOf("Bash", { command })).toBe("ask");
    expect(await decisionOf("Bash", { command }, { mode: "default" })).toBeUndefined();
    expect(await decisionOf("Bash", { command }, { allowsCommands: true })).toBeUndefined();
  });

  it.each(["cp a b", "mkdir -p src/deep", "cat a | head -3 > b", "npm test 2>&1", "ls .git", "echo $HOME"])(
    "a harmless shell command is left to Claude Code: %s",
    async (command) => {
      expect(await decisionOf("Bash", { command })).toBeUndefined();
    },
  );

  it("a shell command is denied if it would write a path that no session may reach", async () => {
    for (const path of ["../state/store.db", "linked/store.db", join(root, "state")]) {
      expect(await decisionOf("Bash", { command: `cp a ${path}` }, { allowsCommands: true })).toBe("deny");
    }
  });
});

describe("a file that runs commands", () => {
  it.each([
    ["default", "ask"],
    ["acceptEdits", "ask"],
    ["plan", "ask"],
    ["dontAsk", "deny"],
    ["auto", undefined],
    ["bypassPermissions", undefined],
  ])("in mode %s, a write to a file that runs commands gets the decision %s", async (mode, decision) => {
    expect(await decisionOf("Write", { file_path: join(root, "work/.envrc") }, { mode })).toBe(decision);
    expect(await decisionOf("Write", { file_path: join(root, "work/a.ts") }, { mode })).toBeUndefined();
  });
});

it.each([{}, { command: 7 }, "no object"])("a shell tool with the input %j is left to Claude Code", async (input) => {
  expect(await decisionOf("Bash", input as object)).toBeUndefined();
});

describe("a tool with unknown use of paths", () => {
  it("a tool is denied if it has more than 2,000 strings to check", async () => {
    const files = Array.from({ length: 2001 }, (_, at) => `f${String(at)}`);
    expect(await decisionOf("SendUserFile", { files })).toBe("deny");
  });

  it("an unknown tool is denied paths that no session may reach, in every mode", async () => {
    const file = join(root, "state", "http-token");
    const inputs = [
      { file_path: file },
      { files: ["a", `file://${file}`] },
      { deep: [{ path: "linked/http-token" }] },
      { path: "../state" },
    ];
    for (const tool of ["Artifact", "SendUserFile", "LSP", "mcp__files__read"]) {
      for (const input of inputs) expect(await decisionOf(tool, input, { mode: "bypassPermissions" })).toBe("deny");
    }
    expect(await decisionOf("SendUserFile", { files: ["src/a.ts"], text: `see ${file}` })).toBeUndefined();
    expect(await decisionOf("TodoWrite", { todos: [{ content: file }] })).toBeUndefined();
  });

  it("one hook without a matcher checks all tools", () => {
    expect(
      hooksOf({ guard: async () => Promise.resolve({}), confirm: async () => Promise.resolve(undefined) }).PreToolUse,
    ).toEqual([{ hooks: [expect.any(Function)] }]);
  });
});
