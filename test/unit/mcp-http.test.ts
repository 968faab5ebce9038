import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, expect, it } from "vitest";

import { createHttpEndpoint, type HttpEndpoint } from "../../src/mcp/http.ts";
import { SessionIds } from "../../src/mcp/session-ids.ts";

/** The endpoint while the server ends: requests still come in on connections that were open before. */

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
beforeEach(() => {
  const factory = () => new McpServer({ name: "test", version: "1" });
  const limits = { most: 10, idleMs: 60_000 };
  const ids = new SessionIds(async () => Promise.resolve(new Uint8Array(32)));
  endpoint = createHttpEndpoint({ factory, limits, ids, following: undefined, log: silent });
});
afterEach(async () => endpoint.close());

async function ask(method: string, params: object, headers: Record<string, string>): Promise<Response> {
  const body = { jsonrpc: "2.0", id: 1, method, params };
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
])("a request of %s is told to come again once the endpoint is closed", async (_, version, method, params) => {
  const headers = { "mcp-protocol-version": version, "mcp-method": method };
  const before = await ask(method, params, headers);
  await before.text();
  expect(before.status).toBe(200);
  await endpoint.close();
  const after = await ask(method, params, headers);
  expect(after.status).toBe(503);
  expect(after.headers.get("retry-after")).toBe("1");
  expect(await after.json()).toMatchObject({ error: { message: expect.stringContaining("shutting down") as string } });
});

it("a request of a 2025 session is told to come again as well: the next server goes on with it", async () => {
  const headers = { "mcp-protocol-version": LEGACY };
  const begun = await ask("initialize", legacyParams, headers);
  await begun.text();
  const session = { ...headers, "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
  expect((await ask("ping", {}, session)).status).toBe(200);
  await endpoint.close();
  expect((await ask("ping", {}, session)).status).toBe(503);
});

/** `Accept` of a POST, and whether its client takes what is answered. */
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
