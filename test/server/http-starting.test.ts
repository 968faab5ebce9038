import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { STORE_FILE } from "../../src/config/store-spelling.ts";
import { newClient } from "../kit/clients/connection.ts";
import { signIn } from "../kit/clients/console-client.ts";
import { connectOver } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Tests calls to a server during its start, which a slow disk below the store delays. */

const world = useWorld({ agent: "stand-in" });

const TOKEN = "ccm_of-a-client-that-calls-too-early-01234";
const STARTING = [503, { status: "unready", reason: "starting" }];
const REFUSED = [
  503,
  { error: "unavailable", code: "INTERNAL", message: "The server is starting. Try again in a moment." },
];

/** Delays the server's look-up of the real path of the store until `release` is called. */
function slowDisk(): { env: Record<string, string>; release: () => void } {
  const folder = world.folder();
  const [hook, answer] = [join(folder, "slow.mjs"), join(folder, "answer")];
  const code = `import fs from "node:fs"; import { syncBuiltinESMExports } from "node:module"; import { setTimeout as sleep } from "node:timers/promises";
    const { realpath } = fs.promises;
    fs.promises.realpath = async (path, ...more) => {
      while (String(path).endsWith(${JSON.stringify(STORE_FILE)}) && !fs.existsSync(${JSON.stringify(answer)})) await sleep(20);
      return realpath(path, ...more);
    };
    syncBuiltinESMExports();`;
  writeFileSync(hook, code);
  const env = { NODE_OPTIONS: `--import=${pathToFileURL(hook).href}`, XDG_STATE_HOME: folder };
  return { env, release: () => writeFileSync(answer, "") };
}

async function startSlowly() {
  const { env, release } = slowDisk();
  const address = `127.0.0.1:${String(await freePort())}`;
  const audit = join(world.folder(), "audit.jsonl");
  const args = ["--http", address, "--audit-log", audit];
  const started = world.http({ args, env, token: TOKEN });
  const origin = `http://${address}`;
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(new URL(path, origin), { headers: { authorization: `Bearer ${TOKEN}` }, ...init });
    return [answer.status, await answer.json()];
  };
  await expect.poll(async () => ask("/readyz").catch(() => undefined), { timeout: 15_000 }).toEqual(STARTING);
  return { audit, origin, started, ask, release };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

it("a starting server answers probes, pages and webhook answers with 503, and holds MCP calls until it is ready", async () => {
  const { ask, audit, origin, release, started } = await startSlowly();
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
