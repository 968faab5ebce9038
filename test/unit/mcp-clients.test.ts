import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, expect, it } from "vitest";

import { Clients } from "../../src/mcp/clients.ts";

/** Clients of the 2025 protocol over HTTP, each with a session of its own. */

const silent = { debug: () => undefined, warn: () => undefined };
const made: Clients[] = [];
afterEach(async () => void (await Promise.all(made.splice(0).map(async (clients) => clients.close()))));

function clientsWith(limits: Partial<{ most: number; idleMs: number }> = {}) {
  const make = () => new McpServer({ name: "test", version: "1" });
  const clients = new Clients(make, { most: 10, idleMs: 60_000, ...limits }, silent);
  made.push(clients);
  return clients;
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "c", version: "1" } },
};
const PING = { jsonrpc: "2.0", id: 2, method: "ping" };

async function post(clients: Clients, body: object, { principal = "ann", session = "" } = {}) {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
    ...(session !== "" && { "mcp-session-id": session }),
  };
  const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body: JSON.stringify(body) });
  const caller = { principal, scopes: ["read", "run", "approve"] } as const;
  const response = await clients.handle(request, { caller, body });
  await response.text();
  return { status: response.status, session: response.headers.get("mcp-session-id") ?? "" };
}

const begin = async (clients: Clients, principal = "ann") => (await post(clients, INITIALIZE, { principal })).session;
const pings = async (clients: Clients, session: string, principal = "ann") =>
  (await post(clients, PING, { principal, session })).status;

it("a session is its principal's alone, and a request that begins none leaves none", async () => {
  const clients = clientsWith();
  const session = await begin(clients);
  expect(session).toMatch(/^[0-9a-f-]{36}$/);
  expect(await pings(clients, session)).toBe(200);
  expect(await pings(clients, session, "bob")).toBe(404);
  expect(await pings(clients, "none")).toBe(404);
  expect(await post(clients, PING)).toEqual({ status: 400, session: "" });
});

it("beyond the limit of a principal the session that rests longest is forgotten, not one of others", async () => {
  const clients = clientsWith({ most: 2 });
  const others = await begin(clients, "bob");
  const [first, second] = [await begin(clients), await begin(clients)];
  expect(await pings(clients, first)).toBe(200);
  const third = await begin(clients);
  const answers = [first, second, third].map(async (session) => pings(clients, session));
  expect([...(await Promise.all(answers)), await pings(clients, others, "bob")]).toEqual([200, 404, 200, 200]);
});

it("a session that is idle for too long is forgotten", async () => {
  const clients = clientsWith({ idleMs: 20 });
  const session = await begin(clients);
  await expect.poll(async () => pings(clients, session), { interval: 60 }).toBe(404);
});

it("closing ends all sessions", async () => {
  const clients = clientsWith();
  const session = await begin(clients);
  await clients.close();
  expect(await pings(clients, session)).toBe(404);
});
