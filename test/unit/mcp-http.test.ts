import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, expect, it } from "vitest";

import { createHttpEndpoint, type HttpEndpoint } from "../../src/mcp/http-endpoint.ts";
import { SessionIds } from "../../src/mcp/session-ids.ts";

/** After `close`, requests still come in on connections that were open before. */

const silent = { debug: () => undefined, warn: () => undefined };
const caller = { principal: "ann", scopes: ["read", "run", "approve"] } as const;
const MODERN = "2026-07-28";
const meta = {
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const LEGACY = "2025-06-18";
const clientInfo = { name: "c", version: "1" };
const legacyParams = { protocolVersion: LEGACY, capabilities: {}, clientInfo };

let endpoint: HttpEndpoint;
/** Lets `tools/list` answer; until then the request stays open. */
let list: () => void;
beforeEach(() => {
  const listed = new Promise<void>((resolve) => (list = resolve));
  const factory = () => {
    const made = new McpServer({ name: "test", version: "1" }, { capabilities: { tools: {} } });
    made.server.setRequestHandler("tools/list", async () => listed.then(() => ({ tools: [] })));
    return made;
  };
  const limits = { most: 10, idleMs: 60_000 };
  const ids = new SessionIds(async () => Promise.resolve(new Uint8Array(32)));
  endpoint = createHttpEndpoint({ factory, limits, ids, following: undefined, log: silent });
});
afterEach(async () => endpoint.close());

async function ask(method: string, params: object, headers: Record<string, string>): Promise<Response> {
  return send({ jsonrpc: "2.0", id: 1, method, params }, headers);
}

async function send(body: unknown, headers: Record<string, string>): Promise<Response> {
  const accepts = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const request = new Request("http://127.0.0.1/mcp", {
    method: "POST",
    headers: { ...accepts, ...headers },
    body: JSON.stringify(body),
  });
  return endpoint.fetch(request, { caller, body });
}

it.each([
  ["2026", MODERN, "server/discover", { _meta: meta }],
  ["2025", LEGACY, "initialize", legacyParams],
])(
  "a request of the %s era gets 503 with `retry-after` once the endpoint is closed",
  async (_, version, method, params) => {
    const headers = { "mcp-protocol-version": version, "mcp-method": method };
    const before = await ask(method, params, headers);
    await before.text();
    expect(before.status).toBe(200);
    await endpoint.close();
    const after = await ask(method, params, headers);
    expect(after.status).toBe(503);
    expect(after.headers.get("retry-after")).toBe("1");
    expect(await after.json()).toMatchObject({
      error: { message: expect.stringContaining("shutting down") as string },
    });
  },
);

it("a request of a 2025 session gets 503 after `close`, so that the next server can go on with the session", async () => {
  const headers = { "mcp-protocol-version": LEGACY };
  const answer = await ask("initialize", legacyParams, headers);
  await answer.text();
  const session = { ...headers, "mcp-session-id": answer.headers.get("mcp-session-id") ?? "" };
  expect((await ask("ping", {}, session)).status).toBe(200);
  await endpoint.close();
  expect((await ask("ping", {}, session)).status).toBe(503);
});

/** Values of `Accept` in a POST, each with the HTTP status of the answer. */
const ACCEPTS: readonly (readonly [string | undefined, number])[] = [
  ["application/json, text/event-stream", 200],
  ["Application/JSON,TEXT/Event-Stream", 200],
  ["*/*", 200],
  ["text/*, application/*", 200],
  ["application/json;q=0.5, TEXT/*; Q = 0.1", 200],
  [undefined, 200],
  ["application/json", 406],
  ["text/*", 406],
  ["text/event-stream;Q=0, */*", 406],
  ["", 406],
];

it.each(ACCEPTS)("a client of 2025 with Accept %j is answered with %i", async (accept, status) => {
  const body = { jsonrpc: "2.0", id: 1, method: "initialize", params: legacyParams };
  const init = { method: "POST", headers: { "content-type": "Application/JSON; charset=utf-8" } };
  const request = new Request("http://127.0.0.1/mcp", init);
  if (accept !== undefined) request.headers.set("accept", accept);
  const answer = await endpoint.fetch(request, { caller, body });
  await answer.text();
  expect(answer.status).toBe(status);
});

/** Begins a session of the 2025 era; returns the headers for its requests. */
async function beginSession(): Promise<Record<string, string>> {
  const headers = { "mcp-protocol-version": LEGACY };
  const answer = await ask("initialize", legacyParams, headers);
  await answer.text();
  return { ...headers, "mcp-session-id": answer.headers.get("mcp-session-id") ?? "" };
}

const ping = (id: unknown, more: object = {}) => ({ jsonrpc: "2.0", id, method: "ping", ...more });

it.each<[string, unknown, unknown]>([
  ["a string", "x", null],
  ["an empty batch", [], null],
  ["a fractional id", ping(1.5), 1.5],
  ["params that are not an object", ping(7, { params: 5 }), 7],
])("an invalid message is refused under its id: %s", async (_, body, id) => {
  const answer = await send(body, await beginSession());
  expect(answer.status).toBe(400);
  const message = expect.stringMatching(/^Invalid (request|params): /) as string;
  expect(await answer.json()).toMatchObject({ id, error: { message } });
});

it("a valid batch is answered, and an invalid batch is refused under the id of each request", async () => {
  const session = await beginSession();
  const taken = await send([ping(1, { params: null }), ping("1", { x: 1 })], session);
  expect((await taken.text()).match(/"result":/g)).toHaveLength(2);
  for (const batch of [
    [ping(1), ping(2, { params: 5 }), { jsonrpc: "2.0", method: "notifications/x" }],
    [ping(1), ping(2), ping(2)],
  ]) {
    const refused = await send(batch, session);
    expect(refused.status).toBe(400);
    const ids = ((await refused.json()) as { id: unknown }[]).map(({ id }) => id);
    expect(ids).toEqual(batch.flatMap((each) => ("id" in each ? [each.id] : [])));
  }
});

it("the second of two open requests with one id is refused, and the id is free again after the answer", async () => {
  const session = await beginSession();
  const body = { jsonrpc: "2.0", id: 5, method: "tools/list" };
  const first = await send(body, session);
  const second = await send(body, session);
  expect(second.status).toBe(400);
  const message = expect.stringContaining("id: used by another open request of this session") as string;
  expect(await second.json()).toMatchObject({ id: 5, error: { message } });
  list();
  expect(await first.text()).toContain('"tools":[]');
  expect(await (await send(body, session)).text()).toContain('"tools":[]');
});
