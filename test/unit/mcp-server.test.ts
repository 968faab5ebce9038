import { Client } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { describe, expect, it } from "vitest";
import { listToolNames } from "../../src/tools/tool-names.ts";
import { Wire } from "../kit/clients/mcp-wire.ts";
import { tools } from "../kit/tools/run.ts";

interface Connected {
  wire: Wire;
  client: Client | OldClient;
}

interface Reply {
  content: [{ type: "text"; text: string }];
  structuredContent: { sessionId: string; nextCursor: number };
  isError?: true;
}

const info = { name: "test", version: "1.0.0" };

/**
 * Maximum bytes of the whole line, and of the listing without the keys of `advanced`: the listing is in the context of every
 * model with this server.
 */
const [MAX_LINE_BYTES, MAX_LISTING_BYTES] = [8_192, 7_168];
const bytesOf = (listed: unknown) => Buffer.byteLength(JSON.stringify(listed));

interface ListedTool {
  readonly name: string;
  readonly inputSchema: { readonly properties?: Readonly<Record<string, unknown>> | undefined };
}

/** Size without the keys and types of `advanced`, present for clients that read no resources. */
function bytesBesideAdvanced(listed: readonly ListedTool[]): number {
  const { advanced } = listed.find(({ name }) => name === "claude_code")?.inputSchema.properties ?? {};
  return bytesOf(listed) - bytesOf((advanced as { description?: string } | undefined)?.description ?? "");
}

/** Clients of every kind: the v1 SDK, and the v2 SDK in both protocol eras. */
const clients: [string, string, (wire: Wire, as?: typeof info) => Promise<Client | OldClient>][] = [
  [
    "the v1 SDK",
    "2025-11-25",
    async (wire, as = info) => {
      const client = new OldClient(as);
      await client.connect(wire);
      return client;
    },
  ],
  [
    "the v2 SDK, 2025 era",
    "2025-11-25",
    async (wire, as = info) => {
      const client = new Client(as);
      await client.connect(wire);
      return client;
    },
  ],
  [
    "the v2 SDK, 2026 era",
    "2026-07-28",
    async (wire, as = info) => {
      const client = new Client(as, { versionNegotiation: { mode: "auto" } });
      await client.connect(wire);
      return client;
    },
  ],
];

describe.each(clients)("with %s", (_, era, connectTo) => {
  async function connect(): Promise<Connected> {
    const wire = new Wire();
    return { wire, client: await connectTo(wire) };
  }

  async function answered(
    { client }: Connected,
    name: string,
    args: Record<string, unknown>,
    options: { onprogress?: (news: object) => void; signal?: AbortSignal } = {},
  ): Promise<Reply> {
    const request = { name, arguments: args };
    const reply =
      client instanceof Client ? client.callTool(request, options) : client.callTool(request, undefined, options);
    return (await reply) as unknown as Reply;
  }

  it("the server introduces itself, and starts the engine only when a call needs it", async () => {
    const { wire, client } = await connect();
    expect(client.getServerVersion()).toEqual({
      name: "claude-agents-mcp",
      title: "Claude Code as a background agent",
      version: "1.2.3",
    });
    expect(client.getInstructions()).toContain("claude_code_check");
    expect(client.getServerCapabilities()).toEqual({
      tools: { listChanged: false },
      resources: { listChanged: false, subscribe: true },
      prompts: { listChanged: false },
      completions: {},
      logging: {},
      ...(era === "2026-07-28" && { extensions: { "io.modelcontextprotocol/skills": {} } }),
    });
    await client.listTools();
    expect(wire.depsMade).toBe(0);
    await client.close();
  });

  it("the server lists four tools in at most 7,168 bytes beside the keys of `advanced`, and 8,192 in all", async () => {
    const { wire, client } = await connect();
    const listed = await client.listTools();
    expect(listed.tools.map(({ name }) => name)).toEqual([
      "claude_code",
      "claude_code_reply",
      "claude_code_check",
      "claude_code_session",
    ]);
    const line = wire.lines.find((each) => each.includes('"tools":[{'));
    expect(bytesBesideAdvanced(listed.tools)).toBeLessThanOrEqual(MAX_LISTING_BYTES);
    expect(Buffer.byteLength(line ?? "")).toBeLessThanOrEqual(MAX_LINE_BYTES);
    expect(Buffer.byteLength(line ?? "")).toBeGreaterThan(4_000);
    await client.close();
  });

  it("Claude Code waits 30 minutes or `maxWaitMs` by default, other clients at most 45 s, within the bytes of the listing", async () => {
    const waitMs = async (name: string, limits: { maxWaitMs?: number }) => {
      const wire = new Wire({ limits });
      const client = await connectTo(wire, { ...info, name });
      const { tools: listed } = await client.listTools();
      const line = wire.lines.find((each) => each.includes('"tools":[{'));
      expect(bytesBesideAdvanced(listed)).toBeLessThanOrEqual(MAX_LISTING_BYTES);
      expect(Buffer.byteLength(line ?? "")).toBeLessThanOrEqual(MAX_LINE_BYTES);
      const { contents } = await client.readResource({ uri: "claude-code://quickstart" });
      const instructions = client.getInstructions();
      await client.close();
      const waiting = listed.map(({ inputSchema }) => inputSchema.properties?.["waitMs"]).filter(Boolean);
      return { instructions, waiting, page: JSON.stringify(contents) };
    };
    const long = { description: "Default: the maximum", maximum: 1_800_000, type: "integer" };
    const inClaude = await waitMs("claude-code", {});
    expect(inClaude.waiting).toEqual([long, long, long]);
    expect(inClaude.page).toContain("at most 1800000");
    expect(inClaude.instructions).toContain("the call waits for the result");
    expect(inClaude.instructions).not.toMatch(/poll/i);
    const elsewhere = await waitMs("claude-code-like", {});
    expect(elsewhere.waiting).toMatchObject(Array.from({ length: 3 }, () => ({ maximum: 45_000 })));
    expect(elsewhere.page).toContain("at most 45000");
    expect(elsewhere.instructions).toContain("2. Poll with claude_code_check");
    expect(JSON.stringify(elsewhere.waiting)).not.toContain("the maximum");
    const set = await waitMs("claude-code", { maxWaitMs: 60_000 });
    expect(set.waiting).toEqual(Array.from({ length: 3 }, () => ({ ...long, maximum: 60_000 })));
  });

  it("disk resume has parameters only if the operator allows it, then within 8,192 bytes of the whole line", async () => {
    const replyOf = async (limits: { allowsDiskResume?: boolean }) => {
      const wire = new Wire({ limits });
      const client = await connectTo(wire, { ...info, name: "claude-code" });
      const { tools: listed } = await client.listTools();
      await client.close();
      const line = wire.lines.find((each) => each.includes('"tools":[{'));
      expect(Buffer.byteLength(line ?? "")).toBeLessThanOrEqual(MAX_LINE_BYTES);
      const names = Object.keys(listed.find(({ name }) => name === "claude_code_reply")?.inputSchema.properties ?? {});
      return names.filter((name) => name === "resumeToken" || name === "diskResumeConfig");
    };
    expect(await replyOf({})).toEqual([]);
    expect(await replyOf({ allowsDiskResume: true })).toEqual(["resumeToken", "diskResumeConfig"]);
  });

  it("all toolsets are listed in at most 16,384 bytes, each tool once", async () => {
    const wire = new Wire({ tools: [...tools.values()], toolNames: listToolNames(["all"], { enabled: true }) });
    const client = await connectTo(wire);
    const listed = await client.listTools();
    expect(listed.tools.map(({ name }) => name)).toEqual([...tools.keys()]);
    const line = wire.lines.find((each) => each.includes('"tools":[{'));
    expect(Buffer.byteLength(line ?? "")).toBeLessThanOrEqual(16_384);
    expect(client.getInstructions()).toMatch(/claude_code_check[^]*claude_code_query[^]*claude_direct_query/);
    await client.close();
  });

  it("a session runs through start, request, answer, result and reply", async () => {
    const connected = await connect();
    const { engine } = connected.wire;
    engine.onPrompt = (session) => void setTimeout(() => session.openRequest(), 5);
    engine.onAnswer = (session) => void setTimeout(() => session.finishTurn("All done."), 5);
    const started = await answered(connected, "claude_code", { prompt: "Fix it", waitMs: 5_000 });
    expect(started.content).toEqual([{ type: "text", text: JSON.stringify(started.structuredContent) }]);
    expect(started.isError ?? false).toBe(false);
    const { sessionId, nextCursor } = started.structuredContent;
    const polled = await answered(connected, "claude_code_check", { action: "poll", sessionId, cursor: nextCursor });
    expect(polled.structuredContent).toMatchObject({ status: "waiting_permission", actions: [{ requestId: "r1" }] });
    const request = { sessionId, requestId: "r1", decision: "allow", cursor: polled.structuredContent.nextCursor };
    const done = await answered(connected, "claude_code_check", { action: "respond_permission", ...request });
    expect(done.structuredContent).toMatchObject({ status: "idle", result: { result: "All done." } });
    engine.onPrompt = (session) => session.finishTurn("Again.");
    const again = await answered(connected, "claude_code_reply", { sessionId, prompt: "Once more", waitMs: 100 });
    expect(again.structuredContent).toMatchObject({ result: { result: "Again." } });
    const listed = await answered(connected, "claude_code_session", { action: "list" });
    expect(listed.structuredContent).toMatchObject({ sessions: [{ sessionId, status: "idle" }] });
    expect(connected.wire.depsMade).toBe(1);
    await connected.client.close();
  });

  it("invalid arguments are reported completely in the text", async () => {
    const connected = await connect();
    const reply = await answered(connected, "claude_code", { prompt: "x", advanced: { thinkng: {} } });
    expect(reply.isError).toBe(true);
    expect(reply.content[0].text).toMatch(
      /^Error \[INVALID_ARGUMENT\]: advanced\.thinkng: unknown option\. Did you mean thinking\?/,
    );
    expect(reply.structuredContent).toEqual({ isError: true, error: reply.content[0].text, code: "INVALID_ARGUMENT" });
    const missing = await answered(connected, "claude_code_check", { action: "poll", sessionId: "nobody" });
    expect(missing.structuredContent).toMatchObject({ code: "SESSION_NOT_FOUND", sessionId: "nobody" });
    await connected.client.close();
  });

  it("unusual characters are passed on unchanged, and a lone surrogate is refused", async () => {
    const connected = await connect();
    const prompt = "a\0b\u2028 👩‍👩‍👧 \u0001\ufeff\\n";
    await answered(connected, "claude_code", { prompt });
    expect(connected.wire.engine.opened[0]?.prompt.text).toBe(prompt);
    const half = await answered(connected, "claude_code", { prompt: "\udc00" });
    expect(half.content[0].text).toContain("prompt: has a lone surrogate at position 0");
    await connected.client.close();
  });

  it("a prompt of a megabyte of control characters is accepted", async () => {
    const connected = await connect();
    const prompt = "\u0001".repeat(1_048_576);
    const reply = await answered(connected, "claude_code", { prompt });
    expect(reply.isError ?? false).toBe(false);
    expect(connected.wire.engine.opened[0]?.prompt.text === prompt).toBe(true);
    await connected.client.close();
  });

  it("a waiting call that asks for progress receives all of it, and any other call receives none", async () => {
    const connected = await connect();
    const { engine } = connected.wire;
    const session = engine.add();
    session.startTurn();
    session.emitText("I look around");
    const news: object[] = [];
    const poll = { action: "poll", sessionId: "s1", waitMs: 20_000 };
    const answer = answered(connected, "claude_code_check", poll, { onprogress: (each) => news.push(each) });
    await expect.poll(() => news).toEqual([{ progress: 1, message: "I look around" }]);
    session.emitText("I have seen it");
    await expect.poll(() => news[1]).toEqual({ progress: 2, message: "I have seen it" });
    session.finishTurn("Done.");
    await answer;
    const before = connected.wire.lines.length;
    session.startTurn();
    const quiet = answered(connected, "claude_code_check", { ...poll, cursor: 1_000, until: "end" });
    session.emitText("No client has asked.");
    session.finishTurn("Done.");
    await quiet;
    expect(connected.wire.lines.length).toBe(before + 1);
    await connected.client.close();
  });

  it("a cancelled call ends its wait without affecting the turn", async () => {
    const connected = await connect();
    connected.wire.engine.add().startTurn();
    const controller = new AbortController();
    const call = answered(
      connected,
      "claude_code_check",
      { action: "poll", sessionId: "s1", waitMs: 30_000 },
      { signal: controller.signal },
    );
    const { engine } = connected.wire;
    await expect.poll(() => engine.waits.length).toBe(1);
    controller.abort();
    await expect(call).rejects.toThrow(/abort/i);
    await expect.poll(() => engine.waits[0]?.signal.aborted).toBe(true);
    expect(engine.sessions.get("s1")?.state.turn).not.toBeNull();
    await connected.client.close();
  });

  it("a failed start of the engine is reported, and the next call tries again", async () => {
    let attempts = 0;
    const wire: Wire = new Wire({
      deps: () => {
        attempts += 1;
        return attempts === 1 ? Promise.reject(new Error("disk /home/secret is full")) : Promise.resolve(wire.deps);
      },
    });
    const client = await connectTo(wire);
    const first = await answered({ wire, client }, "claude_code_session", { action: "list" });
    expect(first.content[0].text).toMatch(/^Error \[INTERNAL\]: The server failed \(fault [0-9a-f]{8}\)/);
    expect(wire.warnings).toMatchObject([{ error: new Error("disk /home/secret is full") }]);
    const second = await answered({ wire, client }, "claude_code_session", { action: "list" });
    expect(second.structuredContent).toEqual({ sessions: [] });
    await client.close();
  });

  it(`a client and the server agree on protocol ${era}`, async () => {
    const { wire, client } = await connect();
    expect(wire.lines[0]).toContain(era);
    await client.close();
  });
});
