import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import { waitForRequest, writing } from "../kit/faults/driving.ts";
import { homeOf, persistently, wholeLog } from "../kit/faults/shims.ts";
import { freeze } from "../kit/store/freeze.ts";
import { useWorld } from "../kit/world.ts";

/** A daemon freezes with an answer in the buffer of its socket, is superseded, and thaws. */

const world = useWorld({ agent: "stand-in" });
const RECORDED = join(import.meta.dirname, "../kit/faults/recorded-claude.mjs");

const storeOf = async () => openDatabase(join(homeOf(world), ".local/state/claude-agents-mcp/store.db"));

/** Expires the daemon's lease at once, instead of after 30 s. Other daemons still watch the daemon for 10 s. */
async function endLease(pid: number): Promise<void> {
  const store = await storeOf();
  store.prepare("UPDATE nodes SET expires_at = 1 WHERE pid = $pid").run({ pid });
  store.close();
}

async function hasRenewed(pid: number): Promise<boolean> {
  const store = await storeOf();
  const rows = store.prepare("SELECT id FROM nodes WHERE expires_at > 1 AND pid = $pid").all({ pid });
  store.close();
  return rows.length === 1;
}

it("when a superseded daemon thaws with an answer, only the new owner's answer reaches Claude Code", async () => {
  const client = await world.shared({ env: { CLAUDE_CODE_MCP_CLAUDE_PATH: RECORDED } });
  const cwd = world.folder();
  const file = join(cwd, "a.txt");
  const { sessionId } = await client.call("claude_code", { prompt: writing(file), cwd });
  const { actions } = await waitForRequest(client, sessionId);
  const answer = { action: "respond_permission", sessionId, requestId: actions[0]!.requestId };
  const frozen = world.daemons()[0]!;
  await freeze(frozen, homeOf(world));
  const unheard = client.refusal("claude_code_check", { ...answer, decision: "allow" });
  await endLease(frozen);
  expect(await unheard.catch((error: unknown) => String(error))).toContain("does not answer");

  const types = async () => (await wholeLog(homeOf(world), sessionId)).map(({ event, type }) => `${type} ${event}`);
  const look = async () => {
    await persistently(async () => client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 }));
    return (await types()).join();
  };
  await expect.poll(look, { timeout: 60_000, interval: 500 }).toContain("owner.changed");
  expect(world.daemons()).toHaveLength(2);
  // Before the thaw: the frozen daemon passes its answer on to the new owner, which takes the first answer.
  await client.call("claude_code_check", { ...answer, decision: "deny" });
  process.kill(frozen, "SIGCONT");
  // By the time of `hasRenewed`, the daemon has read its buffer.
  await expect.poll(async () => hasRenewed(frozen), { timeout: 30_000 }).toBe(true);

  expect(await client.end(sessionId, 1)).toMatchObject({ status: "idle" });
  const isAnswer = (line: string) => line.includes('"control_response"') && line.includes(answer.requestId);
  const answers = readFileSync(join(cwd, "stdin.txt"), "utf8").split("\n").filter(isAnswer);
  expect(answers).toEqual([expect.stringContaining('"deny"')]);
  expect(existsSync(file)).toBe(false);
  const named = /^(turn\.started|turn\.ended|permission\.asked|permission\.answered) /;
  expect((await types()).filter((line) => named.test(line))).toHaveLength(4);
  await client.close();
});

it("a call behind more data than a frozen daemon reads is answered by the next daemon", async () => {
  const client = await world.shared({ client: "v1" });
  const list = async () => client.call("claude_code_session", { action: "list" });
  await list();
  const frozen = world.daemons();
  for (const pid of frozen) await freeze(pid, homeOf(world));
  // A notification without an answer fills the daemon's buffer.
  const params = { text: "x".repeat(2_000_000) };
  void client.transport.send({ jsonrpc: "2.0", method: "notifications/progress", params });
  expect(await list()).toMatchObject({ sessions: expect.any(Array) });
  for (const pid of frozen) process.kill(pid, "SIGCONT");
  await client.close();
});
