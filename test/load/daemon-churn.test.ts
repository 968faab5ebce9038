import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";

import { existingFolders, listNames, socketFolders } from "../../src/daemon/socket-folders.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { ClientKind } from "../kit/clients/connection.ts";
import { storedNodes } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Clients that come and go in every way leave nothing behind. */

const world = useWorld({ agent: "stand-in" });

const isLong = process.env["LOAD"] === "full";
const DURATION_MS = isLong ? 1_800_000 : 20_000;
/** Time between pairs of clients, ms. The pause leaves the processor to other tests. */
const PERIOD_MS = isLong ? 0 : 2_000;
/** Limit of a daemon's log plus 1 MiB, bytes, because the daemon checks the size only every few seconds. */
const MAX_LOG = 4_194_304 + 1_048_576;

/** Idle processes of abandoned sessions are ended to make room for others. */
const settings = { maxLive: 8 };

const KINDS: ClientKind[] = ["modern", "legacy", "v1"];

/** Runs a turn in a session; then leaves in order, by SIGKILL, or in the middle of the next turn. */
async function comeAndGo(count: number, cwd: string): Promise<void> {
  const client = await world.shared({ settings, client: KINDS[count % 3]! });
  const prompt = scriptTag([{ text: "done" }]);
  const { result, sessionId } = await client.call("claude_code", { prompt, cwd, waitMs: 40_000 });
  expect(result).toMatchObject({ result: "done", isError: false });
  const how = count % 4;
  if (how === 1) await client.call("claude_code_reply", { sessionId, prompt });
  else await client.call("claude_code_session", { action: "close", sessionId });
  if (how === 2) process.kill(client.pid, "SIGKILL");
  else await client.close();
  await client.gone;
}

it(
  `clients that come and go for ${String(DURATION_MS / 1_000)} s leave nothing behind`,
  { timeout: DURATION_MS + 300_000 },
  async () => {
    const home = join(world.configFolder, "..");
    const state = join(home, ".local/state/claude-agents-mcp");
    const cwd = world.folder();
    // Keeps the daemon alive, and ends sessions left by other clients.
    const resident = await world.shared({ settings });
    const found = async (pid: number) => {
      const list = { action: "list", limit: 200, status: ["idle", "running", "waiting_permission", "error"] };
      for (let open = await resident.call("claude_code_session", list); open.sessions.length > 0;) {
        for (const { sessionId } of open.sessions) {
          await resident.end(sessionId);
          await resident.call("claude_code_session", { action: "close", sessionId });
        }
        open = await resident.call("claude_code_session", list);
      }
      await world.quiet(30_000);
      return {
        daemons: world.daemons(),
        openFiles: readdirSync(`/proc/${String(pid)}/fd`).length,
        nodes: await storedNodes(home),
        sockets: await socketsOf(state),
      };
    };
    for (let count = 0; count < 4; count++) await comeAndGo(count, cwd);
    const [pid = 0] = world.daemons();
    const before = await found(pid);
    const end = performance.now() + DURATION_MS;
    let clients = 0;
    for (; performance.now() < end; clients += 2) {
      const pause = sleep(PERIOD_MS);
      await Promise.all([comeAndGo(clients, cwd), comeAndGo(clients + 1, cwd), pause]);
    }
    const after = await found(pid);
    process.stdout.write(`CHURN ${String(clients)} clients: ${JSON.stringify({ before, after })}\n`);
    expect(clients).toBeGreaterThan(3);
    expect(after).toEqual({ ...before, openFiles: expect.any(Number) as number });
    expect(after.openFiles).toBeLessThanOrEqual(before.openFiles);
    for (const log of readdirSync(join(state, "logs"))) {
      expect(statSync(join(state, "logs", log)).size).toBeLessThan(MAX_LOG);
    }
  },
);

/** Below a long temporary folder, sockets are not in the state folder. */
async function socketsOf(state: string): Promise<string[]> {
  const folders = await existingFolders(await socketFolders(state));
  return (await Promise.all(folders.map(listNames))).flat();
}
