import { readdirSync } from "node:fs";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { requestsOf } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
let server: Server;
/** Two sessions blocked before the end of their first turn; `fleeting` is not persisted. */
const gate = "the end";
let fleeting: string;
let lasting: string;
beforeAll(async () => {
  server = await world.server();
  const first = { text: ["潮水每天涨落", "两次。"], tools: [{ name: "Bash", input: { command: "ls" } }] };
  const script = [
    { ...first, chunkDelayMs: 1_500 },
    { text: "End.", gateBefore: gate },
  ];
  const start = async (advanced: object) => {
    const prompt = `one? ${scriptTag(script)}`;
    const options = { cwd: world.folder(), allowedTools: ["Bash"], advanced };
    return (await server.call("claude_code", { prompt, ...options })).sessionId;
  };
  fleeting = await start({ persistSession: false, includePartialMessages: true });
  lasting = await start({ includePartialMessages: false });
});

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

/** Returns Claude Code's transcript files of a session. */
function kept(sessionId: string): string[] {
  const names = readdirSync(world.configFolder, { recursive: true }).map(String);
  return names.filter((name) => name.includes(sessionId) && name.endsWith(".jsonl"));
}

describe("the record of a session of `claude_code`", () => {
  it("`includePartialMessages` keeps partial text only while it is written", async () => {
    const look = async (sessionId: string) =>
      server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    await expect
      .poll(async () => (await look(fleeting))["partial"], { timeout: 10_000, interval: 50 })
      .toBe("潮水每天涨落");
    // The next request comes once the first answer is complete and its tool has run.
    await expect.poll(() => requestsOf(world, fleeting).length, { timeout: 10_000 }).toBe(2);
    expect((await look(fleeting))["partial"]).toBe(undefined);
    expect((await look(lasting))["partial"]).toBe(undefined);
  });

  it("with `persistSession` false, no record exists at Claude Code or in the store, and the session ends with its process", async () => {
    world.model.release(gate);
    await Promise.all([server.end(fleeting), server.end(lasting)]);
    const sessionId = fleeting;
    const next = await server.call("claude_code_reply", { sessionId, prompt: say("two"), waitMs: 40_000 });
    // The first prompt took two turns of the model.
    expect(next.result).toMatchObject({ result: "two", sessionTotalTurns: 3 });
    expect(world.model.requests.findLast(({ lastUserText }) => lastUserText.includes("two?"))?.told).toContain("one?");
    expect([kept(sessionId).length, kept(lasting).length]).toEqual([0, 1]);

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
});
