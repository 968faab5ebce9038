import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FORMER_PRODUCT } from "../../src/domain/names.ts";
import { STORE_FILE } from "../../src/config/store.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { newClient } from "../support/connection.ts";
import { signIn } from "../support/console-client.ts";
import { connectOver } from "../support/http-server.ts";
import { useWorld } from "../support/world.ts";

/** A server that is called while it starts: another process seems to move the state folder, and the server waits for it. */

const world = useWorld({ agent: "stand-in" });

const TOKEN = "ccm_of-whoever-comes-too-early-0123456789";
const STARTING = [503, { status: "unready", reason: "starting" }];
const REFUSED = [503, { error: "unavailable", code: "INTERNAL", message: "The server starts. Try again in a moment." }];

async function startLocked() {
  const state = world.folder();
  mkdirSync(join(state, FORMER_PRODUCT));
  const other = await openDatabase(join(state, FORMER_PRODUCT, STORE_FILE));
  other.exec("BEGIN EXCLUSIVE");
  const address = `127.0.0.1:${String(await freePort())}`;
  const audit = join(world.folder(), "audit.jsonl");
  const args = ["--http", address, "--audit-log", audit];
  const started = world.http({ args, env: { XDG_STATE_HOME: state }, token: TOKEN });
  const origin = `http://${address}`;
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(new URL(path, origin), { headers: { authorization: `Bearer ${TOKEN}` }, ...init });
    return [answer.status, await answer.json()];
  };
  await expect.poll(async () => ask("/readyz").catch(() => undefined), { timeout: 15_000 }).toEqual(STARTING);
  return { audit, origin, started, ask, release: () => other.close() };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

it("a starting server says so when it is asked, and holds a call until it is ready", async () => {
  const { ask, audit, origin, release, started } = await startLocked();
  const client = await connectOver(new URL("/mcp", origin), newClient("modern"), TOKEN);
  const listed = client.call("claude_code_session", { action: "list" });
  const page = await signIn({ origin }, TOKEN);
  const request = "/requests/one/two";
  const deny = { method: "POST", body: JSON.stringify({ decision: "deny" }) };
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  expect(await ask(request)).toEqual(REFUSED);
  expect(await ask(request, { ...deny, headers })).toEqual(REFUSED);
  const sessions = await page.ask("sessions");
  expect([sessions.status, sessions.headers.get("retry-after")]).toEqual([503, "1"]);
  expect([sessions.status, await sessions.json()]).toEqual(REFUSED);
  expect(await ask("/readyz")).toEqual(STARTING);
  release();
  expect(await listed).toMatchObject({ sessions: [] });
  await started;
  expect(await ask("/readyz")).toEqual([200, { status: "ready" }]);
  expect(await ask(request)).toMatchObject([404, { error: "not_found" }]);
  expect(await page.get("sessions")).toMatchObject({ sessions: [] });
  const refused = { tool: "http", action: "answer", requestId: "two", decision: "deny", outcome: "INTERNAL" };
  const lines = async () => (await readFile(audit, "utf8")).split("\n").filter((line) => line.includes('"two"'));
  await expect.poll(lines).toHaveLength(1);
  expect(JSON.parse((await lines()).join())).toMatchObject(refused);
  await client.close();
});
