import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { frames, INITIALIZE, post, type HttpConnection, type HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Sessions of a user look nonexistent to every other user and to the operator. */

const ALL = { scopes: ["read", "run", "approve", "admin"] };
const { args: PRINCIPALS, tokens } = namedUsers({ ada: ALL, bob: ALL, eve: { scopes: ["read", "run", "approve"] } });
const SAID = "the-tide-is-low";
/** Keeps requests open for as long as the tests run. */
const PATIENT = { permissionRequestTimeoutMs: 3_600_000, waitMs: 40_000 };

const world = useWorld({ agent: "stand-in" });
let server: HttpServer;
let auditLog: string;
let ada: HttpConnection;
/** Ada's sessions: waiting for a decision, idle, and closed. `requestId` is the open request. */
let sessions: { id: string; requestId: string }[];
beforeAll(async () => {
  auditLog = join(world.folder(), "audit.jsonl");
  const allowed = ["--allow-disk-resume", "--allow-sensitive-session-details", "--toolsets", "all"];
  server = await world.http({ args: [...PRINCIPALS, "--audit-log", auditLog, ...allowed] });
  ada = await server.connect("modern", tokens.ada);
  const cwd = world.folder();
  const touch = { name: "Bash", input: { command: `touch ${SAID}` } };
  const start = async (script: Parameters<typeof scriptTag>[0]) =>
    ada.call("claude_code", { prompt: scriptTag(script), cwd, advanced: { title: SAID }, ...PATIENT });
  const waiting = await start([{ text: SAID, tools: [touch] }, { text: SAID }]);
  const [action] = (await ada.news(waiting.sessionId)).actions;
  const idle = await start([{ text: SAID }]);
  const closed = await start([{ text: SAID }]);
  await ada.call("claude_code_session", { action: "close", sessionId: closed.sessionId });
  // The end of the closed session's process is the last spontaneous change to `sessions`.
  const metrics = async () => (await server.fetch("/metrics")).text();
  const ended = async () => expect(await metrics()).toMatch(/exits_total\{expected="true"\} 1\b/);
  await vi.waitFor(ended, { timeout: 30_000 });
  const { requestId } = action!;
  sessions = [waiting, idle, closed].map(({ sessionId: id }) => ({ id, requestId }));
});

/** Further arguments of a call besides `sessionId`, by tool or by tool and action. */
const REST: Readonly<Record<string, (requestId: string) => object>> = {
  claude_code_reply: () => ({ prompt: "x" }),
  claude_chat_query: () => ({ prompt: "x" }),
  claude_chat_model: () => ({ model: "haiku" }),
  claude_chat_mode: () => ({ permissionMode: "plan" }),
  "claude_code_check poll": () => ({ waitMs: 45_000, until: "event" }),
  "claude_code_check respond_permission": (requestId) => ({ requestId, decision: "allow", waitMs: 45_000 }),
  "claude_code_check answer_question": (requestId) => ({ requestId, answers: { a: "b" }, waitMs: 45_000 }),
  "claude_code_session rename": () => ({ title: "mine" }),
  "claude_code_session set_model": () => ({ model: "haiku" }),
  "claude_code_session set_permission_mode": () => ({ permissionMode: "plan" }),
  "claude_code_session stop_task": () => ({ taskId: "1" }),
  "claude_code_session task_output": () => ({ taskId: "1" }),
};

/** Other ways to name a session in tools of the listing. */
const MORE: readonly [tool: string, args: (sessionId: string) => object][] = [
  ["claude_code_check", (sessionId) => ({ action: "poll", sessions: [{ sessionId, cursor: 1 }] })],
  ["claude_code_check", (sessionId) => ({ action: "poll", sessionId, eventId: 1 })],
  ["claude_code_session", (sessionId) => ({ action: "get", sessionId, includeSensitive: true })],
  ["claude_code_session", (sessionId) => ({ action: "rewind", sessionId, dryRun: true })],
  ["claude_code_reply", (sessionId) => ({ sessionId, prompt: "x", forkSession: true })],
  ["claude_code_reply", (sessionId) => ({ sessionId, prompt: "x", whenBusy: "steer" })],
  ["claude_code_reply", (sessionId) => ({ sessionId, prompt: "x", diskResumeConfig: { cwd: "/tmp" } })],
  ["claude_code_reply", (sessionId) => ({ sessionId, prompt: "x", resumeSessionAt: randomUUID() })],
];

const Properties = z.looseObject({
  sessionId: z.unknown().optional(),
  action: z.looseObject({ enum: z.array(z.string()) }).optional(),
});

/**
 * Returns every call that can name a session. Derived from the server's listing, so that new tools and actions are included.
 */
async function calls(
  client: HttpConnection,
): Promise<{ tool: string; args: (id: string, requestId: string) => object }[]> {
  const { tools } = await client.client.listTools();
  const listed = tools.flatMap(({ inputSchema, name: tool }) => {
    const { action, sessionId } = Properties.parse(inputSchema.properties);
    if (sessionId === undefined) return [];
    const actions = action?.enum.filter((each) => each !== "list") ?? [undefined];
    return actions.map((each) => {
      const rest = REST[each === undefined ? tool : `${tool} ${each}`];
      const args = (id: string, requestId: string) => ({
        ...(each !== undefined && { action: each }),
        sessionId: id,
        ...rest?.(requestId),
      });
      return { tool, args };
    });
  });
  return [...listed, ...MORE.map(([tool, args]) => ({ tool, args }))];
}

/** Returns everything that Ada can see of `sessions`. */
async function visibleToAda(): Promise<unknown> {
  const look = sessions.map(async ({ id: sessionId }) => [
    (await ada.call("claude_code_session", { action: "get", sessionId, includeSensitive: true })).sessions,
    (await ada.call("claude_code_check", { action: "poll", sessionId, waitMs: 0, responseMode: "full" })).events,
  ]);
  return JSON.parse(
    JSON.stringify(await Promise.all(look), (key, value: unknown) => (key === "remainingMs" ? 0 : value)),
  );
}

const without = (id: string) => (text: string) => text.replaceAll(id, "<id>");

describe.each(["bob", "the operator"] as const)("a session of ada, for %s", (name) => {
  const own = () => (name === "bob" ? tokens.bob : server.token);

  it("a foreign session seems not to exist in every tool and action, and stays unchanged", async () => {
    const before = await visibleToAda();
    const other = await server.connect("modern", own());
    const all = await calls(other);
    expect(all.length).toBeGreaterThan(25);
    for (const { args, tool } of all) {
      const nowhere = randomUUID();
      const none = await other.refusal(tool, { ...args(nowhere, "r") });
      const blank = args("", "");
      expect([tool, blank, none.code]).toEqual([tool, blank, "SESSION_NOT_FOUND"]);
      for (const { id, requestId } of sessions) {
        const { code, text } = await other.refusal(tool, { ...args(id, requestId) });
        expect([tool, blank, code]).toEqual([tool, blank, "SESSION_NOT_FOUND"]);
        expect(without(id)(text)).toBe(without(nowhere)(none.text));
      }
    }
    expect(await visibleToAda()).toEqual(before);
  });

  it("a foreign session seems not to exist in every resource, and is in no list", async () => {
    const other = await server.connect("legacy", own());
    const { resources } = await other.client.listResources();
    expect(JSON.stringify(resources)).not.toContain(sessions[0]!.id);
    const read = async (uri: string) => other.client.readResource({ uri }).catch((error: unknown) => error);
    const { resourceTemplates } = await other.client.listResourceTemplates();
    const paths = resourceTemplates.map(({ uriTemplate }) => uriTemplate.replace(/\{\?.*$/, ""));
    expect(paths).toContain("claude-code://sessions/{id}");
    for (const path of [...paths, "claude-code://sessions/{id}/events?cursor=1&limit=5"]) {
      const nowhere = randomUUID();
      const none = (await read(path.replace("{id}", nowhere))) as Error;
      expect(none.message).toContain("SESSION_NOT_FOUND");
      for (const { id } of sessions) {
        const found = (await read(path.replace("{id}", id))) as Error;
        expect(found).toBeInstanceOf(Error);
        const all = (error: Error) => JSON.stringify([error.message, Object.entries(error)]);
        expect(without(id)(all(found))).toBe(without(nowhere)(all(none)));
      }
    }
    for (const filter of [{}, { includeSensitive: true }, { text: SAID }, { status: ["idle", "waiting_permission"] }]) {
      const { sessions: listed } = await other.call("claude_code_session", { action: "list", ...filter });
      expect(listed).toEqual([]);
    }
  });
});

describe("traces of ada's session", () => {
  it("another user does not reach a session by its owner's idempotencyKey or page token", async () => {
    const bob = await server.connect("modern", tokens.bob);
    const start = { prompt: scriptTag([{ text: "own" }]), cwd: world.folder(), idempotencyKey: "one", waitMs: 40_000 };
    const [hers, his] = [await ada.call("claude_code", start), await bob.call("claude_code", start)];
    expect(his.sessionId).not.toBe(hers.sessionId);
    expect((await ada.call("claude_code", start)).sessionId).toBe(hers.sessionId);
    expect((await bob.call("claude_code", start)).sessionId).toBe(his.sessionId);
    const page = await ada.call("claude_code_session", { action: "list", limit: 1 });
    const pageToken = page["nextPageToken"];
    const next = await bob.call("claude_code_session", { action: "list", pageToken });
    expect(pageToken).toBeTypeOf("string");
    expect(next.sessions.filter(({ sessionId }) => sessionId !== his.sessionId)).toEqual([]);
  });

  it("another user does not reach a protocol session by its id, nor its last message by the message's id", async () => {
    const begin = async (token: string) => {
      const begun = await server.fetch("/mcp", post(INITIALIZE, { authorization: `Bearer ${token}` }));
      let last = "";
      for await (const { id } of frames(begun)) last = id;
      const id = begun.headers.get("mcp-session-id") ?? "";
      return { last, headers: { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" } };
    };
    const [hers, his] = [await begin(tokens.ada), await begin(tokens.bob)];
    expect(hers.last).not.toBe("");
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
    const stream = { accept: "text/event-stream" };
    const of = (token: string) => ({ authorization: `Bearer ${token}` });
    const absent = { "mcp-session-id": randomUUID(), "mcp-protocol-version": "2025-11-25" };
    const requests = (headers: Record<string, string>): RequestInit[] => [
      post(list, { ...headers, ...of(tokens.bob) }),
      { headers: { ...headers, ...stream, ...of(tokens.bob) } },
      { headers: { ...headers, ...stream, ...of(tokens.bob), "last-event-id": hers.last } },
      { method: "DELETE", headers: { ...headers, ...of(tokens.bob) } },
    ];
    for (const [index, request] of requests(hers.headers).entries()) {
      const answer = await server.fetch("/mcp", request);
      const none = await server.fetch("/mcp", requests(absent)[index]);
      expect([index, answer.status, none.status]).toEqual([index, 404, 404]);
      expect(await answer.text()).toBe(await none.text());
    }
    const replay = { ...his.headers, ...stream, ...of(tokens.bob), "last-event-id": hers.last };
    const refused = await server.fetch("/mcp", { headers: replay });
    expect(refused.status).toBe(400);
    expect(await refused.text()).not.toContain("serverInfo");
    const still = await server.fetch("/mcp", post(list, { ...hers.headers, ...of(tokens.ada) }));
    expect(still.status).toBe(200);
    expect(await still.text()).toContain("claude_code");
  });

  it("metrics need the scope admin, and name neither users nor sessions", async () => {
    const metrics = async (token: string) =>
      server.fetch("/metrics", { headers: { authorization: `Bearer ${token}` } });
    const refused = await metrics(tokens.eve);
    expect(refused.status).toBe(403);
    expect(refused.headers.get("www-authenticate")).toContain('scope="admin"');
    expect(await refused.text()).not.toContain("claude_code_mcp");
    const text = await (await metrics(tokens.bob)).text();
    expect(text).toMatch(/permission_requests_open\{kind="permission"\} 1\b/);
    for (const word of ["ada", "bob", "eve", "local", SAID, world.configFolder, ...sessions.map(({ id }) => id)]) {
      expect([word, new RegExp(`\\b${word}\\b`).test(text)]).toEqual([word, false]);
    }
  });

  it("the audit log names the user of each action and of each refused attempt", () => {
    const [waiting] = sessions;
    const entries = readFileSync(auditLog, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const about = entries.filter(({ sessionId, tool }) => sessionId === waiting!.id && tool !== "request");
    expect(about[0]).toMatchObject({ principal: "ada", tool: "claude_code", outcome: "ok" });
    const refused = { action: "respond_permission", outcome: "SESSION_NOT_FOUND" };
    for (const principal of ["bob", "local"]) {
      expect(about).toContainEqual(expect.objectContaining({ principal, ...refused }));
      expect(about.filter((entry) => entry["principal"] === principal && entry["outcome"] === "ok")).toEqual([]);
    }
    expect(entries).toContainEqual(expect.objectContaining({ principal: "eve", tool: "http", outcome: "scope" }));
    for (const secret of [SAID, ...Object.values(tokens), server.token]) {
      expect(readFileSync(auditLog, "utf8")).not.toContain(secret);
      expect(server.stderr()).not.toContain(secret);
    }
  });
});
