import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { scriptTag, type Script } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";
import { report } from "../kit/faults/figures.ts";

const world = useWorld();
let server: Server;
/** Server with a short `inactivityMs`. */
let bounded: Server;
beforeAll(async () => {
  server = await world.server();
  bounded = await world.server({ env: constants({ inactivityMs: 3000 }) });
});

/** Session of each server; a succeeding turn follows each failing turn. */
const sessions = new Map<Server, { sessionId: string; cursor: number }>();
const failed: Script[] = [];

/** Closes all sessions; no process may be left. */
async function endSessions(): Promise<void> {
  for (const [on, { sessionId }] of sessions) await on.call("claude_code_session", { action: "close", sessionId });
  sessions.clear();
  await world.quiet(10_000);
  for (const script of failed.splice(0)) {
    report({ fault: `API: ${JSON.stringify(script[0])}`.slice(0, 60), runs: 1, lost: 0, leftOver: 0 });
  }
}

/** Runs a failing turn, then a succeeding turn; returns the end of the failing one. */
async function run(script: Script, on = server) {
  const known = sessions.get(on);
  const prompt = scriptTag(script);
  const { sessionId } =
    known === undefined
      ? await on.call("claude_code", { prompt, cwd: world.folder() })
      : await on.call("claude_code_reply", { prompt, sessionId: known.sessionId });
  const ended = await on.end(sessionId, known?.cursor);
  const back = scriptTag([{ text: "Back." }]);
  const reply = await on.call("claude_code_reply", { sessionId, prompt: back, waitMs: 40_000 });
  expect(reply).toMatchObject({ status: "idle", result: { result: "Back.", isError: false } });
  sessions.set(on, { sessionId, cursor: reply.nextCursor });
  failed.push(script);
  return ended;
}

describe("failures of the API", () => {
  afterAll(endSessions);

  it.each([
    [401, "access"],
    [403, "access"],
    [429, "overloaded"],
    [500, "overloaded"],
    [529, "overloaded"],
  ] as const)("status %i fails the turn with category %s, and the session continues", async (status, category) => {
    const ended = await run([{ error: { status, times: 99 } }]);
    expect(ended).toMatchObject({ status: "error", result: { isError: true, errorSubtype: "api_error", category } });
    expect(ended.result?.result).toContain(String(status));
  });

  it("retries are reported with their number and delay", async () => {
    const ended = await run([{ error: { status: 529 } }, { text: "At last." }]);
    expect(ended).toMatchObject({ status: "idle", result: { result: "At last.", isError: false } });
    const notices = ended.events.filter(({ data }) => data["notice"] === "retry");
    expect(notices).toHaveLength(1);
    expect(JSON.stringify(notices)).toMatch(/retry 1 of 1 in \d\.\d s/);
  });

  it("a cut stream is retried", async () => {
    const ended = await run([{ text: "Whole again.", cut: true }]);
    expect(ended).toMatchObject({ status: "idle", result: { result: "Whole again.", isError: false } });
  });
});

describe("hangs of the API", () => {
  afterAll(endSessions);

  it.each(["before-headers", "mid-stream"] as const)(
    "a hang %s ends the turn with the reason, within the operator's bound",
    async (hang) => {
      const ended = await run([{ text: "half", hang, times: 99 }], bounded);
      expect(ended).toMatchObject({
        status: "error",
        result: { isError: true, errorSubtype: "inactivity", code: "TIMEOUT" },
      });
    },
  );
});

describe("a wedged Claude Code", () => {
  it("a Claude Code stopped by a signal is killed with its shells, and the session continues", async () => {
    const command = "node -e 'setInterval(() => {}, 1000)'";
    const script = scriptTag([{ tools: [{ name: "Bash", input: { command } }] }, { text: "never" }]);
    const { sessionId } = await bounded.call("claude_code", {
      prompt: script,
      cwd: world.folder(),
      allowedTools: ["Bash"],
    });
    await expect
      .poll(() => world.processes().some((process) => process.command.startsWith("node -e")), { timeout: 30_000 })
      .toBe(true);
    const claude = world.processes().find((process) => process.command.includes(sessionId));
    process.kill(claude?.pid ?? Number.NaN, "SIGSTOP");
    const ended = await bounded.end(sessionId);
    expect(ended).toMatchObject({ status: "error", result: { errorSubtype: "inactivity" } });
    await world.quiet(10_000);
    const reply = await bounded.call("claude_code_reply", {
      sessionId,
      prompt: scriptTag([{ text: "Back." }]),
      waitMs: 40_000,
    });
    expect(reply).toMatchObject({ status: "idle", result: { result: "Back." } });
    report({ fault: "Claude Code wedged (SIGSTOP)", runs: 1, lost: 0, leftOver: 0 });
  });
});
