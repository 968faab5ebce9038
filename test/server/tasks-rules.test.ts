import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { overHttp, type TaskClient } from "../kit/clients/tasks-client.ts";
import { useWorld } from "../kit/world.ts";

/** Access to tasks, scopes of their actions, and tasks that do not run or do not end. */

const ALL = { scopes: ["read", "run", "approve"] };
const { args: PRINCIPALS, tokens } = namedUsers({
  ada: ALL,
  bob: ALL,
  eve: { scopes: ["read", "run"] },
  joe: { scopes: ["read"] },
});

const world = useWorld({ agent: "stand-in" });
let server: HttpServer;
let store: string;
let auditLog: string;
let ada: TaskClient;
beforeAll(async () => {
  store = join(world.folder(), "store.db");
  auditLog = join(world.folder(), "audit.jsonl");
  server = await start();
  ada = overHttp(server, tokens.ada);
});

const start = async (...args: string[]) =>
  world.http({ args: [...PRINCIPALS, "--store", store, "--audit-log", auditLog, ...args] });

const METHODS = ["tasks/get", "tasks/update", "tasks/cancel"];
const MISSING = -32_021;
const INVALID = -32_602;

/** Starts a turn that asks to write `file`. */
async function askToWrite(client: TaskClient) {
  const cwd = world.folder();
  const file = join(cwd, "a");
  const begun = await client.begin("claude_code", { prompt: toolCalls([writeCall(file)]), cwd });
  const asked = await client.until(begun.task, "input_required");
  const [key = ""] = Object.keys(asked.inputRequests ?? {});
  const answer = (content: object) => ({
    taskId: begun.task.taskId,
    inputResponses: { [key]: { action: "accept", content } },
  });
  return { ...begun, asked, file, answer };
}

describe("access to tasks, and their end", () => {
  it("a task of another user looks like a missing task, and takes no action", async () => {
    const { answer, file, task } = await askToWrite(ada);
    const bob = overHttp(server, tokens.bob);
    const [session = "", event, prompt = ""] = task.taskId.split(".");
    const other = "00000000-0000-4000-8000-000000000000";
    const wrong = [
      [session, event, other],
      [other, event, prompt],
      [session, "2", prompt],
      [session, "01", prompt],
      [session, "999999", prompt],
      [`${session}'`, event, prompt],
    ].map((parts) => parts.join("."));
    for (const method of METHODS) {
      const refusals = [await bob.refusal(method, answer({ decision: "allow" }))];
      for (const taskId of [...wrong, "x", "x".repeat(5_000)]) refusals.push(await ada.refusal(method, { taskId }));
      expect(new Set(refusals.map(({ code, message }) => `${String(code)} ${message}`)).size).toBe(1);
      expect(refusals[0]).toMatchObject({ code: INVALID, message: expect.stringContaining("there is no such task") });
    }
    expect(existsSync(file)).toBe(false);
    expect(await ada.get(task)).toMatchObject({ status: "input_required" });
    await ada.result("tasks/cancel", { taskId: task.taskId });
  });

  it("no task is created for clients that do not declare tasks, nor for clients of the earlier era", async () => {
    const without = ada.declaring({ elicitation: {} });
    for (const method of METHODS) {
      for (const params of [{}, { taskId: "x" }]) {
        expect(await without.refusal(method, params)).toMatchObject({
          code: MISSING,
          data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
        });
      }
    }
    const prompt = scriptTag([{ text: "At once." }]);
    const called = await without.call("claude_code", { prompt, cwd: world.folder() });
    expect(called).toMatchObject({ resultType: "complete", structuredContent: { status: "running" } });
    expect(called["taskId"]).toBeUndefined();
    const { client } = await server.connect("legacy", tokens.ada);
    if (!(client instanceof Client)) throw new Error("not the client that was meant");
    expect(client.getServerCapabilities()?.extensions).not.toHaveProperty(["io.modelcontextprotocol/tasks"]);
  });

  it("each action of a task needs a scope, and done and refused actions are audited", async () => {
    const { answer, file, sessionId, task } = await askToWrite(ada);
    const { taskId } = task;
    const refused = async (token: string, method: string, params: object) => {
      expect(await overHttp(server, token).refusal(method, params)).toMatchObject({
        code: INVALID,
        message: expect.stringContaining("PERMISSION_DENIED"),
      });
    };
    await refused(tokens.eve, "tasks/update", answer({ decision: "allow" }));
    await refused(tokens.joe, "tasks/cancel", { taskId });
    // A caller without the scope `approve` is not asked.
    const eve = overHttp(server, tokens.eve);
    const own = await eve.begin("claude_code", { prompt: toolCalls([writeCall(file)]), cwd: world.folder() });
    const { events } = await (await server.connect("modern", tokens.eve)).news(own.sessionId);
    expect(JSON.stringify(events)).not.toContain('"by":"user"');
    expect((await eve.get(own.task)).status).not.toBe("input_required");
    await eve.result("tasks/cancel", { taskId: own.task.taskId });
    await ada.result("tasks/update", answer({ decision: "allow" }));
    await ada.until(task, "completed");
    expect(existsSync(file)).toBe(true);
    const lines = readFileSync(auditLog, "utf8").trim().split("\n");
    const noted = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const about = (principal: string, tool: string) =>
      noted.filter((each) => each["principal"] === principal && each["tool"] === tool);
    expect(about("ada", "tasks/update").at(-1)).toMatchObject({ sessionId, outcome: "ok" });
    expect(about("eve", "tasks/update")).toMatchObject([{ outcome: "PERMISSION_DENIED" }]);
    expect(about("joe", "tasks/cancel")).toMatchObject([{ outcome: "PERMISSION_DENIED" }]);
    expect(about("ada", "tasks/get").every(({ outcome }) => outcome !== "ok")).toBe(true);
  });

  it("a task refuses an invalid answer, stays open under the same key, and goes on when the form is closed", async () => {
    const { answer, asked, file, task } = await askToWrite(ada);
    const unclear = await ada.refusal("tasks/update", answer({ decision: "perhaps" }));
    expect(unclear).toMatchObject({ code: INVALID, message: expect.stringContaining("not a complete answer") });
    const again = await ada.until(task, "input_required");
    expect(Object.keys(again.inputRequests ?? {})).toEqual(Object.keys(asked.inputRequests ?? {}));
    const [key = ""] = Object.keys(asked.inputRequests ?? {});
    await ada.result("tasks/update", { taskId: task.taskId, inputResponses: { [key]: { action: "cancel" } } });
    // The request has passed to the next approver, the calling model.
    const left = await ada.get(task);
    expect(left).toMatchObject({ status: "working", statusMessage: expect.stringContaining("waiting for a decision") });
    const model = await server.connect("modern", tokens.ada);
    const [sessionId = ""] = task.taskId.split(".");
    const { actions } = await model.news(sessionId);
    const allow = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    await model.call("claude_code_check", { ...allow, waitMs: 0 });
    await ada.until(task, "completed");
    expect(existsSync(file)).toBe(true);
  });

  it("a task waits in the queue and is dropped from there, without effect on the running turn", async () => {
    const { answer, sessionId, task } = await askToWrite(ada);
    const queued = { sessionId, prompt: scriptTag([{ text: "Later." }]), whenBusy: "queue" };
    const [one, two] = [await ada.begin("claude_code_reply", queued), await ada.begin("claude_code_reply", queued)];
    expect(await ada.get(one.task)).toMatchObject({
      status: "working",
      statusMessage: "Waits for the current turn.",
    });
    expect((await ada.get(two.task)).statusMessage).toBe("Waits for the current turn and 1 more.");
    await ada.result("tasks/cancel", { taskId: two.task.taskId });
    expect(await ada.get(two.task)).toMatchObject({
      status: "cancelled",
      statusMessage: expect.stringContaining("not run"),
    });
    // A request of a turn appears in the task of that turn only.
    await ada.result("tasks/update", { ...answer({ decision: "allow" }), taskId: one.task.taskId });
    expect(await ada.get(task)).toMatchObject({ status: "input_required" });
    await ada.result("tasks/update", answer({ decision: "allow" }));
    expect((await ada.until(one.task, "completed")).result?.structuredContent.result?.result).toBe("Later.");
    const first = await ada.get(task);
    expect(first.result?.structuredContent.result?.result).toBe("Over.");
  });

  it("a task of a steering prompt ends with the joined turn; a task of a cancelled session is cancelled", async () => {
    const { answer, sessionId, task } = await askToWrite(ada);
    const steering = { sessionId, prompt: "Make haste.", whenBusy: "steer" };
    const joined = await ada.begin("claude_code_reply", steering);
    expect(joined.task.taskId).not.toBe(task.taskId);
    expect(await ada.get(joined.task)).toMatchObject({ status: "input_required" });
    await ada.result("tasks/update", answer({ decision: "allow" }));
    const done = await ada.until(joined.task, "completed");
    expect(done.result).toEqual((await ada.until(task, "completed")).result);
    const next = await askToWrite(ada);
    const model = await server.connect("modern", tokens.ada);
    await model.call("claude_code_session", { action: "cancel", sessionId: next.sessionId });
    expect(await ada.get(next.task)).toMatchObject({ status: "cancelled" });
  });

  it("a task is reported by the next server, with its result or the fact that the restart ended it", async () => {
    const done = await ada.begin("claude_code", { prompt: scriptTag([{ text: "Done." }]), cwd: world.folder() });
    const { result } = await ada.until(done.task, "completed");
    const { task } = await askToWrite(ada);
    await server.close();
    server = await start();
    ada = overHttp(server, tokens.ada);
    expect((await ada.get(done.task)).result).toEqual(result);
    const ended = await ada.get(task);
    expect(ended).toMatchObject({ status: "completed", createdAt: task.createdAt });
    expect(ended.result?.structuredContent.result).toMatchObject({ isError: true, errorSubtype: "shutdown" });
  });
});
