import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { query, type PermissionMode, type SDKUserMessage } from "@anthropic-ai/claude-agent-sdk";
import { beforeAll, describe, expect, it } from "vitest";
import { AsyncQueue, userMessage } from "../../src/claude/process/input.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Claude Code's own files: written without a request by the raw SDK, and by this server. */

const world = useWorld();
let home: string;
let cwd: string;
let server: Server;
beforeAll(async () => {
  home = realpathSync(world.folder());
  cwd = join(home, "project");
  mkdirSync(cwd);
  mkdirSync(join(home, ".claude"));
  execFileSync("git", ["-C", cwd, "init", "-q"]);
  server = await world.server({ env: environment(), args: ["--trust-dir", cwd] });
});

const environment = () => ({ HOME: home, CLAUDE_CONFIG_DIR: join(home, ".claude") });
const memory = () => join(home, ".claude", "projects", cwd.replaceAll(/[^a-zA-Z0-9]/g, "-"), "memory");

/** Written unasked by the raw SDK and by a session. */
const KEPT = [
  () => join(memory(), "note.md"),
  () => join(home, ".claude/agent-memory/x/note.md"),
  () => join(cwd, ".claude/agent-memory/x/note.md"),
  () => join(cwd, ".claude/agent-memory-local/x/note.md"),
];
/** Written unasked by the raw SDK, but not by a session, because other programs read or run these files. */
const GUARDED = [
  () => join(memory(), "CLAUDE.md"),
  () => join(memory(), ".github/workflows/a.md"),
  () => join(cwd, ".claude/launch.json"),
];
/** Written unasked by neither. */
const ASKED = [
  () => join(home, ".claude/plans/other.md"),
  () => join(memory(), "a.txt"),
  () => join(home, ".claude/projects/-other/memory/a.md"),
  () => join(home, ".claude/CLAUDE.md"),
  () => join(home, ".claude/skills/x/SKILL.md"),
  () => join(cwd, ".claude/plans/a.md"),
  () => join(cwd, ".claude/skills/x/SKILL.md"),
];

const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] });

/** Returns all existing `files`, and deletes them. */
function takeExisting(files: readonly string[]): string[] {
  const found = files.filter((file) => existsSync(file));
  for (const file of found) rmSync(file);
  return found;
}

async function byRawSdk(files: readonly string[], permissionMode: PermissionMode): Promise<string[]> {
  const prompts = new AsyncQueue<SDKUserMessage>();
  const env = { ...process.env, ...world.model.environment(""), ...environment() };
  const canUseTool = async () => Promise.resolve({ behavior: "deny" as const, message: "no" });
  const running = query({ prompt: prompts, options: { cwd, env, permissionMode, canUseTool } });
  prompts.push(
    userMessage({ id: crypto.randomUUID(), text: scriptTag([...files.map(write), { text: "end" }]), attachments: [] }),
  );
  for await (const message of running) if (message.type === "result") prompts.end();
  return takeExisting(files);
}

async function byServer(files: readonly string[], permissionMode: string): Promise<string[]> {
  const prompt = scriptTag([...files.map(write), { text: "end" }]);
  const options = { cwd, permissionMode, advanced: { permissionPrompts: "none" } };
  const { sessionId } = await server.call("claude_code", { prompt, ...options });
  await server.end(sessionId);
  return takeExisting(files);
}

describe("files of Claude Code itself", () => {
  it.each(["default", "acceptEdits", "plan", "dontAsk"] as const)(
    "a session in mode %s writes Claude Code's own files unasked like the raw SDK, except guarded ones",
    async (mode) => {
      const of = (each: readonly (() => string)[]) => each.map((path) => path());
      const all = [...of(KEPT), ...of(GUARDED), ...of(ASKED)];
      expect(await byRawSdk(all, mode)).toEqual([...of(KEPT), ...of(GUARDED)]);
      expect(await byServer(all, mode)).toEqual(of(KEPT));
    },
  );

  it.each([[[]], [["--caller-approves", "edits"]]])("a plan is written and shown on a server with %j", async (args) => {
    const strict = await world.server({ env: environment(), args });
    const begun = { prompt: scriptTag([{ text: "I think." }]), cwd, permissionMode: "plan" };
    const { sessionId } = await strict.call("claude_code", begun);
    await strict.end(sessionId);
    const told = world.model.requests.filter((each) => each.sessionId === sessionId).map(({ told: text }) => text);
    const [plan = ""] = /[^\s"\\`]+\/\.claude\/plans\/[\w-]+\.md/.exec(told.join(" ")) ?? [];
    const show = { tools: [{ name: "ExitPlanMode", input: {} }] };
    const text = "1. Read everything.";
    const script = [{ tools: [{ name: "Write", input: { file_path: plan, content: text } }] }, show, { text: "end" }];
    const { nextCursor } = await strict.call("claude_code_reply", { sessionId, prompt: scriptTag(script) });
    const { actions } = await strict.news(sessionId, nextCursor);
    expect(actions).toMatchObject([{ toolName: "ExitPlanMode", input: { plan: text }, risk: { level: "edits" } }]);
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    await strict.call("claude_code_check", answer);
    expect(await strict.end(sessionId)).toMatchObject({ result: { result: "end" } });
    rmSync(plan);
  });

  it("a plan that was not written to its file has the highest risk", async () => {
    const begun = { prompt: scriptTag([{ tools: [{ name: "ExitPlanMode", input: {} }] }, { text: "end" }]), cwd };
    const { sessionId } = await server.call("claude_code", { ...begun, permissionMode: "plan" });
    const { actions } = await server.news(sessionId);
    expect(actions).toMatchObject([{ toolName: "ExitPlanMode", risk: { level: "all" } }]);
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });
});
