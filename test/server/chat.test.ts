import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { WITHOUT_DAEMON, type Server } from "../kit/servers/stdio-server.ts";
import { stream, type Log } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in", daemon: "auto" });
let server: Server;
beforeAll(async () => {
  server = await world.server({ args: ["--toolsets", "chat"] });
});

/** Writes a text, then hangs. */
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

describe("a session of the chat toolset", () => {
  it("claude_session_create fails with the reason and leaves no failed session", async () => {
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

  it("the error for an unknown session names no tool that is not listed", async () => {
    const read = server.client.readResource({ uri: "claude-code://sessions/00000000-0000-4000-8000-000000000000" });
    await expect(read).rejects.toThrow(/There is no session .* Open one with claude_session_create\./);
    const refused = await server.refusal("claude_chat_query", { sessionId: "none", prompt: "x" });
    expect(refused.text).toBe(
      "Error [SESSION_NOT_FOUND]: There is no session none. Open one with claude_session_create.",
    );
  });

  it("a session is resumed in another server by `sessionId` of `claude_session_create`", async () => {
    const cwd = world.folder();
    // Runs without a daemon, because a daemon would close conversations at the end of their client.
    const first = await world.server({ args: ["--toolsets", "chat"], env: WITHOUT_DAEMON });
    const sessionId = String((await stream(first, "claude_session_create", { cwd })).data["sessionId"]);
    await stream(first, "claude_chat_query", { sessionId, prompt: say("Noted.") });
    await first.close();
    expect(await server.refusal("claude_session_create", { sessionId, model: "opus" })).toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    expect(await data("claude_session_create", { sessionId })).toMatchObject({ sessionId, cwd, active: true });
    await data("claude_chat_query", { sessionId, prompt: say("Again.") });
    const request = world.model.requests.findLast((each) => each.sessionId === sessionId);
    expect(request?.told).toContain("Noted.");
  });
});

describe("a query of the chat toolset", () => {
  it("a request of a query is denied at once if no approver can answer, and returned if the caller can", async () => {
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

  it("a query ends at once with a logged error when its Claude Code dies", async () => {
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

  it("a query sends its text as progress to a client that takes no log notifications", async () => {
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
