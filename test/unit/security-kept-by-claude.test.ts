import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileGuard } from "../../src/claude/process/hooks.ts";
import { isKeptByClaude } from "../../src/security/claude-own-files.ts";
import { protectedFor, type ProtectedPath } from "../../src/security/protected-paths.ts";

/** Claude Code's own files, and similar paths. `test/claude/kept-files.test.ts` asks the real Claude Code. */

let home = "";
let cwd = "";
let closed: ProtectedPath[] = [];
const at = (...names: string[]) => join(home, ...names);
const keyOf = (folder: string) => folder.replaceAll(/[^a-zA-Z0-9]/g, "-");
const memory = (...names: string[]) => at(".claude", "projects", keyOf(cwd), "memory", ...names);
const folder = (path: string) => mkdirSync(path, { recursive: true });

beforeEach(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "kept-")));
  cwd = at("work", "project");
  for (const path of [cwd, memory(), at(".claude", "plans"), at(".claude", "skills", "x")]) folder(path);
  writeFileSync(at(".claude", "settings.json"), "{}");
  closed = await protectedFor([], { cwd, configFolder: at(".claude"), stateFile: at(".claude.json") });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const isKept = async (path: string) => isKeptByClaude(path, { cwd, closed });

async function decisionFor(file_path: string, mode = "default"): Promise<string | undefined> {
  const hook = { hook_event_name: "PreToolUse" as const, tool_name: "Write", tool_use_id: "t", permission_mode: mode };
  const input = { ...hook, tool_input: { file_path }, session_id: "s", transcript_path: "", cwd };
  const folders = { cwd, additionalDirectories: [], home, programs: [], closed };
  const answer = await fileGuard({ folders, allowsCommands: false })(input, "t", { signal: AbortSignal.abort() });
  const said = "hookSpecificOutput" in answer ? answer.hookSpecificOutput : undefined;
  return said?.hookEventName === "PreToolUse" ? said.permissionDecision : undefined;
}

describe("a file that Claude Code keeps for itself", () => {
  it("Claude Code writes its plans and the memory of project and agents without a request, in every mode", async () => {
    const own = [
      at(".claude/plans/slug.md"),
      memory("MEMORY.md"),
      memory("deep", "note.md"),
      at(".claude/agent-memory/tester/MEMORY.md"),
      join(cwd, ".claude/agent-memory/tester/MEMORY.md"),
      join(cwd, ".claude/agent-memory-local/tester/a.md"),
      join(cwd, ".claude/plans/slug.md"),
      "~/.claude/plans/slug.md",
      at(".claude/skills/../plans/slug.md"),
    ];
    for (const path of own) {
      for (const mode of ["default", "plan", "acceptEdits", "dontAsk"]) {
        expect([path, mode, await decisionFor(path, mode)]).toEqual([path, mode, undefined]);
      }
    }
  });

  it("the memory of a repository is also kept for folders below it and linked work trees, but not for a stranger", async () => {
    const git = (...words: string[]) => execFileSync("git", ["-C", cwd, ...words], { stdio: "ignore" });
    git("init");
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-m", "x");
    git("worktree", "add", at("elsewhere"));
    const note = memory("note.md");
    for (const place of [join(cwd, "src", "deep"), at("elsewhere")]) {
      folder(place);
      expect([place, await isKeptByClaude(note, { cwd: place, closed })]).toEqual([place, true]);
    }
    // The author of a folder can write a `.git` that names any repository.
    folder(at("stranger"));
    writeFileSync(at("stranger", ".git"), `gitdir: ${join(cwd, ".git", "worktrees", "elsewhere")}\n`);
    expect(await isKeptByClaude(note, { cwd: at("stranger"), closed })).toBe(false);
  });
});

/** Paths similar to a kept file. */
const OTHERS: readonly (readonly [why: string, path: () => string])[] = [
  ["settings", () => at(".claude/settings.json")],
  ["settings through ..", () => at(".claude/plans/../settings.json")],
  ["instructions of the user", () => at(".claude/CLAUDE.md")],
  ["a skill", () => at(".claude/skills/x/SKILL.md")],
  ["an agent", () => at(".claude/agents/x.md")],
  ["a command", () => at(".claude/commands/x.md")],
  ["a hook of the project", () => join(cwd, ".claude/hooks/x.md")],
  ["a skill of the project, where `plansDirectory` may lead", () => join(cwd, ".claude/skills/slug.md")],
  ["a workflow, where `plansDirectory` may lead", () => join(cwd, ".github/workflows/slug.md")],
  ["a launch file of the project", () => join(cwd, ".claude/launch.json")],
  ["a plan in a folder", () => at(".claude/plans/deep/slug.md")],
  ["a plan that is not text", () => at(".claude/plans/slug.sh")],
  ["plans in another case", () => at(".claude/Plans/slug.md")],
  ["a plan in another case", () => at(".claude/plans/slug.MD")],
  ["a plan with an invisible character", () => at(".claude/plans/sl\u200Bug.md")],
  ["memory of another project", () => at(".claude/projects/-other/memory/note.md")],
  ["memory of the folder above", () => at(".claude/projects", keyOf(dirname(cwd)), "memory/note.md")],
  ["a file beside memory", () => at(".claude/projects", keyOf(cwd), "note.md")],
  ["a transcript", () => at(".claude/projects", keyOf(cwd), "x.jsonl")],
  ["memory that is not text", () => memory("note.sh")],
  ["CLAUDE.md in memory", () => memory("CLAUDE.md")],
  ["CLAUDE.md in memory, in another case", () => memory("Claude.md")],
  ["SKILL.md in memory", () => memory("x", "SKILL.md")],
  ["settings in memory", () => memory(".claude", "settings.md")],
  ["a workflow in memory", () => memory(".github", "workflows", "x.md")],
  ["a hook of git in memory", () => memory(".git", "hooks", "x.md")],
  ["the memory folder itself", () => memory()],
  ["agent memory of no agent", () => at(".claude/agent-memory/note.md")],
];

describe("a file that only resembles a kept one", () => {
  it.each(OTHERS)("a write is asked for or denied: %s", async (_, path) => {
    expect(await isKept(path())).toBe(false);
    expect(["ask", "deny"]).toContain(await decisionFor(path()));
  });

  it("a path through a link is not kept: a file, a folder of plans or memory, a link into memory from elsewhere", async () => {
    symlinkSync(at(".claude/settings.json"), memory("settings.md"));
    symlinkSync(at(".claude/CLAUDE.md"), at(".claude/plans/missing.md"));
    symlinkSync(join(cwd, ".claude"), memory("linked"));
    folder(join(cwd, ".claude/agents"));
    for (const path of [memory("settings.md"), at(".claude/plans/missing.md"), memory("linked", "agents", "x.md")]) {
      expect([path, await isKept(path)]).toEqual([path, false]);
    }
    rmSync(at(".claude/plans"), { recursive: true });
    symlinkSync(at(".claude/skills"), at(".claude/plans"));
    expect(await isKept(at(".claude/plans/slug.md"))).toBe(false);
    rmSync(memory(), { recursive: true });
    symlinkSync(at(".claude/skills/x"), memory());
    expect(await isKept(memory("note.md"))).toBe(false);
    symlinkSync(at(".claude/agent-memory"), join(cwd, ".vscode"));
    expect(await isKept(join(cwd, ".vscode/x/note.md"))).toBe(false);
    symlinkSync(memory("loop.md"), memory("loop.md"));
    expect(await isKept(memory("loop.md"))).toBe(false);
  });

  it("a hard link to the settings is not kept as memory", async () => {
    linkSync(at(".claude/settings.json"), memory("note.md"));
    expect(await isKept(memory("note.md"))).toBe(false);
    writeFileSync(memory("single.md"), "x");
    expect(await isKept(memory("single.md"))).toBe(true);
  });
});

it("files of a linked configuration folder are kept under both names", async () => {
  symlinkSync(at(".claude"), at("dotfiles"));
  closed = await protectedFor([], { cwd, configFolder: at("dotfiles"), stateFile: at(".claude.json") });
  expect([await isKept(at("dotfiles/plans/a.md")), await isKept(at(".claude/plans/a.md"))]).toEqual([true, true]);
});
