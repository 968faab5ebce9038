import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { LegacyClients } from "../../src/mcp/legacy-clients.ts";
import { SessionIds } from "../../src/mcp/session-ids.ts";

/** Clients of the 2025 protocol over HTTP, each with its own protocol session. */

const silent = { debug: () => undefined, warn: () => undefined };
const made: LegacyClients[] = [];
const servers: McpServer[] = [];
afterEach(async () => void (await Promise.all(made.splice(0).map(async (clients) => clients.close()))));

/** Number of open servers, counted by `make` and `onclose`. */
let open = 0;
beforeEach(() => void (open = 0));

function clientsWith(limits: Partial<{ most: number; idleMs: number }> = {}, key = 0) {
  const make = () => {
    const server = new McpServer({ name: "test", version: "1" });
    open += 1;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a server is not an event target
    server.server.onclose = () => (open -= 1);
    servers.push(server);
    return server;
  };
  const ids = new SessionIds(async () => Promise.resolve(new Uint8Array(32).fill(key)));
  const clients = new LegacyClients(make, { ids, limits: { most: 10, idleMs: 60_000, ...limits }, log: silent });
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

async function post(clients: LegacyClients, body: object, { principal = "ann", session = "" } = {}) {
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

const begin = async (clients: LegacyClients, principal = "ann") =>
  (await post(clients, INITIALIZE, { principal })).session;
const pings = async (clients: LegacyClients, session: string, principal = "ann") =>
  (await post(clients, PING, { principal, session })).status;

it("a session belongs to its principal alone, and a request outside a session begins none", async () => {
  const clients = clientsWith();
  const session = await begin(clients);
  // The protocol allows visible ASCII.
  expect(session).toMatch(/^[\w.-]{100,200}$/);
  expect(await pings(clients, session)).toBe(200);
  expect(await pings(clients, session, "bob")).toBe(404);
  expect(await pings(clients, "none")).toBe(404);
  expect(await post(clients, PING)).toEqual({ status: 400, session: "" });
  expect(open).toBe(1);
});

it("beyond `most` the longest idle session of a principal is forgotten, and restored at its next request", async () => {
  const clients = clientsWith({ most: 2 });
  await begin(clients, "bob");
  const [first, second] = [await begin(clients), await begin(clients)];
  expect(await pings(clients, first)).toBe(200);
  const third = await begin(clients);
  expect(open).toBe(3);
  for (const session of [first, second, third]) expect(await pings(clients, session)).toBe(200);
  expect(open).toBe(3);
});

it("a session idle for `idleMs` is forgotten, and restored at its next request", async () => {
  const clients = clientsWith({ idleMs: 20 });
  const session = await begin(clients);
  await expect.poll(() => open).toBe(0);
  expect(await pings(clients, session)).toBe(200);
});

it("`close` ends all sessions", async () => {
  const clients = clientsWith();
  const session = await begin(clients);
  await clients.close();
  expect([await pings(clients, session), open]).toEqual([404, 0]);
});

describe("the session of another server", () => {
  it.each([
    ["{}", { elicitation: {} }, { elicitation: { form: {} } }],
    ["forms and URLs", { elicitation: { form: {}, url: {} }, roots: {} }, { elicitation: { form: {}, url: {} } }],
    ["none", {}, {}],
  ])(
    "a session of another server with the same key is restored with the capabilities of its client: %s",
    async (_, capabilities, kept) => {
      const clientInfo = { name: "n".repeat(100), version: "1" };
      const params = { ...INITIALIZE.params, protocolVersion: "2024-11-05", capabilities, clientInfo };
      const { session } = await post(clientsWith(), { ...INITIALIZE, params });
      const next = clientsWith();
      expect(await pings(next, session)).toBe(200);
      expect(await pings(next, session)).toBe(200);
      expect(open).toBe(2);
      const { server } = servers.at(-1)!;
      /* oxlint-disable typescript/no-deprecated -- in the 2025 era nothing else tells */
      expect(server.getClientCapabilities()).toEqual(kept);
      expect(server.getClientVersion()).toEqual({ name: "n".repeat(64), version: "1" });
      // The client sends `mcp-protocol-version` with each request, whatever version `initialize` asked for.
      expect(server.getNegotiatedProtocolVersion()).toBe("2025-06-18");
      /* oxlint-enable typescript/no-deprecated */
    },
  );

  it("concurrent requests restore a session of another server only once", async () => {
    const session = await begin(clientsWith());
    const next = clientsWith();
    const together = [2, 3, 4].map(async (id) => (await post(next, { ...PING, id }, { session })).status);
    expect(await Promise.all(together)).toEqual([200, 200, 200]);
    expect(open).toBe(2);
  });

  it("a restored session has a stream even if `last-event-id` comes from the previous server", async () => {
    const session = await begin(clientsWith());
    const next = clientsWith();
    const first = await listens(next, session, "of-then:3");
    expect(first.status).toBe(200);
    await first.body?.cancel();
  });

  it("a session is not restored for another principal, with another key, if forged, or after 31 days", async () => {
    const session = await begin(clientsWith());
    const next = clientsWith();
    const [payload = "", signature = ""] = session.split(".");
    const other = Buffer.from(payload, "base64url").toString("utf8").replace("2025-06-18", "2025-11-25");
    const forged = [
      payload,
      `${payload}.`,
      `${payload}.${signature}=`,
      `${payload}.${signature}.`,
      `${Buffer.from(other).toString("base64url")}.${signature}`,
      `.${signature}`,
      "x".repeat(10_000),
    ];
    for (const id of forged) expect(await pings(next, id)).toBe(404);
    expect(await pings(next, session, "bob")).toBe(404);
    expect(await pings(clientsWith({}, 1), session)).toBe(404);
    vi.setSystemTime(Date.now() + 31 * 86_400_000);
    expect(await pings(next, session)).toBe(404);
    vi.useRealTimers();
    expect(await pings(next, session)).toBe(200);
  });

  it("a session that its client has ended is not found by the server that ended it", async () => {
    const clients = clientsWith();
    const session = await begin(clients);
    const next = clientsWith();
    expect(await ends(next, session)).toBe(200);
    expect(await pings(next, session)).toBe(404);
    expect(open).toBe(1);
  });
});

async function listens(clients: LegacyClients, session: string, last: string): Promise<Response> {
  const headers = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": last };
  const caller = { principal: "ann", scopes: ["read"] } as const;
  return clients.handle(new Request("http://127.0.0.1/mcp", { headers }), { caller, body: undefined });
}

async function ends(clients: LegacyClients, session: string): Promise<number> {
  const request = new Request("http://127.0.0.1/mcp", { method: "DELETE", headers: { "mcp-session-id": session } });
  const caller = { principal: "ann", scopes: ["read"] } as const;
  return (await clients.handle(request, { caller, body: undefined })).status;
}
