import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { overHttp, overStdio, type Task, type TaskClient } from "../kit/clients/tasks-client.ts";
import { useWorld } from "../kit/world.ts";

/** Queries as tasks: the answers of the tools, without their clients. */

const world = useWorld({ agent: "stand-in", daemon: "auto" });
const TOOLSETS = ["--toolsets", "agent,query,chat"];
let server: HttpServer;
let store: string;
let auditLog: string;
let client: TaskClient;
beforeAll(async () => {
  store = join(world.folder(), "store.db");
  auditLog = join(world.folder(), "audit.jsonl");
  await start();
});

async function start(): Promise<void> {
  server = await world.http({ args: [...TOOLSETS, "--store", store, "--audit-log", auditLog] });
  client = overHttp(server);
}

type Fields = Record<string, unknown>;
const contentOf = (answer: unknown) => (answer as { structuredContent: Fields }).structuredContent;
const resultOf = ({ result }: Task): Fields => ({ ...result?.structuredContent });
const auditOf = (sessionId: string): Fields[] =>
  readFileSync(auditLog, "utf8")
    .trim()
    .split("\n")
    .map((each) => JSON.parse(each) as Fields)
    .filter((each) => each["sessionId"] === sessionId && each["tool"] !== "claude_session_create");
const statusOf = async (sessionId: string) => {
  const got = contentOf(await client.call("claude_code_session", { action: "get", sessionId }));
  return (got["sessions"] as { status: string }[])[0]?.status;
};

/** Arguments of each tool, a new conversation for `claude_chat_query`. */
const QUERIES: Record<string, (prompt: string, at?: TaskClient) => Promise<object>> = {
  claude_code_query: async (prompt) =>
    Promise.resolve({ prompt, cwd: world.folder(), maxMessages: 2, permissionMode: "default" }),
  claude_direct_query: async (prompt) => Promise.resolve({ prompt, cwd: world.folder(), includeThinking: true }),
  claude_chat_query: async (prompt, at = client) => {
    const opened = contentOf(await at.call("claude_session_create", { cwd: world.folder() }));
    return { prompt, sessionId: opened["sessionId"], closeAfter: true };
  },
};

describe.each(Object.entries(QUERIES))("`%s` as a task", (tool, argsOf) => {
  const script = scriptTag([{ thinking: "Hm.", text: "Done." }]);

  it("the task begins without a word of polling, and its result has the fields of the plain answer", async () => {
    const plain = await client.declaring({ elicitation: { form: {} } }).call(tool, await argsOf(script));
    const { sessionId, task } = await client.begin(tool, await argsOf(script));
    expect(task).toMatchObject({ resultType: "task", status: "working" });
    const said = JSON.stringify(task["_meta"]);
    expect(said).toContain("the result comes by itself, as a notification. Requests are shown to the user in a form.");
    expect(said).not.toMatch(/poll/i);
    const done = await client.until(task, "completed");
    const answer = contentOf(plain);
    expect(Object.keys(resultOf(done)).toSorted()).toEqual(Object.keys(answer).toSorted());
    const alike = ({ finalText, omitted, permissionMode, status, totalMessages }: Fields) => {
      return { finalText, omitted, permissionMode, status, totalMessages };
    };
    expect(alike(resultOf(done))).toEqual(alike(answer));
    expect(done.result?.content.length).toBe((plain["content"] as unknown[]).length);
    expect(JSON.stringify(done.result)).toContain("Done.");
    await expect.poll(() => auditOf(sessionId).map(({ outcome }) => outcome)).toEqual(["begun", "ok"]);
    const last = tool === "claude_code_query" ? "idle" : "closed";
    await expect.poll(async () => statusOf(sessionId)).toBe(last);
  });

  it("a task that fails has the failure as its result", async () => {
    const failing = scriptTag([{ error: { status: 400, message: "No such thing.", times: 9 } }]);
    const { sessionId, task } = await client.begin(tool, await argsOf(failing));
    const done = await client.until(task, "completed");
    expect(JSON.stringify(resultOf(done))).toContain("No such thing.");
    expect(done.result?.["isError"] ?? false).toBe(tool !== "claude_code_query");
    await expect.poll(() => auditOf(sessionId).at(-1)?.["outcome"]).toBe("failed");
  });

  it("a task asks its user in a form, and a cancelled one ends its turn", async () => {
    const file = join(world.folder(), "asked");
    const { task } = await client.begin(tool, await argsOf(toolCalls([writeCall(file)])));
    const { inputRequests = {} } = await client.until(task, "input_required");
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: "accept", content: { decision: "allow" } }]),
    );
    await client.result("tasks/update", { taskId: task.taskId, inputResponses });
    await client.until(task, "completed");
    expect(existsSync(file)).toBe(true);
    const held = await client.begin(tool, await argsOf(scriptTag([{ text: "Never.", gateBefore: `never ${tool}` }])));
    await client.result("tasks/cancel", { taskId: held.task.taskId });
    expect((await client.until(held.task, "cancelled")).statusMessage).toContain("interrupted by caller");
  });

  it("a client that leaves does not end the turn, and the next client has the result", async () => {
    const first = await world.server({ client: "2026-07-28", args: TOOLSETS });
    const gate = `left ${tool}`;
    const own = overStdio(first);
    const begun = await own.begin(tool, await argsOf(scriptTag([{ text: "Kept.", gateBefore: gate }]), own));
    await world.model.waitForRequest(({ lastUserText }) => lastUserText.includes(gate));
    await first.close();
    world.model.release(gate);
    const second = await world.server({ client: "2026-07-28", args: TOOLSETS });
    const done = await overStdio(second).until(begun.task, "completed");
    expect(JSON.stringify(resultOf(done))).toContain("Kept.");
    await second.close();
  });
});

/** Begins a task that closes its session, and ends it at a server after the killed one. */
async function beginAndKill(gate: string): Promise<Awaited<ReturnType<TaskClient["begin"]>>> {
  const prompt = scriptTag([{ text: "Late.", gateBefore: gate }]);
  const begun = await client.begin("claude_direct_query", { prompt, cwd: world.folder() });
  await world.model.waitForRequest(({ lastUserText }) => lastUserText.includes(gate));
  server.signal("SIGKILL");
  await server.exited;
  world.model.release(gate);
  await start();
  return begun;
}

it("a session to be closed after its task is closed although the server was killed before", async () => {
  const { sessionId, task } = await beginAndKill("killed");
  const { statusMessage } = await client.until(task, "completed");
  expect(statusMessage).not.toBe("");
  await expect.poll(async () => statusOf(sessionId)).toBe("closed");
});

it("a session that was used after its task stays open when the result of the task is read", async () => {
  const { sessionId, task } = await beginAndKill("used");
  await expect.poll(async () => statusOf(sessionId)).not.toBe("running");
  const more = { sessionId, prompt: scriptTag([{ text: "More." }]), waitMs: 20_000 };
  expect(contentOf(await client.declaring({}).call("claude_code_reply", more))).toMatchObject({ status: "idle" });
  await client.until(task, "completed");
  expect(await statusOf(sessionId)).toBe("idle");
});
