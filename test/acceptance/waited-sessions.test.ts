import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { beforeAll, expect, it } from "vitest";

import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { requestsOf } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { acceptance, listed, REAL } from "./stage.ts";

/**
 * Sessions with all options beside the prompt, waited for, and a gate to bypassPermissions that is switched while the server
 * runs.
 */

const say = (text: string) => `${text}? ${scriptTag([{ text }])}`;
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const WAIT = { waitMs: 40_000 };
const BETA = "context-1m-2025-08-07";
const SENSITIVE = "CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS";

/** Fields of a result: `ALWAYS` present, and further `TOTALS`. */
const ALWAYS = ["sessionId", "result", "isError", "durationMs", "durationApiMs", "numTurns", "totalCostUsd"];
const TOTALS = ["sessionTotalTurns", "sessionTotalCostUsd", "stopReason", "usage", "modelUsage"];

acceptance("a session", ({ server: serve, world }) => {
  let server: Server;
  beforeAll(async () => {
    const env = { [SENSITIVE]: "1", IS_SANDBOX: "1", CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS: "60000" };
    server = await serve({ args: ["--toolsets", "agent,configure"], env });
  });

  const start = async (script: Script, options: object = {}) =>
    server.call("claude_code", { prompt: scriptTag(script), cwd: world.folder(), ...WAIT, ...options });
  const reply = async (sessionId: string, prompt: string, options: object = {}) =>
    server.call("claude_code_reply", { sessionId, prompt, ...WAIT, ...options });
  const get = async (sessionId: string, options: object = {}) =>
    (await server.call("claude_code_session", { action: "get", sessionId, ...options })).sessions[0];
  /** Resolves with all fields of the result (`responseMode` full). */
  const resultOf = async (sessionId: string) => {
    const poll = { action: "poll", sessionId, waitMs: 0, responseMode: "full" };
    return (await server.call("claude_code_check", poll)).result;
  };

  it("tools to start, continue, manage and configure sessions are listed with their required arguments", async () => {
    const { names } = await listed(server, "claude_code");
    const wanted = ["claude_code", "claude_code_reply", "claude_code_session", "claude_code_configure"];
    expect(names).toEqual(expect.arrayContaining(wanted));
    expect((await listed(server, "claude_code")).required).toEqual(["prompt"]);
    expect((await listed(server, "claude_code_reply")).required).toEqual(["sessionId", "prompt"]);
    expect((await listed(server, "claude_code_session")).required).toEqual(["action"]);
    expect((await listed(server, "claude_code_configure")).required).toEqual(["action"]);
  });

  it("`claude_code` takes every option beside the prompt and returns every field of its result", async () => {
    const [cwd, further] = [world.folder(), world.folder()];
    const debugFile = join(world.folder(), "debug.txt");
    const schema = { type: "object", properties: { answer: { type: "number" } }, required: ["answer"] };
    const { sessionId, result } = await start(
      [
        bash("printenv HARBOUR > seen.txt"),
        { tools: [{ name: "StructuredOutput", input: { answer: 42 } }] },
        { text: "ok" },
      ],
      {
        cwd,
        allowedTools: ["Bash"],
        disallowedTools: ["WebSearch"],
        tools: ["Bash", "Read"],
        persistSession: true,
        permissionMode: "dontAsk",
        maxTurns: 9,
        model: "sonnet",
        systemPrompt: "You keep a lighthouse.",
        agents: { scout: { description: "Looks around.", prompt: "Look around." } },
        maxBudgetUsd: 5,
        timeout: 60_000,
        effort: "high",
        betas: [BETA],
        additionalDirectories: [further],
        outputFormat: { type: "json_schema", schema },
        thinking: { type: "adaptive" },
        mcpServers: { own: { command: process.execPath, args: [resolve("test/kit/servers/least-server.mjs")] } },
        sandbox: { enabled: false },
        fallbackModel: "haiku",
        enableFileCheckpointing: true,
        includePartialMessages: true,
        strictMcpConfig: true,
        settingSources: ["user"],
        debug: true,
        debugFile,
        env: { HARBOUR: "deep" },
      },
    );
    expect(result).toMatchObject({ isError: false, structuredOutput: { answer: 42 } });
    const whole = await resultOf(sessionId);
    for (const name of [...ALWAYS, ...TOTALS, "structuredOutput"]) expect(whole).toHaveProperty(name);
    expect(whole?.sessionTotalTurns).toBe(whole?.numTurns);
    const [request] = requestsOf(world, sessionId);
    expect(request?.model).toContain("sonnet");
    expect(request?.system).toContain("You keep a lighthouse.");
    expect(request?.tools).toEqual(expect.arrayContaining(["Bash", "Read"]));
    for (const name of ["WebSearch", "Write"]) expect(request?.tools).not.toContain(name);
    expect(readFileSync(join(cwd, "seen.txt"), "utf8")).toBe("deep\n");
    // The stand-in passes fewer options on to the model, and writes no debug log.
    const seen = {
      effort: request?.outputConfig["effort"],
      beta: request?.betas.includes(BETA),
      log: existsSync(debugFile),
    };
    expect(REAL ? seen : "").toEqual(REAL ? { effort: "high", beta: true, log: true } : "");
    const shown = await get(sessionId, { includeSensitive: true });
    expect(shown).toMatchObject({ cwd, systemPrompt: "You keep a lighthouse.", additionalDirectories: [further] });
    expect(JSON.stringify(shown)).toContain("Looks around.");
    expect(JSON.stringify(shown)).not.toContain("deep");
  });

  it("`claude_code` runs another program (`pathToClaudeCodeExecutable`) as an agent (`agent`) and keeps no transcript (`persistSession`)", async () => {
    const own = join(world.folder(), "claude");
    const standIn = world.environment["CLAUDE_CODE_MCP_CLAUDE_PATH"];
    const program = standIn === undefined ? bundledClaudes()[0] : `${process.execPath} ${standIn}`;
    writeFileSync(own, `#!/bin/sh\ntouch ${own}-ran\nexec ${String(program)} "$@"\n`, { mode: 0o755 });
    const { sessionId, result } = await start([{ text: "ok" }], {
      pathToClaudeCodeExecutable: own,
      agent: "general-purpose",
      persistSession: false,
    });
    expect(result).toMatchObject({ result: "ok", isError: false });
    expect(existsSync(`${own}-ran`)).toBe(true);
    expect(world.transcript(sessionId)).toBe("");
    const unknown = await start([{ text: "never" }], { agent: "stranger", persistSession: false });
    expect(unknown.result?.result).toContain("there is no agent stranger; available: ");
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("dontAsk denies tools that no rule allows and lists them (`permissionDenials`); limits end a turn with a subtype", async () => {
    const write = { tools: [{ name: "Write", input: { file_path: join(world.folder(), "a.txt"), content: "x" } }] };
    const ls = { ...bash("ls"), usage: { input_tokens: 400_000 } };
    const allowed = { allowedTools: ["Bash"] };
    const [denied, turns, spent, late] = await Promise.all([
      start([write, { text: "Without it." }], { permissionMode: "dontAsk" }),
      start([ls, ls, ls, { text: "never" }], { ...allowed, maxTurns: 2 }),
      start([ls, ls, { text: "never" }], { ...allowed, maxBudgetUsd: 1 }),
      start([{ gateBefore: world.folder(), text: "never" }], { timeout: REAL ? 4_000 : 1_000 }),
    ]);
    expect(await resultOf(denied.sessionId)).toMatchObject({
      result: "Without it.",
      permissionDenials: [{ tool_name: "Write" }],
    });
    expect(turns.result).toMatchObject({ isError: true, errorSubtype: "error_max_turns" });
    expect(spent.result).toMatchObject({ isError: true, errorSubtype: "error_max_budget_usd" });
    expect(late.result).toMatchObject({ isError: true, errorSubtype: "timeout", code: "TIMEOUT" });
    expect((await reply(late.sessionId, say("on"))).result).toMatchObject({ result: "on" });
  });

  it("`claude_code_reply` continues a session and adds to its totals; a fork (`forkSession`) has its own, from message `resumeSessionAt` on", async () => {
    const { sessionId } = await start([{ text: "one" }]);
    await reply(sessionId, say("two"));
    const [second, total] = [await resultOf(sessionId), await get(sessionId)];
    expect(second).toMatchObject({ result: "two", numTurns: 1, sessionTotalTurns: 2 });
    expect(second?.sessionTotalCostUsd).toBeGreaterThan(second?.totalCostUsd ?? 0);
    const fork = await reply(sessionId, say("three"), { forkSession: true });
    expect(fork.sessionId).not.toBe(sessionId);
    expect(fork.result).toMatchObject({ result: "three", sessionTotalTurns: 1 });
    expect(requestsOf(world, fork.sessionId).at(-1)?.told).toContain("two?");
    const poll = { action: "poll", sessionId, waitMs: 0, responseMode: "full", maxBytes: 1_000_000 };
    const { events } = await server.call("claude_code_check", poll);
    const one = events.find(({ data }) => JSON.stringify(data).includes('"type":"text","text":"one"'));
    const at = { forkSession: true, resumeSessionAt: one?.data["uuid"] };
    const earlier = await reply(sessionId, say("three"), at);
    expect(requestsOf(world, earlier.sessionId).at(-1)?.told).not.toContain("two?");
    expect(await get(sessionId)).toMatchObject({
      totalTurns: total?.["totalTurns"],
      totalCostUsd: total?.["totalCostUsd"],
    });
    const never = scriptTag([{ gateBefore: world.folder(), text: "never" }]);
    const late = await reply(sessionId, never, { timeout: 1_000 });
    expect(late).toMatchObject({ status: "error", result: { errorSubtype: "timeout" } });
  });

  it("`claude_code_session` lists, shows and cancels a session; sensitive details need the operator's permission", async () => {
    const systemPrompt = "You mend nets.";
    const { sessionId } = await start([{ text: "one" }], { systemPrompt });
    const all = await server.call("claude_code_session", { action: "list" });
    const times = { createdAt: expect.any(String), lastActiveAt: expect.any(String) };
    const counts = { totalTurns: 1, totalCostUsd: expect.any(Number) };
    expect(all.sessions.find((each) => each.sessionId === sessionId)).toMatchObject({
      status: "idle",
      model: expect.stringMatching(/^claude-/),
      permissionMode: "default",
      ...times,
      ...counts,
    });
    expect(JSON.stringify([all, await get(sessionId)])).not.toContain(systemPrompt);
    expect(await get(sessionId, { includeSensitive: true })).toMatchObject({ sessionId, status: "idle", systemPrompt });
    const strict = await serve();
    const asking = { action: "get", sessionId, includeSensitive: true };
    const refused = await strict.refusal("claude_code_session", asking);
    expect(refused).toMatchObject({ code: "PERMISSION_DENIED", text: expect.stringContaining(`${SENSITIVE}=1`) });

    const hanging = { prompt: scriptTag([{ gateBefore: world.folder(), text: "never" }]), cwd: world.folder() };
    const running = await server.call("claude_code", hanging);
    expect(await get(running.sessionId)).toMatchObject({ status: "running" });
    const busy = { sessionId: running.sessionId, prompt: "x" };
    expect((await server.refusal("claude_code_reply", busy)).text).toMatch(/^Error \[SESSION_BUSY\]: /);
    const answer = await server.call("claude_code_session", { action: "cancel", sessionId: running.sessionId });
    expect(answer).toMatchObject({ message: expect.any(String), sessions: [{ status: "cancelled" }] });
    expect((await server.refusal("claude_code_reply", busy)).text).toMatch(/^Error \[CANCELLED\]: /);
    expect(await resultOf(running.sessionId)).toMatchObject({ isError: true, code: "CANCELLED" });
  });

  it("bypassPermissions works only while `claude_code_configure` has opened the gate; errors have a code", async () => {
    const configure = async (action: string) => (await stream(server, "claude_code_configure", { action })).data;
    expect(await configure("get_config")).toMatchObject({ allowBypass: false, message: expect.any(String) });
    const bypass = { prompt: say("x"), cwd: world.folder(), permissionMode: "bypassPermissions" };
    expect((await server.refusal("claude_code", bypass)).text).toMatch(/^Error \[PERMISSION_DENIED\]: /);
    expect(await configure("enable_bypass")).toMatchObject({ allowBypass: true });
    const file = join(world.folder(), "a.txt");
    const { result } = await start([bash(`touch ${file}`), { text: "Done." }], { permissionMode: "bypassPermissions" });
    expect([result?.result, existsSync(file)]).toEqual(["Done.", true]);
    expect(await configure("disable_bypass")).toMatchObject({ allowBypass: false });
    expect(await server.refusal("claude_code", bypass)).toMatchObject({ code: "PERMISSION_DENIED" });

    const wrong = { prompt: "x", permissionMode: "delegate" };
    expect((await server.refusal("claude_code", wrong)).text).toMatch(
      /^Error \[INVALID_ARGUMENT\]: .*no longer exists/,
    );
    const unknown = { sessionId: "00000000-0000-4000-8000-000000000000", prompt: "x" };
    expect((await server.refusal("claude_code_reply", unknown)).text).toMatch(/^Error \[SESSION_NOT_FOUND\]: /);
  });

  it("`claude_code_reply` resumes a session from disk with options beside the prompt, if the operator allows it", async () => {
    const elsewhere = await serve({ args: ["--store", join(world.folder(), "sessions.db")] });
    const cwd = world.folder();
    const { sessionId } = await elsewhere.call("claude_code", { prompt: say("one"), cwd, ...WAIT });
    await elsewhere.call("claude_code_session", { action: "close", sessionId });
    await expect.poll(() => world.processes().some(({ command }) => command.includes(sessionId))).toBe(false);
    expect(await server.refusal("claude_code_reply", { sessionId, prompt: "x" })).toMatchObject({
      code: "SESSION_NOT_FOUND",
      text: expect.stringContaining("CLAUDE_CODE_MCP_ALLOW_DISK_RESUME"),
    });
    const allowing = await serve({ env: { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: "1" } });
    const flat = { model: "haiku", allowedTools: ["Bash"], permissionMode: "dontAsk", env: { HARBOUR: "deep" } };
    const prompt = `two? ${scriptTag([bash("printenv HARBOUR > seen.txt"), { text: "two" }])}`;
    const resumed = await allowing.call("claude_code_reply", { sessionId, prompt, ...flat, ...WAIT });
    expect(resumed).toMatchObject({ sessionId, status: "idle", result: { result: "two", sessionTotalTurns: 2 } });
    const request = requestsOf(world, sessionId).at(-1);
    expect(request?.model).toContain("haiku");
    expect(request?.told).toContain("one?");
    expect(readFileSync(join(cwd, "seen.txt"), "utf8")).toBe("deep\n");
  });

  it("a session survives the end of its idle process at the operator's limit; a turn ends at its time limit", async () => {
    const env = { CLAUDE_CODE_MCP_SESSION_TTL_MS: "1000" };
    const hasty = await serve({ env: { ...env, CLAUDE_CODE_MCP_RUNNING_SESSION_MAX_MS: REAL ? "5000" : "1000" } });
    const never = { prompt: scriptTag([{ gateBefore: world.folder(), text: "never" }]), cwd: world.folder(), ...WAIT };
    const { sessionId, result } = await hasty.call("claude_code", never);
    expect(result).toMatchObject({ isError: true, errorSubtype: "time_limit", code: "TIMEOUT" });
    await expect.poll(() => world.processes().some(({ command }) => command.includes(sessionId))).toBe(false);
    const listing = await hasty.call("claude_code_session", { action: "list" });
    expect(listing.sessions.map((each) => each.sessionId)).toContain(sessionId);
    await hasty.close();
    // A server without the limit, which a turn of a busy machine could reach.
    const patient = await serve({ env });
    const back = await patient.call("claude_code_reply", { sessionId, prompt: say("back"), ...WAIT });
    expect(back).toMatchObject({ status: "idle", result: { result: "back" } });
  });
});
