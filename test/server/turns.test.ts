import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

describe("a call that blocks", () => {
  it("a call returns the result of its turn, and may wait for longer than 45 s with --max-wait-ms", async () => {
    const patient = await world.server({ args: ["--max-wait-ms", "90000"] });
    const cwd = world.folder();
    const start = { prompt: scriptTag([{ gateBefore: cwd, text: "At last." }]), cwd, waitMs: 90_000 };
    const refused = await server.refusal("claude_code", start);
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining("at most 45000") });
    const called = patient.call("claude_code", start);
    await world.model.waitForRequest(({ lastUserText }) => lastUserText.includes(cwd));
    world.model.release(cwd);
    const done = await called;
    expect(done).toMatchObject({ status: "idle", result: { result: "At last.", isError: false, numTurns: 1 } });
    expect(done.result).toMatchObject({
      sessionTotalTurns: 1,
      usage: { costUsd: expect.any(Number), inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
    });
  });
});

describe("one prompt at a time", () => {
  it("a second prompt while a turn runs is SESSION_BUSY, and the turn goes on", async () => {
    const cwd = world.folder();
    const gate = `busy-${cwd}`;
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ gateBefore: gate, text: "first" }]),
      cwd,
    });
    const refused = await server.refusal("claude_code_reply", { sessionId, prompt: "second" });
    expect(refused.code).toBe("SESSION_BUSY");
    expect(refused.text).toMatch(/^Error \[SESSION_BUSY\]: .*claude_code_check/);
    world.model.release(gate);
    expect((await server.end(sessionId)).result?.result).toBe("first");
  });

  it("a retry with the same idempotencyKey is harmless, on start and on reply", async () => {
    const cwd = world.folder();
    const start = { prompt: scriptTag([{ text: "once" }]), cwd, idempotencyKey: `key-${cwd}` };
    const [one, two] = await Promise.all([server.call("claude_code", start), server.call("claude_code", start)]);
    expect(one.sessionId).toBe(two.sessionId);
    expect((await server.end(one.sessionId)).result?.sessionTotalTurns).toBe(1);
    const reply = {
      sessionId: one.sessionId,
      prompt: scriptTag([{ text: "twice" }]),
      idempotencyKey: "r",
      waitMs: 20_000,
    };
    await server.call("claude_code_reply", reply);
    const again = await server.call("claude_code_reply", reply);
    expect(again.result).toMatchObject({ result: "twice", sessionTotalTurns: 2 });
    for (const [tool, args] of [
      ["claude_code", { ...start, prompt: "Another." }],
      ["claude_code", { ...start, attachments: [{ data: "iVBORw0KGgo=", mediaType: "image/png" }] }],
      ["claude_code_reply", { ...reply, prompt: "Another." }],
    ] as const) {
      const text = expect.stringMatching(/idempotencyKey: .* another prompt, which (session|this session) /);
      expect(await server.refusal(tool, args)).toMatchObject({ code: "INVALID_ARGUMENT", text });
    }
    expect((await server.refusal("claude_code", { ...start, prompt: "Another." })).text).toContain(one.sessionId);
  });
});

describe("cancel", () => {
  it("cancel during a permission request is final: the tool does not run, nothing is left, no prompt is taken", async () => {
    const cwd = world.folder();
    const file = join(cwd, "never.txt");
    const script = [{ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] }, { text: "no" }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });
    const asked = await server.news(sessionId);
    expect(asked.actions).toHaveLength(1);
    const cancelled = await server.call("claude_code_session", { action: "cancel", sessionId });
    expect(cancelled.sessions).toMatchObject([{ sessionId, status: "cancelled" }]);

    const after = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor: asked.nextCursor,
      waitMs: 20_000,
      responseMode: "delta_compact",
    });
    expect(after).toMatchObject({
      status: "cancelled",
      actions: [],
      result: { isError: true },
      cancelledSource: "caller",
    });
    expect(after["cancelledAt"]).toEqual(expect.any(String));
    const answers = after.events.filter(({ type }) => type === "permission_result");
    expect(answers).toMatchObject([{ data: { decision: "deny", by: "cancel" } }]);

    const late = { action: "respond_permission", sessionId, requestId: asked.actions[0]?.requestId, decision: "allow" };
    expect((await server.refusal("claude_code_check", late)).code).toBe("PERMISSION_REQUEST_NOT_FOUND");
    expect((await server.refusal("claude_code_reply", { sessionId, prompt: "more" })).code).toBe("CANCELLED");
    await expect.poll(() => world.processes().filter(({ command }) => command.includes(sessionId))).toEqual([]);
    expect(existsSync(file)).toBe(false);
  });
});

it("sums of money are reported without rounding errors in every answer", async () => {
  const cwd = world.folder();
  // Seven calls of 0.0008 USD add up to 0.005600000000000001.
  const looks = Array.from({ length: 6 }, () => ({
    tools: [{ name: "Read", input: { file_path: join(cwd, "none") } }],
  }));
  const prompt = scriptTag([...looks, { text: "Looked." }]);
  const waited = await server.call("claude_code", { prompt, cwd, waitMs: 40_000 });
  const { sessionId } = waited;
  expect(waited.result).toMatchObject({ usage: { costUsd: 0.0056 } });
  const poll = { action: "poll", sessionId, cursor: 1, waitMs: 0, responseMode: "full", maxBytes: 1_048_576 };
  const whole = await server.call("claude_code_check", poll);
  expect(whole.result).toMatchObject({ totalCostUsd: 0.0056, sessionTotalCostUsd: 0.0056 });
  const session = async (args: object) => server.call("claude_code_session", { ...args });
  const one = [await session({ action: "get", sessionId }), await session({ action: "usage", sessionId })];
  const told = [waited, whole, ...one, await session({ action: "list" })];
  expect(JSON.stringify(told).match(/\d\.\d{10,}/g)).toBeNull();
});
