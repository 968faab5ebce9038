import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { commandOf, daemonStatus, reportedShims } from "../kit/faults/shims.ts";
import { freeze } from "../kit/store/freeze.ts";
import { useWorld } from "../kit/world.ts";

/** Time limits of a start count only while the daemon is awake, whichever program is frozen. */

const world = useWorld({ agent: "stand-in" });
const GATED = join(import.meta.dirname, "../kit/faults/gated-claude.mjs");
const LIMIT_MS = 2_000;

async function setUp() {
  const HOME = world.folder();
  const [cwd, go] = [world.folder(), join(HOME, "go")];
  const env = { HOME, CLAUDE_CODE_MCP_CLAUDE_PATH: GATED, GO: go };
  const client = await world.shared({ env, settings: { drainMs: 0 } });
  await client.call("claude_code_session", { action: "list" });
  await expect.poll(() => reportedShims(HOME), { timeout: 20_000 }).toHaveLength(1);
  const [shim = 0] = reportedShims(HOME);
  const [{ pid: daemon } = { pid: 0 }] = daemonStatus(HOME);
  const start = async () =>
    client.call("claude_code", {
      prompt: scriptTag([{ text: "done" }]),
      cwd,
      advanced: { sessionInitTimeoutMs: LIMIT_MS },
    });
  const claude = async () => {
    await expect.poll(() => existsSync(join(cwd, "began")), { timeout: 20_000 }).toBe(true);
    return Number(readFileSync(join(cwd, "began"), "utf8"));
  };
  return { HOME, client, claude, daemon, go, shim, start };
}

type SetUp = Awaited<ReturnType<typeof setUp>>;

/** Freezes a program while Claude Code starts; resolves with the `pid` to wake, and the session. */
const FROZEN: Record<string, (begun: SetUp) => Promise<{ pid: number; sessionId: string }>> = {
  "Claude Code": async ({ claude, start }) => {
    const { sessionId } = await start();
    const pid = await claude();
    process.kill(pid, "SIGSTOP");
    return { pid, sessionId };
  },
  "the shim, before it has started Claude Code,": async ({ shim: pid, start }) => {
    process.kill(pid, "SIGSTOP");
    return { pid, sessionId: (await start()).sessionId };
  },
  "the shim, before Claude Code is up,": async ({ claude, shim: pid, start }) => {
    const { sessionId } = await start();
    await claude();
    process.kill(pid, "SIGSTOP");
    return { pid, sessionId };
  },
};

describe("starts while a program is frozen", () => {
  it.each(Object.entries(FROZEN))("a start ends at its limit while %s is frozen", async (_, frozen) => {
    const all = await setUp();
    const { pid, sessionId } = await frozen(all);
    const ended = await all.client.end(sessionId);
    expect(ended).toMatchObject({ status: "error", result: { errorSubtype: "init_timeout" } });
    if (commandOf(pid) !== "") process.kill(pid, "SIGCONT");
    // The session and the daemon can start the next process.
    writeFileSync(all.go, "");
    const reply = { sessionId, prompt: scriptTag([{ text: "again" }]), waitMs: 40_000 };
    expect(await all.client.call("claude_code_reply", reply)).toMatchObject({ result: { result: "again" } });
    await all.client.close();
    await world.closeServers();
  });
});

it("a frozen proxy uses up none of the time that its daemon has to start", async () => {
  const HOME = world.folder();
  const [file, go] = [join(HOME, "late.cjs"), join(HOME, "go")];
  const waits = `while (!require("fs").existsSync(${JSON.stringify(go)})) Atomics.wait(cell, 0, 0, 20);`;
  const cell = "const cell = new Int32Array(new SharedArrayBuffer(4));";
  writeFileSync(file, `if (process.argv.includes("daemon")) { ${cell} ${waits} }`);
  const startMs = 6_000;
  const limit = constants({ daemonStartMs: startMs });
  const client = await world.shared({ env: { HOME, ...limit }, node: ["--require", file] });
  const called = client.call("claude_code_session", { action: "list" });
  await expect.poll(() => world.daemons(), { interval: 20 }).toHaveLength(1);
  // By now, the proxy waits for the daemon to report its start.
  await sleep(500);
  process.kill(client.pid, "SIGSTOP");
  await sleep(startMs + 1_000);
  process.kill(client.pid, "SIGCONT");
  // Overdue timers of the proxy fire before the daemon continues.
  await sleep(200);
  writeFileSync(go, "");
  expect((await called)["note"]).toContain("Work goes on in a daemon");
  await client.close();
});

/** Programs frozen together with the daemon. */
const TOGETHER: Record<string, (begun: SetUp, claude: number) => number[]> = {
  alone: () => [],
  "with all other programs": ({ client, shim }, claude) => [client.pid, shim, claude],
};

it.each(Object.entries(TOGETHER))("a daemon that is frozen %s uses up no limit of a start", async (_, others) => {
  const all = await setUp();
  const { HOME, client, daemon, go } = all;
  const { sessionId } = await all.start();
  const frozen = others(all, await all.claude());
  await freeze(daemon, HOME);
  for (const pid of frozen) process.kill(pid, "SIGSTOP");
  writeFileSync(go, "");
  await sleep(2 * LIMIT_MS);
  for (const pid of [daemon, ...frozen]) process.kill(pid, "SIGCONT");
  expect(await client.end(sessionId)).toMatchObject({ result: { result: "done" } });
  await client.close();
  await world.closeServers();
});
