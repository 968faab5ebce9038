import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { CLIENT_KINDS } from "../support/connection.ts";
import { WITHOUT_DAEMON, type Server } from "../support/stdio-server.ts";
import { stream, type Log } from "../support/streaming.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in", daemon: "auto" });
let server: Server;
/** A second one on the same store. */
let other: Server | undefined;
beforeAll(async () => {
  server = await world.server({ args: ["--toolsets", "chat"] });
});

/** A daemon would close its conversations when this client ends. */
const ownServer = async () => world.server({ args: ["--toolsets", "chat"], env: WITHOUT_DAEMON });

/** Writes a text, and then runs for ever. */
const hanging = [
  { text: "I begin.", tools: [{ name: "Read", input: { file_path: "/nowhere/at/all" } }] },
  { hang: "before-headers" as const },
];
const say = (...texts: string[]) => scriptTag(texts.map((text) => ({ text })));

async function data(tool: string, args: Record<string, unknown>) {
  return (await stream(server, tool, args)).data;
}

async function open(args: Record<string, unknown> = {}): Promise<string> {
  return String((await data("claude_session_create", { cwd: world.folder(), ...args }))["sessionId"]);
}

describe.each(CLIENT_KINDS)("a conversation, %s client", (client) => {
  it("is opened in `cwd` by `claude_session_create`, reported while `claude_chat_query` runs in `sessionId` with `prompt`, `includeThinking`, `closeAfter`", async () => {
    const own = await world.server({ client, args: ["--toolsets", "chat"] });
    const cwd = world.folder();
    const opened = await stream(own, "claude_session_create", { cwd, model: "sonnet" });
    expect(opened.data).toMatchObject({ cwd, active: true, model: expect.stringMatching(/^claude-sonnet-/) as string });
    const sessionId = String(opened.data["sessionId"]);
    expect(world.processes().some(({ command }) => command.includes(sessionId))).toBe(true);

    const file = join(cwd, "in.txt");
    const prompt = scriptTag([
      { thinking: "I wonder.", text: "I look.", tools: [{ name: "Read", input: { file_path: file } }] },
      { text: "There is none." },
    ]);
    const { blocks, data: answer, logs } = await stream(own, "claude_chat_query", { sessionId, prompt });
    const rest = {
      sessionId,
      status: "done",
      toolInvocations: [
        { name: "Read", input: { file_path: file }, success: false, error: expect.any(String) as string },
      ],
      metadata: { usage: {}, durationMs: expect.any(Number) as number, totalCostUsd: expect.any(Number) as number },
    };
    expect(answer).toMatchObject({ finalText: "There is none.", ...rest });
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
    const thought = await stream(own, "claude_chat_query", { ...again, closeAfter: true });
    expect(thought.data).toMatchObject({ finalText: "Still here.", thinking: ["Hm."] });
    expect(thought.logs[0]).toMatchObject({ level: "info", data: { thinking: "Hm." } });
    expect(await own.refusal("claude_chat_query", again)).toMatchObject({ code: "CANCELLED" });
    await own.close();
  });
});

describe("a session of the chat toolset", () => {
  it("is one that Claude Code runs, or an error that says why it does not", async () => {
    const claude = join(world.folder(), "claude");
    writeFileSync(claude, '#!/bin/sh\n[ "$1" = --version ] && echo "2.1.332 (Claude Code)" && exit\nexit 1\n', {
      mode: 0o755,
    });
    const broken = await world.server({ args: ["--toolsets", "agent,chat", "--claude-path", claude] });
    const refused = await broken.refusal("claude_session_create", { cwd: world.folder() });
    expect(refused.code).toBe("INTERNAL");
    expect(refused.text).toContain("did not start");
    const { sessions } = await broken.call("claude_code_session", { action: "list" });
    expect(sessions.filter(({ status }) => status === "error")).toEqual([]);
    expect(await server.refusal("claude_session_create", { cwd: "/nowhere/at/all" })).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect(await server.refusal("claude_session_create", { sessionId: "none" })).toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
    await broken.close();
  });

  it("follows `claude_session_create`: `systemPrompt`, `permissionMode`, `model`", async () => {
    const sessionId = await open({ systemPrompt: "You keep a lighthouse.", permissionMode: "plan", model: "opus" });
    await data("claude_chat_query", { sessionId, prompt: say("Lit.") });
    const request = world.model.requests.findLast((each) => each.sessionId === sessionId);
    expect(request?.system).toContain("You keep a lighthouse.");
    expect(request?.model).toContain("opus");
    expect(request?.told).toContain("Plan mode");
    expect(await server.refusal("claude_session_create", { permissionMode: "bypassPermissions" })).toMatchObject({
      code: "PERMISSION_DENIED",
    });
    expect(await server.refusal("claude_session_create", { sessionId, model: "opus" })).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });

  it("changes its model and reports the real one: `sessionId` and `model` of `claude_chat_model`", async () => {
    const sessionId = await open();
    const changed = await data("claude_chat_model", { sessionId, model: "haiku" });
    expect(changed).toEqual({
      sessionId,
      requestedModel: "haiku",
      resolvedModel: expect.stringMatching(/^claude-haiku-/) as string,
    });
    expect(await server.refusal("claude_chat_model", { sessionId, model: "gpt" })).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });

  it("changes its mode: `sessionId` and `permissionMode` of `claude_chat_mode`", async () => {
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    const sessionId = await open({ cwd });
    const write = { name: "Write", input: { file_path: file, content: "x" } };
    const prompt = scriptTag([{ tools: [write] }, { text: "ok" }]);
    await data("claude_chat_query", { sessionId, prompt });
    expect(existsSync(file)).toBe(false);
    expect(await data("claude_chat_mode", { sessionId, permissionMode: "acceptEdits" })).toEqual({
      sessionId,
      permissionMode: "acceptEdits",
    });
    await data("claude_chat_query", { sessionId, prompt });
    expect(readFileSync(file, "utf8")).toBe("x");
    const refused = { sessionId, permissionMode: "bypassPermissions" };
    expect(await server.refusal("claude_chat_mode", refused)).toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("has one query at a time, and can be interrupted: `sessionId` of `claude_chat_interrupt`", async () => {
    other ??= await ownServer();
    const asking = other;
    const sessionId = await open();
    expect(await data("claude_chat_interrupt", { sessionId })).toEqual({ interrupted: false, sessionId });
    const prompt = scriptTag(hanging);
    let begun = (): void => undefined;
    const isRunning = new Promise<void>((resolve) => (begun = resolve));
    const onLog = ({ data: told }: Log) => told === "I begin." && begun();
    const blocked = stream(server, "claude_chat_query", { sessionId, prompt }, { onLog });
    await isRunning;
    const busy = await asking.refusal("claude_chat_query", { sessionId, prompt });
    expect(busy).toMatchObject({
      code: "SESSION_BUSY",
      text: expect.stringMatching(/^Error \[SESSION_BUSY\]: .* or end it with claude_chat_interrupt\.$/) as string,
    });
    const stopped = await stream(asking, "claude_chat_interrupt", { sessionId });
    const answer = await blocked;
    expect(stopped.data).toEqual({ interrupted: true, sessionId });
    expect(answer.data).toMatchObject({ status: "interrupted" });
    expect(answer.logs.at(-1)?.data).toBe(`${sessionId} completed`);
  });

  it("that does not exist is never answered with tools that are not listed", async () => {
    const read = server.client.readResource({ uri: "claude-code://sessions/00000000-0000-4000-8000-000000000000" });
    await expect(read).rejects.toThrow(/There is no session .* Open one with claude_session_create\./);
    const refused = await server.refusal("claude_chat_query", { sessionId: "none", prompt: "x" });
    expect(refused.text).toBe(
      "Error [SESSION_NOT_FOUND]: There is no session none. Open one with claude_session_create.",
    );
  });

  it("is closed with the number of those left: `sessionId` of `claude_session_close`", async () => {
    const [first, second] = [await open(), await open()];
    const { activeSessions } = await data("claude_session_close", { sessionId: first });
    const rest = await data("claude_session_close", { sessionId: second });
    expect(rest).toEqual({ sessionId: second, activeSessions: (activeSessions as number) - 1 });
    expect(await data("claude_session_close", { sessionId: second })).toEqual(rest);
  });

  it("is resumed by `sessionId` of `claude_session_create`, in another server", async () => {
    const cwd = world.folder();
    other ??= await ownServer();
    const first = other;
    const sessionId = String((await stream(first, "claude_session_create", { cwd })).data["sessionId"]);
    await stream(first, "claude_chat_query", { sessionId, prompt: say("Noted.") });
    await first.close();
    other = undefined;
    expect(await data("claude_session_create", { sessionId })).toMatchObject({ sessionId, cwd, active: true });
    await data("claude_chat_query", { sessionId, prompt: say("Again.") });
    const request = world.model.requests.findLast((each) => each.sessionId === sessionId);
    expect(request?.told).toContain("Noted.");
  });
});

describe("a query of the chat toolset", () => {
  it("that asks is denied at once where no approver can answer, and returned where the caller can", async () => {
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    const prompt = scriptTag([
      { tools: [{ name: "Write", input: { file_path: file, content: "x" } }] },
      { text: "End." },
    ]);
    expect(await data("claude_direct_query", { cwd, prompt })).toMatchObject({
      finalText: "End.",
      toolInvocations: [
        { name: "Write", success: false, error: expect.stringContaining("No approver can answer") as string },
      ],
    });
    expect(existsSync(file)).toBe(false);

    const both = await world.server({ args: ["--toolsets", "agent,chat"] });
    const asked = await stream(both, "claude_direct_query", { cwd, prompt });
    expect(asked.data).toMatchObject({ finalText: "", status: "waiting_permission", actions: [{ toolName: "Write" }] });
    expect(asked.blocks[0]).toContain("claude_code_check");
    const {
      actions,
      nextCursor: cursor,
      sessionId,
    } = asked.data as { actions: { requestId: string }[] } & typeof asked.data;
    const answer = { action: "respond_permission", decision: "allow", requestId: actions[0]?.requestId, until: "end" };
    expect(await both.call("claude_code_check", { ...answer, sessionId, cursor })).toMatchObject({
      result: { result: "End." },
    });
    expect(existsSync(file)).toBe(true);
  });

  it("in one call opens, answers and closes: `claude_direct_query` with `prompt`, `cwd`, `model`, `systemPrompt`, `permissionMode`, `includeThinking`", async () => {
    const cwd = world.folder();
    const args = { cwd, prompt: say("Once."), model: "opus", systemPrompt: "Be brief.", permissionMode: "dontAsk" };
    expect(await server.refusal("claude_direct_query", args)).toMatchObject({ code: "INVALID_ARGUMENT" });
    const chosen = { ...args, permissionMode: "default", includeThinking: true };
    const { blocks, data: answer } = await stream(server, "claude_direct_query", chosen);
    expect(answer).toMatchObject({ finalText: "Once.", thinking: [] });
    expect(blocks[0]).toBe("Once.");
    const { sessionId } = answer;
    const request = world.model.requests.findLast((each) => each.sessionId === sessionId);
    expect([request?.model, request?.system]).toMatchObject(
      [/opus/, /Be brief\./].map((each) => expect.stringMatching(each) as string),
    );
    const isLive = () => world.processes().some(({ command }) => command.includes(String(sessionId)));
    await expect.poll(isLive, { timeout: 10_000 }).toBe(false);
    expect(await server.refusal("claude_chat_query", { sessionId, prompt: say("no") })).toMatchObject({
      code: "CANCELLED",
    });
  });

  it("ends at once when its Claude Code dies, with an error that is logged too", async () => {
    const sessionId = await open({ permissionMode: "acceptEdits" });
    const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    const kill = ({ data: told }: Log) => {
      if (told !== "I begin.") return;
      const found = world.processes().find(({ command }) => command.includes(sessionId));
      process.kill(found?.pid ?? Number.NaN, "SIGKILL");
    };
    const prompt = `Use ${secret}. ${scriptTag(hanging)}`;
    const streamed = await stream(server, "claude_chat_query", { sessionId, prompt }, { onLog: kill });
    const { blocks, data: lost, isError, logs } = streamed;
    expect(isError).toBe(true);
    expect(blocks[0]).toMatch(/^Error: The turn was lost: /);
    expect(lost).toMatchObject({ isError: true, sessionId, status: "lost", finalText: "I begin." });
    expect(lost).toHaveProperty("toolInvocations");
    const error = logs.find(({ level }) => level === "error");
    expect(error?.data).toMatchObject({ sessionId, prompt: expect.stringMatching(/^Use /) as string });
    expect(JSON.stringify(logs)).not.toContain(secret);
    expect(logs.at(-1)?.data).toBe(`${sessionId} completed`);
    expect(await data("claude_chat_query", { sessionId, prompt: say("Back.") })).toMatchObject({ finalText: "Back." });
  });

  it("has its text in its progress where a client takes no log notifications", async () => {
    const read = { name: "Read", input: { file_path: "/nowhere/at/all" } };
    const text = "Line one.\nLine two.";
    const prompt = scriptTag([
      { text, tools: [read] },
      { text: "End.", gateBefore: "text-told" },
    ]);
    const onProgress = (message: string | undefined) => message === text && world.model.release("text-told");
    const args = { cwd: world.folder(), prompt };
    const { data: answer, logs } = await stream(server, "claude_direct_query", args, { wantsLogs: false, onProgress });
    expect(answer).toMatchObject({ finalText: "End." });
    expect(logs).toEqual([]);
  });
});
