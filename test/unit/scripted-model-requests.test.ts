import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { startScriptedModel, type ScriptedModel } from "../../src/demo/model/server.ts";

/** Requests of Claude Code beside conversations, and `waitForRequest`. */

let model: ScriptedModel;
beforeEach(async () => (model = await startScriptedModel()));
afterEach(async () => model.close());

const CLOSED = "the scripted model was closed while a request was waited for";
const Answer = z.looseObject({ error: z.looseObject({ type: z.string(), message: z.string() }).optional() });

async function call(path: string, body?: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${model.url}${path}`, {
    headers,
    ...(body !== undefined && { method: "POST", body: text }),
  });
  return { status: response.status, answer: Answer.parse(await response.json()) };
}

const ask = (more: object) => ({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }], ...more });

it.each([
  ["/", undefined, { scripted: true }],
  ["/v1/messages/count_tokens?beta=true", "12345678", { input_tokens: 2 }],
  ["/v1/models", undefined, { data: expect.any(Array) as unknown }],
  ["/v1/messages", ask({ max_tokens: 1 }), { content: [{ text: "Hello" }] }],
  [
    "/v1/messages",
    ask({ output_config: { format: { type: "json_schema" } } }),
    { content: [{ text: '{"title":"Scripted session"}' }] },
  ],
  ["/v1/messages", ask({}), { content: [{ text: "The prompt has no model script." }] }],
])("a request to %s with the body %j is answered", async (path, body, expected) => {
  expect(await call(path, body)).toMatchObject({ status: 200, answer: expected });
});

it.each([
  ["/v1/nothing", undefined, 404, "is not served by the scripted model"],
  ["/v1/messages", "{", 400, "The request is not valid"],
  ["/v1/messages", { model: "m" }, 400, "The request is not valid"],
  [
    "/v1/messages",
    ask({ messages: [{ role: "user", content: "<model-script>[</model-script>" }] }),
    400,
    "is not JSON",
  ],
  [
    "/v1/messages",
    ask({ messages: [{ role: "user", content: "<model-script>{}</model-script>" }] }),
    400,
    "is not valid",
  ],
  ["/v1/messages", "x".repeat(33 * 1024 * 1024), 413, "longer than 32 MiB"],
])("a request to %s with a wrong path or body is refused", async (path, body, status, message) => {
  const refused = await call(path, body);
  expect([refused.status, refused.answer.error?.message]).toEqual([
    status,
    expect.stringContaining(message) as unknown,
  ]);
});

it("the session is read from the header, otherwise from the metadata", async () => {
  const metadata = (userId: string) => ask({ max_tokens: 1, metadata: { user_id: userId } });
  await call("/v1/messages", metadata('{"session_id":"of metadata"}'), { "x-claude-code-session-id": "of header" });
  await call("/v1/messages", metadata('{"session_id":"of metadata"}'), { "anthropic-beta": "a, b," });
  await call("/v1/messages", metadata("{"));
  await call("/v1/messages", metadata("user_1"));
  expect(model.requests.map(({ sessionId }) => sessionId)).toEqual(["of header", "of metadata", undefined, undefined]);
  expect(model.requests.map(({ betas }) => betas)).toEqual([[], ["a", "b"], [], []]);
});

describe("a wait for a request", () => {
  it("`waitForRequest` resolves at once if the request has come, otherwise when it comes", async () => {
    const second = model.waitForRequest(({ seq }) => seq === 2);
    await call("/v1/models");
    expect(await model.waitForRequest(({ path }) => path === "/v1/models")).toMatchObject({ seq: 1 });
    await call("/");
    expect(await second).toMatchObject({ path: "/" });
  });

  it("`waitForRequest` rejects when its signal aborts, its condition throws or the model closes", async () => {
    const stop = new AbortController();
    const stopped = model.waitForRequest(() => false, stop.signal);
    stop.abort(new Error("enough"));
    await expect(stopped).rejects.toThrow("enough");
    await expect(model.waitForRequest(() => true, stop.signal)).rejects.toThrow("enough");
    const failing = model.waitForRequest(() => {
      throw new Error("no condition");
    });
    const waiting = model.waitForRequest(() => false);
    const ends = Promise.allSettled([failing, waiting]);
    await call("/");
    await model.close();
    expect(await ends).toMatchObject([{ reason: { message: "no condition" } }, { reason: { message: CLOSED } }]);
    await expect(model.waitForRequest(() => false)).rejects.toThrow(CLOSED);
  });
});

it.each([
  ["hangs", [{ text: "a", hang: "mid-stream" as const }], false],
  ["waits at a gate", [{ text: "a", gate: "g" }], true],
  ["has many parts", [{ text: Array.from({ length: 50 }, () => "a"), chunkDelayMs: 1000 }], true],
])("a client that leaves while a reply %s leaves no work behind", async (_, script, stream) => {
  const leave = new AbortController();
  const body = JSON.stringify(ask({ stream, messages: [{ role: "user", content: scriptTag(script) }] }));
  const response = await fetch(`${model.url}/v1/messages`, { method: "POST", body, signal: leave.signal });
  expect(response.status).toBe(200);
  leave.abort();
  await expect(response.text()).rejects.toThrow("aborted");
  expect(await call("/")).toMatchObject({ status: 200 });
});

it("a taken port is refused", async () => {
  const port = Number(new URL(model.url).port);
  await expect(startScriptedModel({ port })).rejects.toThrow("EADDRINUSE");
});
