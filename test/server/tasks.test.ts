import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { overHttp, overStdio, type TaskClient } from "../kit/clients/tasks-client.ts";
import { useWorld } from "../kit/world.ts";

/** Tasks that are followed, answered and cancelled by the Tasks extension alone. */

const world = useWorld({ agent: "stand-in", daemon: "auto" });
let shared: HttpServer;
beforeAll(async () => {
  shared = await world.http();
});

const WAYS = {
  http: () => Promise.resolve(overHttp(shared)),
  stdio: async () => overStdio(await world.server({ client: "2026-07-28" })),
};

/** Fields of a task that Claude Code passes to its model. */
const AgentTask = z.looseObject({ "com.anthropic/agent-task": z.object({ modelImmediateResponse: z.string() }) });

const accept = (content: object) => ({ action: "accept", content });

describe.each(["http", "stdio"] as const)("a task over %s", (way) => {
  let client: TaskClient;
  beforeAll(async () => {
    client = await WAYS[way]();
  });

  it("a task exists at once, asks its person, takes the answer, and completes with the tool's result", async () => {
    const cwd = world.folder();
    const files = ["a", "b"].map((name) => join(cwd, name));
    const prompt = toolCalls(files.map(writeCall));
    // `waitMs` has no effect on a task, because the client polls.
    const { sessionId, task } = await client.begin("claude_code", { prompt, cwd, waitMs: 45_000 });
    expect(task).toMatchObject({ resultType: "task", status: "working", pollIntervalMs: 1_000, sessionId });
    const { modelImmediateResponse } = AgentTask.parse(task["_meta"])["com.anthropic/agent-task"];
    expect(JSON.parse(modelImmediateResponse)).toMatchObject({ sessionId, status: "running" });
    expect(task.ttlMs).toBe(30 * 86_400_000);
    const keys: string[] = [];
    for (const content of [{ decision: "allow" }, { decision: "deny" }, { message: "Not there, please." }]) {
      const asked = await client.until(task, "input_required");
      expect(asked).toMatchObject({ resultType: "complete", statusMessage: expect.stringContaining("waiting for a") });
      const [[key, form] = ["", undefined]] = Object.entries(asked.inputRequests ?? {});
      expect(form?.params.message).toMatch(/^(Denied\. .*\n)?Write [ab] \(1 line\)/);
      keys.push(key);
      const inputResponses = { [key]: accept(content) };
      const taken = await client.result("tasks/update", { taskId: task.taskId, inputResponses });
      expect(Object.keys(taken).filter((name) => name !== "_meta")).toEqual(["resultType"]);
    }
    const done = await client.until(task, "completed");
    expect(done).toMatchObject({ createdAt: task.createdAt, sessionId });
    expect(done.result?.structuredContent).toMatchObject({ sessionId, status: "idle", result: { result: "Over." } });
    expect(JSON.parse(done.result?.content[0]?.text ?? "")).toEqual(done.result?.structuredContent);
    expect(files.map((file) => existsSync(file))).toEqual([true, false]);
    expect(readFileSync(files[0]!, "utf8")).toBe("hello");
    expect(new Set(keys).size).toBe(3);
    expect(keys.every((key) => /^perm_./.test(key))).toBe(true);
    const whole = { action: "poll", sessionId, responseMode: "delta_compact", maxBytes: 262_144 };
    const told = JSON.stringify(await client.call("claude_code_check", whole));
    expect(told).toContain("Not there, please.");
    expect(told.match(/"by":"user"/g)).toHaveLength(2);
  });

  it("a cancelled task ends its turn, not its session; a reply is the next task, and the first is still reported", async () => {
    const cwd = world.folder();
    const begun = await client.begin("claude_code", { prompt: toolCalls([writeCall(join(cwd, "a"))]), cwd });
    await client.until(begun.task, "input_required");
    const { taskId } = begun.task;
    await client.result("tasks/cancel", { taskId });
    const cancelled = await client.until(begun.task, "cancelled");
    expect(cancelled.statusMessage).toContain("interrupted by caller");
    expect(cancelled.result).toBeUndefined();
    expect(cancelled.sessionId).toBe(begun.sessionId);
    const reply = { sessionId: begun.sessionId, prompt: scriptTag([{ text: "Back again." }]) };
    const { task } = await client.begin("claude_code_reply", reply);
    const done = await client.until(task, "completed");
    expect(done.result?.structuredContent).toMatchObject({ sessionId: begun.sessionId, result: { isError: false } });
    // A finished task never changes.
    for (const method of ["tasks/cancel", "tasks/update"]) {
      await client.result(method, { taskId, inputResponses: { perm_x: accept({ decision: "allow" }) } });
      await client.result(method, { taskId: task.taskId, inputResponses: {} });
    }
    expect(await client.get(begun.task)).toMatchObject({ ...cancelled, _meta: expect.anything() });
    expect((await client.get(task)).result).toEqual(done.result);
  });

  it("a task completes with the result of a turn that failed", async () => {
    const prompt = scriptTag([{ error: { status: 400, message: "No such thing.", times: 9 } }]);
    const { task } = await client.begin("claude_code", { prompt, cwd: world.folder() });
    const { result } = await client.until(task, "completed");
    expect(result?.structuredContent).toMatchObject({ status: "error", result: { isError: true } });
    expect(result?.structuredContent.result?.result).toContain("No such thing.");
  });

  it("no task is created if nothing was begun, nor for tools that only read", async () => {
    const refused = await client.call("claude_code", { prompt: "x", cwd: "/there/is/no/such/folder" });
    expect(refused).toMatchObject({ isError: true, resultType: "complete" });
    expect(refused["taskId"]).toBeUndefined();
    expect(await client.call("claude_code_session", { action: "list" })).toMatchObject({ resultType: "complete" });
  });
});
