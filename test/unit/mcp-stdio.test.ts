import { describe, expect, it } from "vitest";
import { Leaving } from "../../src/tools/leaving.ts";
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
const answerTo = (wire: Wire, id: number) => wire.heard((message) => message["id"] === id);

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
  ])("%s is reported once, after the client has disconnected and not before", async (_, open) => {
    const wire = await open();
    await settled();
    expect(wire.closes).toBe(0);
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    await settled();
    expect(wire.closes).toBe(1);
  });

  it("is reported when stdout has no reader left", async () => {
    const wire = await opened();
    wire.stdout.destroy(new Error("EPIPE"));
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("is reported when stdin breaks", async () => {
    const wire = await opened();
    wire.stdin.destroy(new Error("EIO"));
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("is not reported to the caller that closed it", async () => {
    const wire = await opened();
    await wire.server.close();
    await settled();
    expect(wire.closes).toBe(0);
  });

  it("ends the waits of calls, and not the turns", async () => {
    const wire = await waiting();
    wire.stdout.destroy(new Error("EPIPE"));
    await expect.poll(() => wire.engine.waits[0]?.signal.aborted).toBe(true);
    expect(wire.engine.sessions.get("s1")?.state.turn).not.toBeNull();
  });
});

async function waiting(options?: ConstructorParameters<typeof Wire>[0]): Promise<Wire> {
  const wire = await opened(options);
  wire.engine.add().run();
  await wire.send(call(5, "claude_code_check", { action: "poll", sessionId: "s1", waitMs: 30_000 }));
  await expect.poll(() => wire.engine.waits.length).toBe(1);
  return wire;
}

describe("the end of input", () => {
  it("ends the connection once each call is answered, the last line included, which has no end", async () => {
    const wire = await waiting();
    wire.stdin.end(JSON.stringify(list(6)));
    expect(await answerTo(wire, 6)).toHaveProperty("result");
    await settled();
    expect([wire.closes, wire.engine.waits[0]?.signal.aborted]).toEqual([0, false]);
    wire.engine.sessions.get("s1")?.ends("done");
    expect(await answerTo(wire, 5)).toMatchObject({ result: { structuredContent: { status: "idle" } } });
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("does not wait for calls that were cancelled", async () => {
    const wire = await waiting();
    await wire.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } });
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    expect(wire.lines.filter((line) => line.includes('"id":5'))).toEqual([]);
  });

  it("answers a call that would wait too long with what there is", async () => {
    const wire = await waiting({ lastAnswersMs: 2_020, leaving: new Leaving({ warn: () => undefined }) });
    wire.stdin.end();
    expect(await answerTo(wire, 5)).toMatchObject({ result: { structuredContent: { status: "running" } } });
  });

  it("answers a call that takes too long with an error, and ends its wait", async () => {
    const wire = await waiting({ lastAnswersMs: 20 });
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    const message = expect.stringMatching(/^The input has ended, .* within 0\.02 s\. .* claude_code_check/);
    expect(await answerTo(wire, 5)).toMatchObject({ error: { code: -32_603, message } });
    expect(wire.engine.waits[0]?.signal.aborted).toBe(true);
  });

  it("ends the connection when no client reads the answers either", async () => {
    const wire = await waiting();
    wire.stdin.end();
    await settled();
    expect(wire.closes).toBe(0);
    wire.stdout.destroy();
    await expect.poll(() => wire.closes).toBe(1);
  });

  it("answers requests that listen with their result", async () => {
    const wire = new Wire();
    const params = { _meta: modern, notifications: { toolsListChanged: true } };
    await wire.send({ jsonrpc: "2.0", id: "l", method: "subscriptions/listen", params });
    await wire.send({ jsonrpc: "2.0", id: "m", method: "subscriptions/listen", params });
    wire.stdin.end();
    await expect.poll(() => wire.closes).toBe(1);
    const told = wire.lines.map((line) => JSON.parse(line) as { id?: string; method?: string });
    expect(told.map(({ id, method }) => id ?? method)).toEqual([ACKNOWLEDGED, ACKNOWLEDGED, "l", "m"]);
  });
});

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

describe("on the wire", () => {
  it("a message over the limit gets an error, and the next one an answer", async () => {
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

  it("there is one JSON object per line and nothing else", async () => {
    const wire = await opened();
    await wire.send(call(5, "claude_code", { prompt: "two\nlines\u2028" }));
    await answerTo(wire, 5);
    for (const line of wire.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
    wire.stdin.end();
  });

  it("a request with the id of one that is open is refused, and then the id is good again", async () => {
    const wire = await waiting();
    await wire.send(list(5));
    const message = expect.stringContaining("id: used by another open request of this connection");
    expect(await answerTo(wire, 5)).toMatchObject({ error: { code: -32_600, message } });
    wire.engine.sessions.get("s1")?.ends("done");
    const answers = () => wire.lines.filter((line) => line.includes('"id":5')).length;
    await expect.poll(answers).toBe(2);
    await wire.send(list(5));
    await expect.poll(answers).toBe(3);
    wire.stdin.end();
  });

  it("concurrent calls are answered separately", async () => {
    const wire = await opened();
    wire.engine.add().run();
    await wire.send(call(5, "claude_code_check", { action: "poll", sessionId: "s1", waitMs: 30_000 }));
    await wire.send(call(6, "claude_code_session", { action: "list" }));
    expect(await answerTo(wire, 6)).toMatchObject({
      result: { structuredContent: { sessions: [{ sessionId: "s1" }] } },
    });
    wire.engine.sessions.get("s1")?.ends("done");
    expect(await answerTo(wire, 5)).toMatchObject({ result: { structuredContent: { status: "idle" } } });
    expect(wire.depsMade).toBe(1);
    wire.stdin.end();
  });

  it.each([
    ["a tool that is not there", { name: "claude", arguments: {} }],
    ["arguments that are no object", { name: "claude_code", arguments: "hi" }],
  ])("%s is an error, and the connection continues", async (_, params) => {
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

  it.each([
    ["nothing", {}, { elicitation: false, tasks: false, isLocal: true }],
    ["forms, said in short", { elicitation: {} }, { elicitation: true, tasks: false, isLocal: true }],
    ["forms", { elicitation: { form: {}, url: {} } }, { elicitation: true, tasks: false, isLocal: true }],
    ["only links", { elicitation: { url: {} } }, { elicitation: false, tasks: false, isLocal: true }],
    [
      "tasks",
      { extensions: { "io.modelcontextprotocol/tasks": {} } },
      { elicitation: false, tasks: true, isLocal: true },
    ],
  ])("reach the tool: %s", async (_, capabilities, client) => {
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
      // The extension belongs to the later era.
      { ...client, tasks: false, elicitation: during, log: true, news: false },
      { ...client, elicitation: between, log: false, news: false },
      { ...client, elicitation: between, log: true, news: true },
    ]);
    old.stdin.end();
    recent.stdin.end();
  });
});
