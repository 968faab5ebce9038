import { readdirSync } from "node:fs";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

/** Names of all files that Claude Code has written below its folder. */
function kept(): string[] {
  return readdirSync(world.configFolder, { recursive: true }).map(String);
}

describe("what is kept of a session of `claude_code`", () => {
  it("nothing with `persistSession` false, neither by Claude Code nor in the store; it ends with its process", async () => {
    const cwd = world.folder();
    const { sessionId } = await server.call("claude_code", {
      prompt: say("one"),
      cwd,
      waitMs: 40_000,
      advanced: { persistSession: false },
    });
    const next = await server.call("claude_code_reply", { sessionId, prompt: say("two"), waitMs: 40_000 });
    expect(next.result).toMatchObject({ result: "two", sessionTotalTurns: 2 });
    expect(world.model.requests.findLast(({ lastUserText }) => lastUserText.includes("two?"))?.told).toContain("one?");
    expect(kept().filter((name) => name.includes(sessionId) && name.endsWith(".jsonl"))).toEqual([]);

    const listed = await server.call("claude_code_session", { action: "list" });
    expect(listed.sessions.map((session) => session.sessionId)).toContain(sessionId);
    const other = await world.server();
    const elsewhere = { action: "get", sessionId };
    expect(await other.refusal("claude_code_session", elsewhere)).toMatchObject({ code: "SESSION_NOT_FOUND" });

    const claude = world.processes().find(({ command }) => command.includes(sessionId));
    process.kill(claude?.pid ?? Number.NaN, "SIGKILL");
    await expect
      .poll(async () => (await server.call("claude_code_session", { action: "get", sessionId })).sessions[0]?.status)
      .toBe("closed");
    const late = { sessionId, prompt: say("three") };
    expect(await server.refusal("claude_code_reply", late)).toMatchObject({ code: "CANCELLED" });
  });

  it("the text that is being written only while it is: `includePartialMessages`", async () => {
    const gate = `gate-${world.folder()}`;
    const script = [
      { text: ["Once upon ", "a time."], tools: [{ name: "Bash", input: { command: "ls" } }] },
      { text: "End." },
    ];
    const start = async (includePartialMessages: boolean) => {
      const { sessionId } = await server.call("claude_code", {
        prompt: scriptTag([
          { ...script[0], chunkDelayMs: 1_500 },
          { ...script[1], gateBefore: gate },
        ]),
        cwd: world.folder(),
        allowedTools: ["Bash"],
        advanced: { includePartialMessages },
      });
      return sessionId;
    };
    const [told, silent] = [await start(true), await start(false)];
    const look = async (sessionId: string) =>
      server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    await expect
      .poll(async () => (await look(told))["partial"], { timeout: 10_000, interval: 50 })
      .toMatch(/^Once upon/);
    // The next request comes when the first answer is whole and its tool has run.
    const requests = () => world.model.requests.filter((request) => request.sessionId === told && !request.subagent);
    await expect.poll(() => requests().length, { timeout: 10_000 }).toBe(2);
    expect((await look(told))["partial"]).toBe(undefined);
    expect((await look(silent))["partial"]).toBe(undefined);
    world.model.release(gate);
    await Promise.all([server.end(told), server.end(silent)]);
  });
});
