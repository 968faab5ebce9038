import { McpServer } from "@modelcontextprotocol/server";
import { expect, it } from "vitest";

import { createHttpEndpoint } from "../../src/mcp/http.ts";

/** The endpoint while the server ends: requests still come in on connections that were open before. */

const silent = { debug: () => undefined, warn: () => undefined };
const caller = { principal: "ann", scopes: ["read", "run", "approve"] } as const;
const MODERN = "2026-07-28";
const meta = {
  "io.modelcontextprotocol/protocolVersion": MODERN,
  "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const clientInfo = { name: "c", version: "1" };
const legacyParams = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };

it.each([
  ["2026", MODERN, "server/discover", { _meta: meta }],
  ["2025", "2025-06-18", "initialize", legacyParams],
])("a request of %s is told to come again once the endpoint is closed", async (_, version, method, params) => {
  const factory = () => new McpServer({ name: "test", version: "1" });
  const limits = { most: 10, idleMs: 60_000 };
  const endpoint = createHttpEndpoint({ factory, limits, following: undefined, log: silent });
  const ask = async () => {
    const body = { jsonrpc: "2.0", id: 1, method, params };
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": version,
      "mcp-method": method,
    };
    const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body: JSON.stringify(body) });
    return endpoint.fetch(request, { caller, body });
  };
  const before = await ask();
  await before.text();
  expect(before.status).toBe(200);
  await endpoint.close();
  const after = await ask();
  expect(after.status).toBe(503);
  expect(after.headers.get("retry-after")).toBe("1");
  expect(await after.json()).toMatchObject({ error: { message: expect.stringContaining("shutting down") as string } });
});
