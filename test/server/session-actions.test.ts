import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let server: Server;
/** Another server on the store: actions at `other` have to reach the owner. */
let other: Server;
/** Server with every permission that an operator can give. */
let open: Server;
beforeAll(async () => {
  const env = { IS_SANDBOX: "1", CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: "1" };
  [server, other] = await Promise.all([world.server(), world.server()]);
  open = await world.server({ args: ["--allow-bypass"], env });
});

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

async function start(prompt: string, over: Record<string, unknown> = {}) {
  const cwd = world.folder();
  const { sessionId } = await server.call("claude_code", { prompt, cwd, waitMs: 40_000, ...over });
  return { sessionId, cwd };
}

async function act(action: string, args: Record<string, unknown>, by = other) {
  return by.call("claude_code_session", { action, ...args });
}

function lastRequest(sessionId: string) {
  return world.model.requests.findLast((request) => request.sessionId === sessionId && request.stream);
}

describe("`action` of `claude_code_session`, through a server that does not own the session", () => {
  it("set_model: the next request to the model names `model`", async () => {
    const { sessionId } = await start(say("one"));
    expect(lastRequest(sessionId)?.model).toContain("opus");
    const told = await act("set_model", { sessionId, model: "haiku" });
    expect(told.sessions).toMatchObject([{ requested: { model: "haiku" } }]);
    await server.call("claude_code_reply", { sessionId, prompt: say("two"), waitMs: 40_000 });
    expect(lastRequest(sessionId)?.model).toContain("haiku");
  });

  it("set_model: the choice holds for later processes", async () => {
    const { sessionId } = await start(say("one"));
    await act("set_model", { sessionId, model: "haiku" });
    const processes = world.processes().filter(({ command }) => command.includes(sessionId));
    for (const { pid } of processes) process.kill(pid, "SIGKILL");
    await untilIdle(sessionId);
    await server.call("claude_code_reply", { sessionId, prompt: say("two"), waitMs: 40_000 });
    expect(lastRequest(sessionId)?.model).toContain("haiku");
  });

  it("set_permission_mode: `permissionMode` decides which tools ask from then on", async () => {
    const { cwd, sessionId } = await start(say("one"));
    await act("set_permission_mode", { sessionId, permissionMode: "acceptEdits" });
    const file = join(cwd, "a.txt");
    const write = scriptTag([{ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] }, { text: "ok" }]);
    const done = await server.call("claude_code_reply", { sessionId, prompt: write, waitMs: 40_000 });
    expect(done.status).toBe("idle");
    expect(existsSync(file)).toBe(true);
    const { sessions } = await act("get", { sessionId });
    expect(sessions).toMatchObject([{ permissionMode: "acceptEdits" }]);
  });

  it("set_permission_mode: bypassPermissions needs the operator's gate and a process of its own", async () => {
    const { sessionId } = await start(say("one"));
    const closed = { action: "set_permission_mode", sessionId, permissionMode: "bypassPermissions" };
    expect(await other.refusal("claude_code_session", closed)).toMatchObject({ code: "PERMISSION_DENIED" });

    const cwd = world.folder();
    const begun = await open.call("claude_code", { prompt: say("one"), cwd, waitMs: 40_000 });
    await act("set_permission_mode", { sessionId: begun.sessionId, permissionMode: "bypassPermissions" }, open);
    const input = { command: "node -e 0 && touch done" };
    const run = scriptTag([{ tools: [{ name: "Bash", input }] }, { text: "ok" }]);
    const done = await open.call("claude_code_reply", { sessionId: begun.sessionId, prompt: run, waitMs: 40_000 });
    expect(done.status).toBe("idle");
    expect(existsSync(join(cwd, "done"))).toBe(true);
  });

  it("interrupt: the turn of `sessionId` ends, and the session goes on", async () => {
    const never = scriptTag([{ gateBefore: `never-${world.folder()}`, text: "x" }]);
    const { sessionId } = await start(never, { waitMs: 0 });
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    await act("interrupt", { sessionId });
    expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
    const next = await server.call("claude_code_reply", { sessionId, prompt: say("on"), waitMs: 40_000 });
    expect(next.result?.result).toBe("on");
  });

  it("stop_task and task_output stop and read a background shell by `taskId`", async () => {
    const input = { command: "echo begun; while :; do sleep 0.1; done", run_in_background: true };
    const script = [{ tools: [{ name: "Bash", input }] }, { text: "It runs." }, { text: "It has ended." }];
    const { sessionId } = await start(scriptTag(script), { allowedTools: ["Bash"] });
    const { sessions } = await act("get", { sessionId });
    const tasks = z.array(z.looseObject({ id: z.string() })).parse(sessions[0]?.["background"]);
    const taskId = tasks[0]?.id ?? "";
    await expect.poll(async () => JSON.stringify(await act("task_output", { sessionId, taskId }))).toContain("begun");
    const unknown = { action: "stop_task", sessionId, taskId: "nope" };
    expect((await other.refusal("claude_code_session", unknown)).text).toContain(taskId);
    await act("stop_task", { sessionId, taskId });
    await expect.poll(async () => (await act("get", { sessionId })).sessions[0]?.["background"]).toBe(undefined);
    await expect.poll(() => world.processes().some(({ command }) => command.includes("while :"))).toBe(false);
  });

  it("usage reports the use of the context, and the cost", async () => {
    const { sessionId } = await start(say("one"));
    const { usage } = (await act("usage", { sessionId })) as unknown as { usage: Record<string, number> };
    expect(usage).toMatchObject({ totalTurns: 1, context: { maxTokens: expect.any(Number) } });
    expect(usage["costUsd"]).toBeCloseTo(usage["totalCostUsd"] ?? -1, 8);
    expect(usage["costUsd"]).toBeGreaterThan(0);
  });

  it("rewind restores files as before the last prompt or `promptId`; `dryRun` only previews", async () => {
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    writeFileSync(file, "before\n");
    const script = [
      { tools: [{ name: "Read", input: { file_path: file } }] },
      { tools: [{ name: "Write", input: { file_path: file, content: "after\n" } }] },
      { text: "Changed." },
    ];
    const options = { cwd, permissionMode: "acceptEdits", advanced: { enableFileCheckpointing: true } };
    const { sessionId } = await start(scriptTag(script), options);
    expect(readFileSync(file, "utf8")).toBe("after\n");

    expect(await act("rewind", { sessionId, dryRun: true })).toMatchObject({
      rewound: { dryRun: true, filesChanged: [file] },
    });
    expect(readFileSync(file, "utf8")).toBe("after\n");
    await act("rewind", { sessionId });
    expect(readFileSync(file, "utf8")).toBe("before\n");
    const unknown = { action: "rewind", sessionId, promptId: "00000000-0000-4000-8000-000000000000" };
    expect(await server.refusal("claude_code_session", unknown)).toMatchObject({ code: "INVALID_ARGUMENT" });

    const plain = await start(say("one"));
    const refused = await server.refusal("claude_code_session", { action: "rewind", sessionId: plain.sessionId });
    expect(refused.text).toContain("enableFileCheckpointing");
  });

  it("diff shows the session's edits, and the git state of its folder", async () => {
    const cwd = world.folder();
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", cwd, ...args], { env: { ...process.env, ...AUTHOR } });
    const [old, fresh] = [join(cwd, "old.txt"), join(cwd, "fresh.txt")];
    writeFileSync(old, "one\ntwo\n");
    git("init", "-q");
    git("add", ".");
    git("commit", "-qm", "begin");
    const script = [
      { tools: [{ name: "Read", input: { file_path: old } }] },
      { tools: [{ name: "Edit", input: { file_path: old, old_string: "two", new_string: "2" } }] },
      { tools: [{ name: "Write", input: { file_path: fresh, content: "new\n" } }] },
      { text: "Done." },
    ];
    const { sessionId } = await start(scriptTag(script), { cwd, permissionMode: "acceptEdits" });
    const told = (await act("diff", { sessionId })) as unknown as Record<string, unknown>;
    expect(told).toMatchObject({
      files: [
        { path: old, edits: 1, patch: expect.stringContaining("-two\n+2") },
        { path: fresh, edits: 1, patch: expect.stringContaining("+new") },
      ],
      git: { diff: expect.stringContaining("+2"), untracked: ["fresh.txt"] },
    });
  });

  it("rename, close and delete set a searchable `title`, end the session, and leave nothing", async () => {
    const { sessionId } = await start(say("one"));
    await act("rename", { sessionId, title: "My only session" });
    const found = await act("list", { text: "my only", includeSensitive: true }, open);
    expect(found.sessions).toMatchObject([{ sessionId, title: "My only session" }]);

    await act("close", { sessionId });
    const prompt = { sessionId, prompt: say("x") };
    expect(await server.refusal("claude_code_reply", prompt)).toMatchObject({ code: "CANCELLED" });
    await act("delete", { sessionId });
    const gone = { action: "get", sessionId };
    expect(await server.refusal("claude_code_session", gone)).toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  it("delete is refused while a turn runs", async () => {
    const never = scriptTag([{ gateBefore: `never-${world.folder()}`, text: "x" }]);
    const { sessionId } = await start(never, { waitMs: 0 });
    const refused = await other.refusal("claude_code_session", { action: "delete", sessionId });
    expect(refused).toMatchObject({ code: "SESSION_BUSY" });
    await act("cancel", { sessionId });
    await act("delete", { sessionId });
    expect(await server.refusal("claude_code_session", { action: "get", sessionId })).toMatchObject({
      code: "SESSION_NOT_FOUND",
    });
  });
});

const AUTHOR = {
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.org",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.org",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

async function untilIdle(sessionId: string): Promise<void> {
  await expect
    .poll(async () => (await act("get", { sessionId })).sessions[0]?.["processLive"], { timeout: 10_000 })
    .toBe(false);
}
