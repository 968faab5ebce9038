import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream, type Log } from "../kit/clients/streaming.ts";
import { acceptance, listed } from "./stage.ts";

/** Opens, uses and closes a conversation; its text arrives as log notifications. */

const TOOLSETS = ["--toolsets", "chat"];
const say = (...texts: string[]) => scriptTag(texts.map((text) => ({ text })));
const MODES = ["default", "acceptEdits", "plan", "bypassPermissions"];

acceptance("a conversation", ({ server: serve, world }) => {
  let server: Server;
  beforeAll(async () => {
    server = await serve({ args: TOOLSETS });
  });

  async function data(tool: string, args: Record<string, unknown>) {
    return (await stream(server, tool, args)).data;
  }

  async function open(args: Record<string, unknown> = {}): Promise<string> {
    return String((await data("claude_session_create", { cwd: world.folder(), ...args }))["sessionId"]);
  }

  const requestOf = (sessionId: unknown) => world.model.requests.findLast((each) => each.sessionId === sessionId);
  const isLive = (sessionId: unknown) => world.processes().some(({ command }) => command.includes(String(sessionId)));

  it("a conversation has seven tools with their required arguments, and modes and models from fixed lists", async () => {
    const required: Record<string, string[]> = {
      claude_session_create: [],
      claude_session_close: ["sessionId"],
      claude_chat_query: ["sessionId", "prompt"],
      claude_chat_interrupt: ["sessionId"],
      claude_chat_model: ["sessionId", "model"],
      claude_chat_mode: ["sessionId", "permissionMode"],
      claude_direct_query: ["prompt"],
    };
    for (const [tool, names] of Object.entries(required)) expect((await listed(server, tool)).required).toEqual(names);
    const { tools } = await server.client.listTools();
    expect(tools.map(({ name }) => name).toSorted()).toEqual(Object.keys(required).toSorted());
    const choices = (tool: string, name: string) => {
      const found = tools.find((each) => each.name === tool)?.inputSchema.properties?.[name];
      return (found as { enum?: string[] } | undefined)?.enum;
    };
    for (const tool of ["claude_session_create", "claude_direct_query", "claude_chat_mode"])
      expect(choices(tool, "permissionMode")).toEqual(MODES);
    for (const tool of ["claude_session_create", "claude_direct_query", "claude_chat_model"])
      expect(choices(tool, "model")).toEqual(["opus", "sonnet", "haiku"]);
  });

  it("`claude_session_create` opens a conversation in `cwd` with `model`, and answers when Claude Code runs", async () => {
    const cwd = world.folder();
    const opened = await data("claude_session_create", { cwd, model: "sonnet" });
    const model = expect.stringMatching(/^claude-sonnet-/) as string;
    expect(opened).toEqual({ sessionId: expect.any(String) as string, cwd, active: true, model });
    expect(isLive(opened["sessionId"])).toBe(true);
    await data("claude_session_close", { sessionId: opened["sessionId"] });
  });

  it("`claude_chat_query` reports the turn of `prompt` in `sessionId`; `includeThinking` adds thinking, `closeAfter` closes", async () => {
    const sessionId = await open();
    const file = join(world.folder(), "in.txt");
    const read = { name: "Read", input: { file_path: file } };
    const script = [{ thinking: "I wonder.", text: "I look.", tools: [read] }, { text: "There is none." }];
    const {
      blocks,
      data: answer,
      logs,
    } = await stream(server, "claude_chat_query", { sessionId, prompt: scriptTag(script) });
    const failed = { name: "Read", input: { file_path: file }, success: false, error: expect.any(String) as string };
    const number = expect.any(Number) as number;
    expect(answer).toMatchObject({
      finalText: "There is none.",
      sessionId,
      status: "done",
      toolInvocations: [failed],
      metadata: { usage: {}, durationMs: number, totalCostUsd: number },
    });
    expect(answer).not.toHaveProperty("thinking");
    expect(blocks[0]).toBe("There is none.");
    const { finalText: _, ...about } = answer;
    expect(JSON.parse(blocks[1] ?? "")).toEqual(about);

    expect(logs.map(({ level }) => level)).toEqual(["info", "debug", "debug", "info", "info"]);
    expect(logs.map(({ data: told }) => told)).toMatchObject([
      "I look.",
      { tool: "Read", input: { file_path: file } },
      { tool: "Read", success: false },
      "There is none.",
      `${sessionId} completed`,
    ]);
    expect(new Set(logs.map(({ logger }) => logger))).toEqual(new Set([sessionId]));

    const again = { sessionId, prompt: scriptTag([{ thinking: "Hm.", text: "Still here." }]), includeThinking: true };
    const thought = await stream(server, "claude_chat_query", { ...again, closeAfter: true });
    expect(thought.data).toMatchObject({ finalText: "Still here.", thinking: ["Hm."] });
    expect(thought.logs[0]).toMatchObject({ level: "info", data: { thinking: "Hm." } });
    expect(await server.refusal("claude_chat_query", again)).toMatchObject({ code: "CANCELLED" });
  });

  it("`systemPrompt`, `permissionMode` and `model` of `claude_session_create` reach the model", async () => {
    const sessionId = await open({ systemPrompt: "You keep a lighthouse.", permissionMode: "plan", model: "opus" });
    await data("claude_chat_query", { sessionId, prompt: say("Lit.") });
    const request = requestOf(sessionId);
    expect(request?.system).toContain("You keep a lighthouse.");
    expect(request?.model).toContain("opus");
    expect(request?.told).toContain("Plan mode");
    expect(await server.refusal("claude_session_create", { model: "gpt" })).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it("`claude_chat_model` changes the `model` of `sessionId` and reports the resolved model", async () => {
    const sessionId = await open();
    const resolvedModel = expect.stringMatching(/^claude-haiku-/) as string;
    const changed = await data("claude_chat_model", { sessionId, model: "haiku" });
    expect(changed).toEqual({ sessionId, requestedModel: "haiku", resolvedModel });
    await data("claude_chat_query", { sessionId, prompt: say("Small.") });
    expect(requestOf(sessionId)?.model).toMatch(/^claude-haiku-/);
    const refused = { sessionId, model: "gpt" };
    expect(await server.refusal("claude_chat_model", refused)).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it("`claude_chat_mode` changes the `permissionMode` of `sessionId`; bypassPermissions needs `--allow-bypass`", async () => {
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    const write = { name: "Write", input: { file_path: file, content: "x" } };
    const prompt = scriptTag([{ tools: [write] }, { text: "ok" }]);
    const sessionId = await open({ cwd });
    await data("claude_chat_query", { sessionId, prompt });
    expect(existsSync(file)).toBe(false);
    const edits = { sessionId, permissionMode: "acceptEdits" };
    expect(await data("claude_chat_mode", edits)).toEqual(edits);
    await data("claude_chat_query", { sessionId, prompt });
    expect(readFileSync(file, "utf8")).toBe("x");
    const bypass = { permissionMode: "bypassPermissions" };
    for (const [tool, args] of [
      ["claude_chat_mode", { sessionId, ...bypass }],
      ["claude_session_create", bypass],
      ["claude_direct_query", { prompt, ...bypass }],
    ] as const) {
      expect(await server.refusal(tool, args)).toMatchObject({ code: "PERMISSION_DENIED" });
    }
    const allowing = await serve({ args: [...TOOLSETS, "--allow-bypass"], env: { IS_SANDBOX: "1" } });
    const elsewhere = { name: "Bash", input: { command: "touch ran" } };
    const ran = { cwd, prompt: scriptTag([{ tools: [elsewhere] }, { text: "Ran." }]), ...bypass };
    expect((await stream(allowing, "claude_direct_query", ran)).data).toMatchObject({ finalText: "Ran." });
    expect(existsSync(join(cwd, "ran"))).toBe(true);
  });

  it("a second query is refused as busy until `claude_chat_interrupt` ends the first query of `sessionId`", async () => {
    const asking = await serve({ args: TOOLSETS });
    const sessionId = await open();
    expect(await data("claude_chat_interrupt", { sessionId })).toEqual({ interrupted: false, sessionId });
    const read = { name: "Read", input: { file_path: "/nowhere/at/all" } };
    const prompt = scriptTag([{ text: "I begin.", tools: [read] }, { hang: "before-headers" }]);
    let begun = (): void => undefined;
    const isRunning = new Promise<void>((resolve) => (begun = resolve));
    const onLog = ({ data: told }: Log) => told === "I begin." && begun();
    const blocked = stream(server, "claude_chat_query", { sessionId, prompt }, { onLog });
    await isRunning;
    const busy = await asking.refusal("claude_chat_query", { sessionId, prompt });
    expect(busy.text).toMatch(/^Error \[SESSION_BUSY\]: .* or end it with claude_chat_interrupt\.$/);
    expect((await stream(asking, "claude_chat_interrupt", { sessionId })).data).toEqual({
      interrupted: true,
      sessionId,
    });
    const answer = await blocked;
    expect(answer.data).toMatchObject({ status: "interrupted", finalText: "I begin." });
    expect(answer.logs.at(-1)?.data).toBe(`${sessionId} completed`);
    expect(await data("claude_chat_query", { sessionId, prompt: say("On.") })).toMatchObject({ finalText: "On." });
  });

  it("an error of `claude_chat_query` is a log message and the answer, with session and prompt", async () => {
    const sessionId = await open();
    const prompt = `Tell me. ${scriptTag([{ error: { status: 401, message: "no key", times: 99 } }])}`;
    const { blocks, data: failed, isError, logs } = await stream(server, "claude_chat_query", { sessionId, prompt });
    expect({ isError, status: failed["status"] }).toEqual({ isError: true, status: "failed" });
    expect(blocks[0]).toMatch(/^Error: .*no key/);
    const told = { sessionId, prompt: expect.stringMatching(/^Tell me\./), error: expect.stringContaining("no key") };
    expect(logs.find(({ level }) => level === "error")?.data).toMatchObject(told);
  });

  it("`claude_session_close` ends the process of `sessionId` and answers with the number of sessions left", async () => {
    const [first, second] = [await open(), await open()];
    const { activeSessions } = await data("claude_session_close", { sessionId: first });
    const rest = await data("claude_session_close", { sessionId: second });
    expect(rest).toEqual({ sessionId: second, activeSessions: (activeSessions as number) - 1 });
    expect(await data("claude_session_close", { sessionId: second })).toEqual(rest);
    await expect.poll(() => isLive(first) || isLive(second), { timeout: 10_000 }).toBe(false);
    expect(await server.refusal("claude_chat_query", { sessionId: "none", prompt: "x" })).toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });

  it("`claude_direct_query` opens, answers and closes in one call: `prompt`, `cwd`, `model`, `systemPrompt`, `permissionMode`, `includeThinking`", async () => {
    const cwd = world.folder();
    const args = { cwd, prompt: say("Once."), model: "opus", systemPrompt: "Be brief.", permissionMode: "dontAsk" };
    expect(await server.refusal("claude_direct_query", args)).toMatchObject({ code: "INVALID_ARGUMENT" });
    const chosen = { ...args, permissionMode: "default", includeThinking: true };
    const { blocks, data: answer } = await stream(server, "claude_direct_query", chosen);
    expect(answer).toMatchObject({ finalText: "Once.", thinking: [] });
    expect(blocks[0]).toBe("Once.");
    const { sessionId } = answer;
    expect(requestOf(sessionId)?.model).toContain("opus");
    expect(requestOf(sessionId)?.system).toContain("Be brief.");
    await expect.poll(() => isLive(sessionId), { timeout: 10_000 }).toBe(false);
    expect(await server.refusal("claude_chat_query", { sessionId, prompt: say("no") })).toMatchObject({
      code: "CANCELLED",
    });
  });
});
