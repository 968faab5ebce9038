import { describe, expect, it } from "vitest";
import { ClientCleanup } from "../../src/tools/client-cleanup.ts";
import { Wire } from "../kit/clients/mcp-wire.ts";

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};
const initialized = { jsonrpc: "2.0", method: "notifications/initialized" };
const modern = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const discover = { jsonrpc: "2.0", id: 0, method: "server/discover", params: { _meta: modern } };
const list = (id: number, params: object = {}) => ({ jsonrpc: "2.0", id, method: "tools/list", params });
const call = (id: number, name: string, args: object) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

const settled = () => new Promise((resolve) => setTimeout(resolve, 30));
const answerTo = (wire: Wire, id: number) => wire.waitForMessage((message) => message["id"] === id);

async function opened(options?: ConstructorParameters<typeof Wire>[0]): Promise<Wire> {
  const wire = new Wire(options);
  await wire.send(initialize);
  await answerTo(wire, 1);
  await wire.send(initialized);
  return wire;
}

interface Called {
  client: { leaving?: unknown; log?: unknown; name?: unknown; news?: unknown; noteUnattended?: unknown };
}

describe("the end of a connection", () => {
  it.each<[string, () => Promise<Wire>]>([
    ["that never began", () => Promise.resolve(new Wire())],
    ["of the 2025 era", opened],
    [
      "of the 2026 era",
      async () => {
        const wire = new Wire();
        await wire.send(list(3, { _meta: modern }));
        await answerTo(wire, 3);
        return wire;
      },
    ],
    [
      "that changed its era after a probe",
      async () => {
        const wire = new Wire();
        await wire.send(discover);
        await answerTo(wire, 0);
        await wire.send(initialize);
        await answerTo(wire, 1);
        await wire.send(list(2));
        await answerTo(wire, 2);
        return wire;
      },
    ],
  ])("the end of a connection %s is reported once, and only after the client has disconnected", async (_, open) => {
    const wire = await open();
    await settled();
    expect(wire.closes).toBe(0);
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    await settled();
    expect(wire.closes).toBe(1);
  });

  it("the end of a connection is reported when stdout has no reader left", async () => {
    const wire = await opened();
    wire.stdout.destroy(new Error("EPIPE"));
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("the end of a connection is reported when stdin breaks", async () => {
    const wire = await opened();
    wire.stdin.destroy(new Error("EIO"));
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("the end of a connection is not reported to the caller of `close`", async () => {
    const wire = await opened();
    await wire.server.close();
    await settled();
    expect(wire.closes).toBe(0);
  });

  it("the end of a connection ends the waits of calls, but not the turns", async () => {
    const wire = await waiting();
    wire.stdout.destroy(new Error("EPIPE"));
    await expect.poll(() => wire.engine.waits[0]?.signal.aborted).toBe(true);
    expect(wire.engine.sessions.get("s1")?.state.turn).not.toBeNull();
  });
});

async function waiting(options?: ConstructorParameters<typeof Wire>[0]): Promise<Wire> {
  const wire = await opened(options);
  wire.engine.add().startTurn();
  await wire.send(call(5, "claude_code_check", { action: "poll", sessionId: "s1", waitMs: 30_000 }));
  await expect.poll(() => wire.engine.waits.length).toBe(1);
  return wire;
}

describe("the end of input", () => {
  it("the connection ends once each call is answered, including a last line without a newline", async () => {
    const wire = await waiting();
    wire.stdin.end(JSON.stringify(list(6)));
    expect(await answerTo(wire, 6)).toHaveProperty("result");
    await settled();
    expect([wire.closes, wire.engine.waits[0]?.signal.aborted]).toEqual([0, false]);
    wire.engine.sessions.get("s1")?.finishTurn("done");
    expect(await answerTo(wire, 5)).toMatchObject({ result: { structuredContent: { status: "idle" } } });
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("the connection ends without waiting for calls that were cancelled", async () => {
    const wire = await waiting();
    await wire.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } });
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    expect(wire.lines.filter((line) => line.includes('"id":5'))).toEqual([]);
  });

  it("a call that would wait too long after the end of input is answered with the present state", async () => {
    const wire = await waiting({ lastAnswersMs: 2_020, leaving: new ClientCleanup({ warn: () => undefined }) });
    wire.stdin.end();
    expect(await answerTo(wire, 5)).toMatchObject({ result: { structuredContent: { status: "running" } } });
  });

  it("a call not answered within `lastAnswersMs` after the end of input gets an error, and its wait ends", async () => {
    const wire = await waiting({ lastAnswersMs: 20 });
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    const message = expect.stringMatching(/^The input has ended, .* within 0\.02 s\. .* claude_code_check/);
    expect(await answerTo(wire, 5)).toMatchObject({ error: { code: -32_603, message } });
    expect(wire.engine.waits[0]?.signal.aborted).toBe(true);
  });

  it("the connection ends when the input has ended and stdout has no reader", async () => {
    const wire = await waiting();
    wire.stdin.end();
    await settled();
    expect(wire.closes).toBe(0);
    wire.stdout.destroy();
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("requests that listen are answered with their result at the end of input", async () => {
    const wire = new Wire();
    const params = { _meta: modern, notifications: { toolsListChanged: true } };
    await wire.send({ jsonrpc: "2.0", id: "l", method: "subscriptions/listen", params });
    await wire.send({ jsonrpc: "2.0", id: "m", method: "subscriptions/listen", params });
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    const received = wire.lines.map((line) => JSON.parse(line) as { id?: string; method?: string });
    expect(received.map(({ id, method }) => id ?? method)).toEqual([ACKNOWLEDGED, ACKNOWLEDGED, "l", "m"]);
  });
});

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

describe("messages on the wire", () => {
  it("a message above 33,554,432 bytes gets an error, and the next message an answer", async () => {
    const wire = await opened();
    const prompt = "x".repeat(34_000_000);
    await wire.send(call(6, "claude_code", { prompt }));
    const { error } = await answerTo(wire, 6);
    expect(error).toEqual({
      code: -32_600,
      message: expect.stringMatching(
        /^The message has 34\d{6} bytes; at most 33554432 are allowed\. Send less at once\.$/,
      ),
    });
    await wire.send(list(7));
    expect(await answerTo(wire, 7)).toHaveProperty("result");
    expect(wire.warnings).toEqual([{ bytes: expect.any(Number), id: "6" }]);
    wire.stdin.end();
  });

  it("an invalid message is skipped", async () => {
    const wire = await opened();
    wire.stdin.write('not json\n\n{"half":\n[]\n{"jsonrpc":"2.0"}\n\u0000\n');
    await wire.send(list(7));
    expect(await answerTo(wire, 7)).toHaveProperty("result");
    expect(wire.closes).toBe(0);
    wire.stdin.end();
  });

  it("the output has one JSON object per line and nothing else", async () => {
    const wire = await opened();
    await wire.send(call(5, "claude_code", { prompt: "two\nlines\u2028" }));
    await answerTo(wire, 5);
    for (const line of wire.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
    wire.stdin.end();
  });

  it("a request with the id of an open request is refused, and the id is free again after the answer", async () => {
    const wire = await waiting();
    await wire.send(list(5));
    const message = expect.stringContaining("id: used by another open request of this connection");
    expect(await answerTo(wire, 5)).toMatchObject({ error: { code: -32_600, message } });
    wire.engine.sessions.get("s1")?.finishTurn("done");
    const answers = () => wire.lines.filter((line) => line.includes('"id":5')).length;
    await expect.poll(answers).toBe(2);
    await wire.send(list(5));
    await expect.poll(answers).toBe(3);
    wire.stdin.end();
  });

  it("concurrent calls are answered separately", async () => {
    const wire = await opened();
    wire.engine.add().startTurn();
    await wire.send(call(5, "claude_code_check", { action: "poll", sessionId: "s1", waitMs: 30_000 }));
    await wire.send(call(6, "claude_code_session", { action: "list" }));
    expect(await answerTo(wire, 6)).toMatchObject({
      result: { structuredContent: { sessions: [{ sessionId: "s1" }] } },
    });
    wire.engine.sessions.get("s1")?.finishTurn("done");
    expect(await answerTo(wire, 5)).toMatchObject({ result: { structuredContent: { status: "idle" } } });
    expect(wire.depsMade).toBe(1);
    wire.stdin.end();
  });

  it.each([
    ["an unknown tool", { name: "claude", arguments: {} }],
    ["arguments that are not an object", { name: "claude_code", arguments: "hi" }],
  ])("a call with %s gets an error, and the connection continues", async (_, params) => {
    const wire = await opened();
    await wire.send({ jsonrpc: "2.0", id: 5, method: "tools/call", params });
    expect(await answerTo(wire, 5)).toHaveProperty("error");
    await wire.send(list(7));
    expect(await answerTo(wire, 7)).toHaveProperty("result");
    wire.stdin.end();
  });
});

describe("the capabilities of a client", () => {
  const call2026 = (id: number, meta: object) => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name: "probe", arguments: {}, _meta: { ...modern, ...meta } },
  });

  const NOTHING = { elicitation: false, opensUrls: false, tasks: false, isLocal: true };
  it.each([
    ["none", {}, NOTHING],
    ["forms, in the short form", { elicitation: {} }, { ...NOTHING, elicitation: true }],
    ["forms", { elicitation: { form: {}, url: {} } }, { ...NOTHING, elicitation: true, opensUrls: true }],
    ["only links", { elicitation: { url: {} } }, { ...NOTHING, opensUrls: true }],
    ["tasks", { extensions: { "io.modelcontextprotocol/tasks": {} } }, { ...NOTHING, tasks: true }],
  ])("a tool receives the capabilities of its client: %s", async (_, capabilities, client) => {
    const seen: object[] = [];
    const [first] = [...new Set((await import("../kit/tools/run.ts")).tools.values())];
    const probe = {
      ...first!,
      name: "probe",
      invoke: (
        _raw: unknown,
        { client: { leaving: _leaving, log, name: _name, news, noteUnattended: _unattended, ...abilities } }: Called,
      ) => {
        seen.push({ ...abilities, log: log !== undefined, news: news !== undefined });
        return Promise.resolve({ answer: {} });
      },
    };
    const old = new Wire({ tools: [probe] });
    await old.send({ ...initialize, params: { ...initialize.params, capabilities } });
    await answerTo(old, 1);
    await old.send(initialized);
    await old.send(call(2, "probe", {}));
    await answerTo(old, 2);
    const recent = new Wire({ tools: [probe] });
    const meta = { "io.modelcontextprotocol/clientCapabilities": capabilities };
    await recent.send(call2026(3, meta));
    await answerTo(recent, 3);
    await recent.send(call2026(4, { ...meta, "io.modelcontextprotocol/logLevel": "info" }));
    await answerTo(recent, 4);
    const [during, between] = (["during", "between"] as const).map((way) => client.elicitation && way);
    expect(seen).toEqual([
      // Tasks are an extension of the 2026 era.
      { ...client, tasks: false, elicitation: during, log: true, news: false },
      { ...client, elicitation: between, log: false, news: false },
      { ...client, elicitation: between, log: true, news: true },
    ]);
    old.stdin.end();
    recent.stdin.end();
  });
});
