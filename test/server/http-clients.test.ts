import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { CLIENT_KINDS } from "../kit/clients/connection.ts";
import { frames, INITIALIZE, post, type HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Clients of both protocol eras share a server without interference. */

const world = useWorld({ agent: "stand-in" });
let shared: HttpServer;
beforeAll(async () => {
  shared = await world.http({ args: ["--toolsets", "agent,query"] });
});

/** Prompt whose turn asks for `touch asked` and then answers `text`. */
const asking = (text: string) =>
  scriptTag([{ tools: [{ name: "Bash", input: { command: "touch asked", description: "requests" } }] }, { text }]);

describe("clients over HTTP", () => {
  it.each(CLIENT_KINDS)("a %s client starts a session, allows its request, sees the end and goes on", async (kind) => {
    const client = await shared.connect(kind);
    const started = await client.call("claude_code", { prompt: asking("allowed"), cwd: world.folder() });
    const { actions, nextCursor, sessionId } = await client.news(started.sessionId, started.nextCursor);
    const [{ requestId } = { requestId: "" }] = actions;
    const decision = { action: "respond_permission", sessionId, requestId, decision: "allow", cursor: nextCursor };
    const told = await client.call("claude_code_check", { ...decision, until: "end", waitMs: 40_000 });
    expect(told).toMatchObject({ status: "idle", result: { result: "allowed", isError: false } });
    const prompt = scriptTag([{ text: "and again" }]);
    const next = await client.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
    expect(next.result?.result).toBe("and again");
    await client.close();
  });

  it("a request with an unknown protocol session id gets 404, so that its client initializes again", async () => {
    const stale = await shared.fetch(
      "/mcp",
      post({ jsonrpc: "2.0", id: 2, method: "tools/list" }, sessionHeaders("stale")),
    );
    expect(stale.status).toBe(404);
    expect(await stale.json()).toMatchObject({
      error: { code: -32_001, message: expect.stringContaining("initialize") },
    });
    const begun = await shared.fetch("/mcp", post(INITIALIZE));
    expect(begun.status).toBe(200);
    expect(begun.headers.get("mcp-session-id")).toMatch(/^[\w.-]+$/);
  });

  it("a revoked token closes the stream that it opened", async () => {
    const [file, token] = [join(world.folder(), "token"), "ccm_revoked-in-this-test-0123456789abcdef"];
    writeFileSync(file, token, { mode: 0o600 });
    const server = await world.http({ args: ["--token-file", file], token });
    const headers = { ...(await headersOf(server, "legacy", "")), accept: "text/event-stream" };
    const stream = await server.fetch("/mcp", { headers });
    expect(stream.status).toBe(200);
    writeFileSync(file, token.toUpperCase(), { mode: 0o600 });
    const heard = async () => {
      for await (const frame of frames(stream)) expect(frame.message?.id).toBeUndefined();
    };
    await expect(heard()).rejects.toThrow("terminated");
  });
});

/** Fields of `initialize` that each request of revision 2026-07-28 carries by itself. */
const MODERN = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": INITIALIZE.params.clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/logLevel": "info",
};

/** Calls a tool in either era by `fetch`, without an MCP library. */
async function rawCall(server: HttpServer, era: Era, args: { name: string; arguments: object }, signal?: AbortSignal) {
  const meta = { progressToken: 7, ...(era === "modern" && MODERN) };
  const call = post(
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { ...args, _meta: meta } },
    await headersOf(server, era, args.name),
  );
  return server.fetch("/mcp", { ...call, ...(signal && { signal }) });
}

async function headersOf(server: HttpServer, era: Era, name: string): Promise<Record<string, string>> {
  if (era === "modern") return { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
  const begun = await server.fetch("/mcp", post(INITIALIZE));
  await begun.text();
  return sessionHeaders(begun.headers.get("mcp-session-id") ?? "");
}

const ERAS = ["modern", "legacy"] as const;
type Era = (typeof ERAS)[number];

const FOREVER = { name: "Bash", input: { command: "node -e 'setInterval(() => {}, 1000)'" } };

/** Starts a query whose client leaves while a command runs. Returns the session id. */
async function abandonQuery(era: Era): Promise<string> {
  const gone = new AbortController();
  const prompt = scriptTag([{ text: "working", tools: [FOREVER] }]);
  const query = { name: "claude_code_query", arguments: { prompt, cwd: world.folder(), allowedTools: ["Bash"] } };
  let sessionId = "";
  for await (const { message } of frames(await rawCall(shared, era, query, gone.signal))) {
    const data = message?.params?.data ?? "";
    sessionId ||= (/"sessionId":"([^"]+)"/.exec(data) ?? [])[1] ?? "";
    if (data.includes("setInterval")) break;
  }
  gone.abort();
  return sessionId;
}

async function abandonQueryAndStream(): Promise<string> {
  const headers = await headersOf(shared, "legacy", "");
  const gone = new AbortController();
  const unasked = await shared.fetch("/mcp", {
    headers: { ...headers, accept: "text/event-stream" },
    signal: gone.signal,
  });
  expect(unasked.status).toBe(200);
  const prompt = `Die with your stream. ${scriptTag([{ tools: [FOREVER] }])}`;
  const query = { prompt, cwd: world.folder(), allowedTools: ["Bash"] };
  const params = { name: "claude_code_query", arguments: query };
  const call = post({ jsonrpc: "2.0", id: 3, method: "tools/call", params }, headers);
  const left = shared.fetch("/mcp", { ...call, signal: gone.signal }).then(async (response) => response.text());
  const { sessionId = "" } = await world.model.waitForRequest(({ told }) => told.includes("Die with your stream."));
  gone.abort();
  await expect(left).rejects.toThrow("aborted");
  return sessionId;
}

async function expectTurnEnds(sessionId: string): Promise<void> {
  const client = await shared.connect();
  expect((await client.end(sessionId)).result).toMatchObject({ errorSubtype: "interrupted" });
  const again = { sessionId, prompt: scriptTag([{ text: "usable" }]), waitMs: 40_000 };
  expect((await client.call("claude_code_reply", again)).result?.result).toBe("usable");
}

describe("calls over HTTP", () => {
  it.each(ERAS)("a call reports on its own stream, in order, and nothing after its result: %s", async (era) => {
    const tool = { name: "Bash", input: { command: "true", description: "nothing" } };
    const prompt = scriptTag([{ tools: [tool] }, { tools: [tool] }, { text: "done" }]);
    const call = { name: "claude_code_query", arguments: { prompt, cwd: world.folder(), allowedTools: ["Bash"] } };
    const messages = [];
    for await (const { message } of frames(await rawCall(shared, era, call))) if (message) messages.push(message);
    expect(messages.at(-1)).toMatchObject({ id: 2, result: { structuredContent: { status: "done" } } });
    expect(messages.filter(({ id }) => id !== undefined)).toHaveLength(1);
    const told = messages.flatMap(({ params }) => params?.data ?? []);
    const sequence = told.map((text) => (JSON.parse(text) as { sequence: number }).sequence);
    expect(sequence.length).toBeGreaterThan(6);
    expect(sequence).toEqual(sequence.map((_, index) => index + 1));
    const progress = messages.flatMap(({ params }) => params?.progress ?? []);
    expect(progress.length).toBeGreaterThan(0);
    expect(progress).toEqual(progress.toSorted((one, other) => one - other));
  });

  it.each(ERAS)("a cancelled claude_code_check call ends only its wait, and the turn goes on: %s", async (era) => {
    const client = await shared.connect();
    const prompt = scriptTag([{ gateBefore: `given-up-${era}`, text: "all the same" }]);
    const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
    const gone = new AbortController();
    const poll = { action: "poll", sessionId, cursor: 1, until: "end", waitMs: 40_000 };
    const left = rawCall(shared, era, { name: "claude_code_check", arguments: poll }, gone.signal).then(
      async (response) => response.text(),
    );
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    gone.abort();
    await expect(left).rejects.toThrow("aborted");
    world.model.release(`given-up-${era}`);
    expect((await client.end(sessionId)).result?.result).toBe("all the same");
  });

  it("a cancelled claude_code_query call ends its turn: modern", async () => {
    await expectTurnEnds(await abandonQuery("modern"));
  });

  // Both at once, because each waits for the server's time limit.
  it("a cancelled claude_code_query call ends its turn: legacy, without and with a notification stream", async () => {
    const sessions = await Promise.all([abandonQuery("legacy"), abandonQueryAndStream()]);
    await Promise.all(sessions.map(expectTurnEnds));
  });

  it("a call whose connection broke can be followed to its end from the last received message", async () => {
    const client = await shared.connect();
    const prompt = scriptTag([{ gateBefore: "broken", text: "heard" }]);
    const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
    const headers = await headersOf(shared, "legacy", "");
    const poll = { action: "poll", sessionId, cursor: 1, until: "end", waitMs: 40_000 };
    const call = {
      jsonrpc: "2.0",
      id: 5,
      method: "tools/call",
      params: { name: "claude_code_check", arguments: poll },
    };
    const broken = new AbortController();
    const first = frames(await shared.fetch("/mcp", { ...post(call, headers), signal: broken.signal }));
    const begun = await first.next();
    const last = begun.done ? "" : begun.value.id;
    broken.abort();
    world.model.release("broken");
    const resume = { accept: "text/event-stream", "last-event-id": last };
    const rest = frames(await shared.fetch("/mcp", { headers: { ...headers, ...resume } }));
    for await (const { message } of rest) {
      if (message?.id !== 5) continue;
      expect(message.result?.structuredContent).toMatchObject({ result: { result: "heard" } });
      break;
    }
    const other = await headersOf(shared, "legacy", "");
    expect((await shared.fetch("/mcp", { headers: { ...other, ...resume } })).status).toBe(400);
  });
});

describe("a server over HTTP that shuts down", () => {
  beforeAll(async () => world.closeServers());
  afterEach(async () => world.closeServers());

  it("a draining server is not ready, starts nothing, and lets running turns end", async () => {
    const server = await world.http({ args: ["--drain-ms", "60000"] });
    const client = await server.connect();
    const prompt = scriptTag([{ gateBefore: "draining", text: "to the end" }]);
    const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    const end = client.end(sessionId);
    expect((await server.fetch("/readyz")).status).toBe(200);
    server.signal("SIGTERM");
    await server.logged("ending");
    expect((await server.fetch("/readyz")).status).toBe(503);
    const { text } = await client.refusal("claude_code", { prompt, cwd: world.folder() });
    expect(text).toContain("shutting down");
    world.model.release("draining");
    expect((await end).result?.result).toBe("to the end");
    expect(await server.exited).toBe(0);
    await world.quiet(5_000);
  });

  it("a server interrupts turns longer than its drain and answers waiting callers; all clients go on after a restart", async () => {
    const store = `${world.folder()}/store.db`;
    const first = await world.http({ args: ["--drain-ms", "100", "--store", store] });
    // The library of the `v1` client, which Gemini CLI uses, never recovers from a 404.
    const clients = await Promise.all(CLIENT_KINDS.map(async (kind) => first.connect(kind)));
    const [modern, legacy] = [clients[CLIENT_KINDS.indexOf("modern")]!, clients[CLIENT_KINDS.indexOf("legacy")]!];
    const prompt = scriptTag([{ text: "one" }]);
    const { sessionId } = await modern.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    const reply = { sessionId, prompt: scriptTag([{ text: "two" }]), waitMs: 40_000 };
    expect((await legacy.call("claude_code_reply", reply)).result?.result).toBe("two");

    const { sessionId: idle } = await modern.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    const { nextCursor: last } = await modern.end(idle);
    const poll = { action: "poll", sessionId: idle, cursor: last, until: "event", waitMs: 40_000 };
    const waiting = rawCall(first, "modern", { name: "claude_code_check", arguments: poll });
    const metrics = async () => (await first.fetch("/metrics")).text();
    // Two of the three are the listening streams of the `legacy` and `v1` clients.
    await expect.poll(metrics).toContain('http_requests_open{route="/mcp"} 3');
    const long = scriptTag([{ gateBefore: "never", text: "never said" }]);
    const { nextCursor } = await modern.call("claude_code_reply", { sessionId, prompt: long });
    await world.model.waitForRequest(({ lastUserText }) => lastUserText.includes("never said"));
    const end = legacy.end(sessionId, nextCursor);
    first.signal("SIGTERM");
    expect((await end).result).toMatchObject({ isError: true, errorSubtype: "shutdown" });
    // With `until: "event"`, a caller gets 503 and has to call again.
    const told = await waiting;
    expect(told.status).toBe(503);
    expect(await told.json()).toMatchObject({ error: { message: expect.stringContaining("shutting down") } });
    expect(await first.exited).toBe(0);
    await world.quiet(5_000);

    const second = await world.http({ args: ["--store", store, "--http", new URL(first.url).host] });
    for (const [index, client] of clients.entries()) {
      const again = { ...reply, prompt: scriptTag([{ text: `again ${String(index)}` }]) };
      expect((await client.call("claude_code_reply", again)).result?.result).toBe(`again ${String(index)}`);
    }
    const other = await world.http({ args: ["--store", `${world.folder()}/other.db`] });
    const foreign = { jsonrpc: "2.0", id: 2, method: "tools/list" };
    const { transport } = legacy.client;
    const answer = await other.fetch("/mcp", post(foreign, sessionHeaders(transport?.sessionId ?? "")));
    expect(answer.status).toBe(404);
    await second.close();
  });
});

const sessionHeaders = (id: string) => ({ "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" });
