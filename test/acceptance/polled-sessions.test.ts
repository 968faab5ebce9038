import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { beforeAll, expect, it } from "vitest";
import { z } from "zod";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { requestsOf } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { acceptance, listed, REAL } from "./stage.ts";

/** Sessions in the background: started at once, polled, and asked about permissions, with four tools. */

const say = (text: string) => `${text}? ${scriptTag([{ text }])}`;
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const SECRET = "correct horse battery staple";

/** `TOP`: options that have parameters of their own. `ADVANCED`: options in `advanced`. */
const TOP = [
  "prompt",
  "cwd",
  "allowedTools",
  "disallowedTools",
  "maxTurns",
  "model",
  "systemPrompt",
  "permissionRequestTimeoutMs",
];
const ADVANCED = {
  tools: ["Bash", "Agent"],
  persistSession: true,
  sessionInitTimeoutMs: 60_000,
  agents: { scout: { description: "Looks around.", prompt: "Look around.", tools: ["Read"], model: "haiku" } },
  maxBudgetUsd: 5,
  effort: "low",
  betas: ["context-1m-2025-08-07"],
  thinking: { type: "adaptive" },
  sandbox: { enabled: false },
  fallbackModel: "haiku",
  enableFileCheckpointing: true,
  includePartialMessages: true,
  mcpServers: {},
  strictMcpConfig: true,
  settingSources: ["user", "project", "local"],
  debug: true,
} as const;

acceptance("a background session", ({ server: serve, world }) => {
  let server: Server;
  beforeAll(async () => {
    // Project settings apply only in a folder of `--trust-dir`.
    server = await serve({ args: ["--trust-dir", dirname(world.folder())] });
  });

  const start = async (script: Script, options: object = {}) =>
    server.call("claude_code", { prompt: scriptTag(script), cwd: world.folder(), ...options });
  const check = async (sessionId: string, args: object) => server.call("claude_code_check", { sessionId, ...args });
  const respond = async (sessionId: string, requestId: string | undefined, args: object) =>
    check(sessionId, {
      action: "respond_permission",
      requestId,
      waitMs: 40_000,
      responseMode: "delta_compact",
      ...args,
    });

  /** Polls without `waitMs`, until a request is open or the turn has ended. */
  async function pollUntilSettled(sessionId: string, from: number): Promise<Answer> {
    for (let cursor = from; ;) {
      const answer = await check(sessionId, { action: "poll", cursor });
      if (answer.status !== "running") return answer;
      cursor = answer.nextCursor;
    }
  }

  it("a background session has four tools; `claude_code` requires only a prompt, and a resource describes all other options", async () => {
    const { names, properties, required } = await listed(server, "claude_code");
    const tools = ["claude_code", "claude_code_reply", "claude_code_session", "claude_code_check"];
    expect(names.toSorted()).toEqual(tools.toSorted());
    expect(required).toEqual(["prompt"]);
    expect(properties).toEqual(expect.arrayContaining([...TOP, "advanced"]));
    const { contents } = await server.client.readResource({ uri: "claude-code://options" });
    const others = ["agent", "additionalDirectories", "outputFormat", "pathToClaudeCodeExecutable", "debugFile", "env"];
    for (const name of [...Object.keys(ADVANCED), ...others]) expect(JSON.stringify(contents)).toContain(`\`${name}\``);
  });

  it("`claude_code` starts a session at once and returns its id; `claude_code_check` (`action`, `sessionId`, `cursor`) polls to the end", async () => {
    const started = await server.call("claude_code", { prompt: say("Hello") });
    const { nextCursor, pollInterval, sessionId } = started;
    expect(started).toMatchObject({ status: "running", pollInterval: expect.any(Number) });
    expect([typeof sessionId, typeof pollInterval]).toEqual(["string", "number"]);
    const ended = await pollUntilSettled(sessionId, nextCursor);
    expect(ended).toMatchObject({ status: "idle", actions: [], result: { result: "Hello", isError: false } });
    // A repeated poll at the same `cursor` returns no event twice.
    expect(await check(sessionId, { action: "poll", cursor: ended.nextCursor, waitMs: 0 })).toMatchObject({
      events: [],
    });
  });

  it("every option of `advanced` is accepted; the user's own settings apply unless the caller leaves them out", async () => {
    const cwd = world.folder();
    mkdirSync(join(cwd, ".claude"), { recursive: true });
    writeFileSync(join(cwd, ".claude/settings.local.json"), JSON.stringify({ env: { FROM_LOCAL: "local" } }));
    writeFileSync(join(world.configFolder, "CLAUDE.md"), "The user likes lighthouses.");
    writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify({ env: { FROM_USER: "user" } }));
    const seen = bash('echo "$HARBOUR $FROM_LOCAL $FROM_USER $HOME" > seen.txt');
    const env = { HARBOUR: "deep" };
    const schema = { type: "object", properties: { answer: { type: "number" } }, required: ["answer"] };
    const outputFormat = { type: "json_schema", schema };
    const files = { additionalDirectories: [world.folder()], debugFile: join(world.folder(), "debug.txt") };
    const answer = { tools: [{ name: "StructuredOutput", input: { answer: 42 } }] };
    const options = {
      cwd,
      allowedTools: ["Bash"],
      model: "sonnet",
      systemPrompt: "You keep a lighthouse.",
      maxTurns: 9,
    };
    const { sessionId } = await start([seen, answer, { text: "ok" }], {
      ...options,
      advanced: { ...ADVANCED, ...files, outputFormat, env },
    });
    expect(await server.end(sessionId)).toMatchObject({ result: { structuredOutput: { answer: 42 }, isError: false } });
    const [request] = requestsOf(world, sessionId);
    expect(request?.model).toContain("sonnet");
    expect(request?.system).toContain("You keep a lighthouse.");
    // The stand-in reads no settings files.
    const home = String(world.environment["HOME"]);
    const settings = REAL ? "local user" : " ";
    expect(readFileSync(join(cwd, "seen.txt"), "utf8")).toBe(`deep ${settings} ${home}\n`);
    expect(request?.told.includes("The user likes lighthouses.")).toBe(REAL);

    const isolated = await start([seen, { text: "ok" }], { ...options, advanced: { settingSources: [], env } });
    await server.end(isolated.sessionId);
    expect(readFileSync(join(cwd, "seen.txt"), "utf8")).toBe(`deep   ${home}\n`);
    expect(requestsOf(world, isolated.sessionId)[0]?.told).not.toContain("lighthouses.");
  });

  it("a tool that no rule allows is asked: `claude_code_check` (`respond_permission`) allows, changes, denies and interrupts", async () => {
    const cwd = world.folder();
    const file = (name: string) => join(cwd, name);
    const write = (name: string) => ({ tools: [{ name: "Write", input: { file_path: file(name), content: "x" } }] });
    const { sessionId } = await start([write("a"), write("b"), write("c"), write("d"), { text: "never" }], { cwd });
    const asked = await pollUntilSettled(sessionId, 1);
    expect(asked).toMatchObject({ status: "waiting_permission", actions: [{ type: "permission", toolName: "Write" }] });
    const first = asked.actions[0]?.requestId;
    const second = await respond(sessionId, first, { decision: "allow" });
    expect(existsSync(file("a"))).toBe(true);
    const late = { action: "respond_permission", sessionId, requestId: first, decision: "deny" };
    expect(await server.refusal("claude_code_check", late)).toMatchObject({ code: "PERMISSION_REQUEST_NOT_FOUND" });

    const updatedInput = { file_path: file("b"), content: "changed" };
    const third = await respond(sessionId, second.actions[0]?.requestId, {
      decision: "allow",
      permissionOptions: { updatedInput },
    });
    expect(readFileSync(file("b"), "utf8")).toBe("changed");
    const fourth = await respond(sessionId, third.actions[0]?.requestId, {
      decision: "deny",
      denyMessage: "Not this one.",
    });
    expect(existsSync(file("c"))).toBe(false);
    expect(JSON.stringify(fourth.events)).toContain("Not this one.");
    const done = await respond(sessionId, fourth.actions[0]?.requestId, { decision: "deny", interrupt: true });
    expect(done).toMatchObject({ status: "idle", result: { isError: true, errorSubtype: "interrupted" } });
    const { events } = await check(sessionId, { action: "poll", waitMs: 0, responseMode: "delta_compact" });
    const types = new Set(events.map(({ type }) => type));
    for (const type of ["output", "progress", "permission_request", "permission_result", "result"])
      expect(types).toContain(type);
  });

  it("an answer adds rules; a denied tool is never asked; `permissionRequestTimeoutMs` denies an unanswered request", async () => {
    const cwd = world.folder();
    const script = [bash("touch a"), bash("touch b"), { text: "ok" }];
    const { sessionId } = await start(script, { cwd });
    const asked = await pollUntilSettled(sessionId, 1);
    const rules = [{ toolName: "Bash", ruleContent: "touch *" }];
    const updatedPermissions = [{ type: "addRules", behavior: "allow", destination: "session", rules }];
    const allow = { decision: "allow", permissionOptions: { updatedPermissions } };
    // The added rule covers the second command.
    expect(await respond(sessionId, asked.actions[0]?.requestId, allow)).toMatchObject({ status: "idle" });
    expect([existsSync(join(cwd, "a")), existsSync(join(cwd, "b"))]).toEqual([true, true]);

    const denied = { disallowedTools: ["Bash"], permissionRequestTimeoutMs: 1_000 };
    const write = { tools: [{ name: "Write", input: { file_path: join(cwd, "w"), content: "x" } }] };
    const other = await start([bash("touch c"), write, { text: "end" }], { cwd, ...denied });
    const ended = await check(other.sessionId, { action: "poll", until: "end", waitMs: 40_000 });
    expect(ended).toMatchObject({ status: "idle", result: { result: "end" } });
    expect(JSON.stringify(ended.events)).toContain('"by":"timeout"');
    expect([existsSync(join(cwd, "c")), existsSync(join(cwd, "w"))]).toEqual([false, false]);
  });

  it("requests of subagents have an `agentID`, and `pollOptions` lists the tools", async () => {
    const files = [world.folder(), world.folder()].map((folder) => join(folder, "a.txt"));
    const agents = files.map((file) => {
      writeFileSync(file, "text");
      const script = scriptTag([{ tools: [{ name: "Read", input: { file_path: file } }] }, { text: "Read." }]);
      return { name: "Agent", input: { description: "read", subagent_type: "general-purpose", prompt: script } };
    });
    const texts = ["Both are sent.", "One is back.", "All are back."].map((text) => ({ text }));
    const { sessionId } = await start([{ tools: agents }, ...texts]);
    let open = await pollUntilSettled(sessionId, 1);
    while (open.actions.length < 2)
      open = await check(sessionId, { action: "poll", cursor: open.nextCursor, until: "event" });
    expect(new Set(open.actions.map(({ agentID }) => agentID)).size).toBe(2);
    expect(open.background.map(({ type }) => type)).toEqual(["local_agent", "local_agent"]);
    for (const { requestId } of open.actions) await respond(sessionId, requestId, { decision: "allow", waitMs: 0 });
    const done = await server.end(sessionId);
    expect(done).toMatchObject({ status: "idle", result: { isError: false } });
    const parts = { includeTools: true, includeEvents: false, includeResult: false, includeActions: false };
    const answer = await check(sessionId, { action: "poll", waitMs: 0, pollOptions: parts });
    const Tools = z.array(z.looseObject({ name: z.string(), category: z.string() }));
    expect(Tools.parse(answer["availableTools"]).map(({ name }) => name)).toEqual(
      expect.arrayContaining(["Bash", "Agent"]),
    );
    expect(answer).toMatchObject({ events: [] });
    expect(answer).not.toHaveProperty("result");
  });

  it("`claude_code_reply` continues and forks a session; `claude_code_session` cancels it permanently, with its open request", async () => {
    const { sessionId } = await start([{ text: "one" }], { systemPrompt: "You mend nets." });
    await server.end(sessionId);
    const fork = await server.call("claude_code_reply", {
      sessionId,
      prompt: say("two"),
      forkSession: true,
      waitMs: 40_000,
    });
    expect(fork).toMatchObject({ status: "idle", result: { result: "two" } });
    expect(fork.sessionId).not.toBe(sessionId);
    const asking = await server.call("claude_code_reply", {
      sessionId,
      prompt: scriptTag([bash("touch a"), { text: "no" }]),
    });
    expect(asking).toMatchObject({ sessionId, status: "running", pollInterval: expect.any(Number) });
    expect(await pollUntilSettled(sessionId, asking.nextCursor)).toMatchObject({ status: "waiting_permission" });
    await server.call("claude_code_session", { action: "cancel", sessionId });
    const ended = await check(sessionId, { action: "poll", cursor: asking.nextCursor, responseMode: "delta_compact" });
    expect(ended).toMatchObject({ status: "cancelled", actions: [], result: { isError: true } });
    expect(JSON.stringify(ended.events)).toContain('"by":"cancel"');
    expect(await server.refusal("claude_code_reply", { sessionId, prompt: "x" })).toMatchObject({ code: "CANCELLED" });
    const { sessions } = await server.call("claude_code_session", { action: "list" });
    expect(JSON.stringify(sessions)).not.toContain("mend nets");
    expect(sessions.map((each) => each.sessionId)).toEqual(expect.arrayContaining([sessionId, fork.sessionId]));
  });

  it("`claude_code_reply` continues a session from disk with `resumeToken` and `diskResumeConfig` if the operator allows it", async () => {
    const own = { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: "1", CLAUDE_CODE_MCP_RESUME_SECRET: SECRET };
    const elsewhere = await serve({ args: ["--store", join(world.folder(), "sessions.db")], env: own });
    const first = await elsewhere.call("claude_code", { prompt: say("one"), cwd: world.folder(), waitMs: 40_000 });
    const { sessionId } = first;
    const resumeToken = createHmac("sha256", SECRET).update(`local\n${sessionId}`).digest("hex");
    expect(first["resumeToken"]).toBe(resumeToken);
    await elsewhere.call("claude_code_session", { action: "close", sessionId });
    await expect.poll(() => world.processes().some(({ command }) => command.includes(sessionId))).toBe(false);

    const prompt = { sessionId, prompt: say("two"), waitMs: 40_000 };
    expect(await server.refusal("claude_code_reply", prompt)).toMatchObject({ code: "SESSION_NOT_FOUND" });
    const allowing = await serve({ env: own });
    expect(await allowing.refusal("claude_code_reply", prompt)).toMatchObject({ code: "PERMISSION_DENIED" });
    const diskResumeConfig = {
      model: "haiku",
      allowedTools: ["Read"],
      systemPrompt: "You keep a lighthouse.",
      maxTurns: 5,
    };
    const resumed = await allowing.call("claude_code_reply", { ...prompt, resumeToken, diskResumeConfig });
    expect(resumed).toMatchObject({ sessionId, status: "idle", result: { result: "two" }, resumeToken });
    expect(requestsOf(world, sessionId).at(-1)?.model).toContain("haiku");
    expect(requestsOf(world, sessionId).at(-1)?.told).toContain("one?");
  });

  it("with --dynamic-description, `claude_code` lists the tools last reported by Claude Code", async () => {
    const dynamic = await serve({ args: ["--dynamic-description"] });
    const { sessionId } = await dynamic.call("claude_code", { prompt: say("hi"), cwd: world.folder() });
    await dynamic.end(sessionId);
    expect((await listed(dynamic, "claude_code")).description).toMatch(/Tools of Claude Code: .*\bBash\b.*\bWrite\b/);
    expect((await listed(server, "claude_code")).description).not.toContain("Tools of Claude Code: ");
  });
});
