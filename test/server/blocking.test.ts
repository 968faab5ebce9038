import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let caller: Server;
/** Lists `agent` as well, to poll and to answer. */
let watcher: Server;
/** Server with short answers and a client that stops reading at times. */
let slow: Server;
beforeAll(async () => {
  caller = await world.server({ args: ["--toolsets", "chat,query"] });
  watcher = await world.server({ args: ["--toolsets", "agent,query,chat,configure"], env: { IS_SANDBOX: "1" } });
  slow = await world.server({ args: ["--toolsets", "agent,query,chat", "--query", '{"maxBytes":16384}'] });
});

const CHAT = "claude_chat_query";
const say = (text: string) => scriptTag([{ text }]);

interface Row {
  status: string;
  queued: number;
  lastOutcome: string | null;
  processLive: boolean;
}

async function row(sessionId: string): Promise<Row> {
  const { sessions } = await watcher.call("claude_code_session", { action: "get", sessionId });
  return sessions[0] as unknown as Row;
}

async function openSession(server: Server, args: Record<string, unknown>): Promise<string> {
  return String((await stream(server, "claude_session_create", args)).data["sessionId"]);
}

/** Opens a conversation in which Claude Code begins a turn by itself after a shell ends, with `then` as the answer. */
async function beginOwnTurn(
  then: object,
  server = caller,
  args: object = {},
): Promise<{ sessionId: string; cwd: string }> {
  const cwd = world.folder();
  const command = `while [ ! -e ${cwd}/go ]; do sleep 0.05; done; echo finished`;
  const shell = { tools: [{ name: "Bash", input: { command, run_in_background: true } }] };
  const script = [shell, { text: "It runs." }, then, { text: "The shell has ended." }] as Parameters<
    typeof scriptTag
  >[0];
  const sessionId = await openSession(server, { cwd, ...args });
  await stream(server, CHAT, { sessionId, prompt: scriptTag(script) });
  writeFileSync(join(cwd, "go"), "");
  await expect.poll(async () => (await row(sessionId)).status, { timeout: 10_000 }).not.toBe("idle");
  return { sessionId, cwd };
}

async function waitUntilQueued(sessionId: string): Promise<void> {
  await expect.poll(async () => (await row(sessionId)).queued, { timeout: 10_000 }).toBe(1);
}

describe("a chat query behind a turn that Claude Code has begun by itself", () => {
  it.each(["interrupted", "killed"])(
    "a waiting chat query ends with CANCELLED when the turn before it is %s",
    async (how) => {
      const { sessionId } = await beginOwnTurn({ text: "x", gateBefore: `ends-${how}` });
      const blocked = stream(caller, CHAT, { sessionId, prompt: say("Mine.") });
      await waitUntilQueued(sessionId);
      if (how === "interrupted") await stream(watcher, "claude_chat_interrupt", { sessionId });
      else process.kill(world.processes().find(({ command }) => command.includes(sessionId))?.pid ?? NaN, "SIGKILL");
      world.model.release(`ends-${how}`);
      expect((await blocked).blocks[0]).toMatch(/^Error \[CANCELLED\]: .* was not run\. Send it again\.$/);
      expect(await row(sessionId)).toMatchObject({ status: how === "killed" ? "error" : "idle", queued: 0 });
    },
    20_000,
  );

  it("a cancelled chat query takes back its own prompt and nothing else", async () => {
    const { sessionId } = await beginOwnTurn({ text: "x", gateBefore: "taken-back" });
    const controller = new AbortController();
    const { signal } = controller;
    const blocked = stream(caller, CHAT, { sessionId, prompt: say("Mine.") }, { signal }).catch(() => "cancelled");
    await waitUntilQueued(sessionId);
    controller.abort();
    await blocked;
    await expect.poll(async () => (await row(sessionId)).queued, { timeout: 5_000 }).toBe(0);
    world.model.release("taken-back");
    await watcher.end(sessionId);
    expect(await row(sessionId)).toMatchObject({ lastOutcome: "done" });
  });

  it("a waiting chat query returns when its caller can answer an open request", async () => {
    const tools = [{ name: "Write", input: { file_path: "/tmp/never", content: "x" } }];
    const { sessionId } = await beginOwnTurn({ tools }, watcher);
    await expect.poll(async () => (await row(sessionId)).status, { timeout: 10_000 }).toBe("waiting_permission");
    const { data } = await stream(watcher, CHAT, { sessionId, prompt: say("Mine.") });
    expect(data).toMatchObject({ status: "waiting_permission", actions: [{ toolName: "Write" }] });
  }, 20_000);
});

it("a call that is cancelled after the end of its own turn leaves the turn of another caller alone", async () => {
  const long = { text: "x".repeat(100_000), tools: [{ name: "Read", input: { file_path: "/nowhere" } }] };
  const prompt = scriptTag([...Array.from({ length: 12 }, () => long), { text: "done" }]);
  const controller = new AbortController();
  let hear: (id: string) => void = () => undefined;
  const first = new Promise<string>((resolve) => (hear = resolve));
  const onLog = ({ data }: { data: unknown }) => hear((JSON.parse(String(data)) as { sessionId: string }).sessionId);
  const args = { prompt, cwd: world.folder() };
  stream(slow, "claude_code_query", args, { signal: controller.signal, onLog }).catch(() => undefined);
  const sessionId = await first;
  const { stdout } = Reflect.get(slow.transport, "_process") as { stdout: NodeJS.ReadableStream };
  stdout.pause();
  await watcher.end(sessionId);
  await watcher.call("claude_code_reply", {
    sessionId,
    prompt: scriptTag([{ text: "Theirs.", gateBefore: "theirs" }]),
    waitMs: 0,
  });
  await world.model.waitForRequest(({ lastUserText }) => lastUserText.includes("theirs"));
  controller.abort();
  stdout.resume();
  // Waits for all effects of the cancellation: a later call is answered after them.
  await slow.client.listTools();
  expect(await row(sessionId)).toMatchObject({ status: "running" });
  world.model.release("theirs");
  expect(await watcher.end(sessionId)).toMatchObject({ result: { result: "Theirs.", isError: false } });
});

it.each([
  ["claude_direct_query", () => watcher],
  ["claude_code_query", () => slow],
])("%s shows the input of a request whole or marked as cut, and the mark is never written", async (tool, on) => {
  const server = on();
  const cwd = world.folder();
  writeFileSync(join(cwd, "big.txt"), "line of text here\n".repeat(400));
  const reads = Array.from({ length: 12 }, () => ({ name: "Read", input: { file_path: join(cwd, "big.txt") } }));
  const content = "y".repeat(tool === "claude_direct_query" ? 8_000 : 3_500);
  const write = { name: "Write", input: { file_path: join(cwd, "out.txt"), content } };
  const prompt = scriptTag([{ tools: reads }, { tools: [write] }, { text: "End." }]);
  const mode = tool === "claude_code_query" ? { permissionMode: "default" } : {};
  const { data } = await stream(server, tool, { cwd, prompt, ...mode });
  const [action] = data["actions"] as { requestId: string; input: object; inputTruncated?: boolean }[];
  const isWhole = JSON.stringify(action?.input) === JSON.stringify(write.input);
  const updatedInput = action?.input;
  const { sessionId } = data;
  const answer = { action: "respond_permission", sessionId, requestId: action?.requestId, decision: "allow" };
  await server
    .call("claude_code_check", { ...answer, permissionOptions: { updatedInput }, until: "end" })
    .catch(() => undefined);
  const written = existsSync(join(cwd, "out.txt")) ? readFileSync(join(cwd, "out.txt"), "utf8") : "";
  expect({ told: isWhole || action?.inputTruncated === true, mark: written.includes("[cut") }).toEqual({
    told: true,
    mark: false,
  });
});

it("a cancelled query ends its process", async () => {
  const controller = new AbortController();
  let hear: (id: string) => void = () => undefined;
  const first = new Promise<string>((resolve) => (hear = resolve));
  const onLog = ({ data }: { data: unknown }) => hear((JSON.parse(String(data)) as { sessionId: string }).sessionId);
  const prompt = scriptTag([{ text: "x", gateBefore: "never-1" }]);
  const args = { prompt, cwd: world.folder() };
  stream(caller, "claude_code_query", args, { signal: controller.signal, onLog }).catch(() => undefined);
  const sessionId = await first;
  controller.abort();
  await expect.poll(async () => (await row(sessionId)).status, { timeout: 10_000 }).toBe("idle");
  await expect.poll(async () => (await row(sessionId)).processLive, { timeout: 5_000 }).toBe(false);
});

it("a cancelled `claude_session_create` leaves no process and no session", async () => {
  const list = async () => (await watcher.call("claude_code_session", { action: "list" })).sessions;
  const before = (await list()).map(({ sessionId }) => sessionId);
  const controller = new AbortController();
  const args = { cwd: world.folder() };
  // Never gets ready, so that the call cannot end before its cancellation.
  const silent = join(world.folder(), "silent-claude");
  const script = '#!/bin/sh\n[ "$1" = --version ] && echo "2.1.332 (Claude Code)" && exit\nexec sleep 600\n';
  writeFileSync(silent, script, { mode: 0o755 });
  const server = await world.server({ args: ["--toolsets", "chat"], env: { CLAUDE_CODE_MCP_CLAUDE_PATH: silent } });
  const creating = stream(server, "claude_session_create", args, { signal: controller.signal }).catch(() => undefined);
  const own = async () => (await list()).filter(({ sessionId }) => !before.includes(sessionId));
  await expect.poll(own).toHaveLength(1);
  controller.abort();
  await creating;
  await expect.poll(own).toEqual([]);
  await expect.poll(() => world.processes().filter(({ command }) => command.includes("sleep 600"))).toEqual([]);
});

it("an approver has its full time in a session that a server without `agent` has started", async () => {
  const cwd = world.folder();
  const sessionId = await openSession(caller, { cwd });
  await stream(caller, CHAT, { sessionId, prompt: say("hi") });
  const tools = [{ name: "Write", input: { file_path: join(cwd, "a"), content: "x" } }];
  const { data } = await stream(watcher, CHAT, { sessionId, prompt: scriptTag([{ tools }, { text: "ok" }]) });
  const [action] = data["actions"] as { remainingMs: number }[];
  expect(action?.remainingMs).toBeGreaterThan(10_000);
});

it("an interrupted query returns its partial result", async () => {
  const cwd = world.folder();
  const sessionId = await openSession(caller, { cwd });
  const read = { text: "I begin.", tools: [{ name: "Read", input: { file_path: join(cwd, "none") } }] };
  const prompt = scriptTag([read, { text: "x", gateBefore: "never-2" }]);
  const onLog = ({ data }: { data: unknown }) => {
    if (data === "I begin.") void stream(watcher, "claude_chat_interrupt", { sessionId });
  };
  const { data } = await stream(caller, CHAT, { sessionId, prompt }, { onLog });
  expect(data).toMatchObject({ status: "interrupted", finalText: "I begin." });
});

it("a lost turn that was resumed is reported with its real end, however slowly its caller reads", async () => {
  const start = { cwd: world.folder(), prompt: say("hi"), allowedTools: ["Bash"], waitMs: 20_000 };
  const { sessionId } = await slow.call("claude_code", { ...start, advanced: { onLost: "resume" } });
  const { stdout } = Reflect.get(slow.transport, "_process") as { stdout: NodeJS.ReadableStream };
  const long = { text: "x".repeat(200_000), tools: [{ name: "Bash", input: { command: "echo" } }] };
  const script = [...Array.from({ length: 8 }, () => long), { text: "Finished.", gateBefore: "last-of-slow" }];
  let paused = false;
  const onLog = () => {
    if (!paused) stdout.pause();
    paused = true;
  };
  const blocked = stream(slow, CHAT, { sessionId, prompt: scriptTag(script) }, { onLog });
  const isLast = () =>
    world.model.requests.some(
      (each) => each.sessionId === sessionId && JSON.stringify(each.served).includes('"entry":8'),
    );
  await expect.poll(isLast, { timeout: 20_000 }).toBe(true);
  process.kill(world.processes().find(({ command }) => command.includes(sessionId))?.pid ?? NaN, "SIGKILL");
  world.model.release("last-of-slow");
  await expect.poll(async () => (await row(sessionId)).status, { timeout: 20_000 }).toBe("idle");
  stdout.resume();
  expect((await blocked).data).toMatchObject({ status: "done", finalText: "Finished." });
});
