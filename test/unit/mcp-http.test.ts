import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, expect, it } from "vitest";

import { createHttpEndpoint, type HttpEndpoint } from "../../src/mcp/http.ts";

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
  endpoint = createHttpEndpoint({ factory, limits, following: undefined, log: silent });
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

it("a session of 2025 is gone with the endpoint, and its client is told to begin another", async () => {
  const headers = { "mcp-protocol-version": LEGACY };
  const begun = await ask("initialize", legacyParams, headers);
  await begun.text();
  const session = { ...headers, "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
  expect((await ask("ping", {}, session)).status).toBe(200);
  await endpoint.close();
  expect((await ask("ping", {}, session)).status).toBe(404);
});
