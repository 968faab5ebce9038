import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const check = async (args: Record<string, unknown>) => server.call("claude_code_check", { waitMs: 40_000, ...args });

describe("several `sessions` of `claude_code_check` at once", () => {
  it("one call waits for several sessions, says which session woke it and is not ended by finished ones", async () => {
    const folders = [world.folder(), world.folder(), world.folder()];
    const gates = folders.map((folder) => `several-${folder}`);
    const started = await Promise.all(
      folders.map(async (cwd, index) => {
        const script = [{ gateBefore: gates[index] ?? "", text: `This was number ${String(index)}.` }];
        return server.call("claude_code", { prompt: scriptTag(script), cwd });
      }),
    );
    let cursors = started.map(({ sessionId, nextCursor: cursor }) => ({ sessionId, cursor }));
    const results: unknown[] = [];
    for (const index of [1, 0, 2]) {
      world.model.release(gates[index] ?? "");
      const answer = await check({ action: "poll", sessions: cursors });
      expect(answer["woke"]).toBe(started[index]?.sessionId);
      expect(answer.sessions.map(({ sessionId }) => sessionId)).toEqual(started.map(({ sessionId }) => sessionId));
      const news = answer.sessions.map((each) => SessionNews.parse(each));
      results.push(news.map(({ result }) => result?.result));
      cursors = news.map(({ sessionId, nextCursor: cursor }) => ({ sessionId, cursor }));
    }
    expect(results).toEqual([
      [undefined, "This was number 1.", undefined],
      ["This was number 0.", undefined, undefined],
      [undefined, undefined, "This was number 2."],
    ]);
    const over = await check({ action: "poll", sessions: cursors });
    expect(over["woke"]).toBeUndefined();
    expect(over.sessions.map(({ status }) => status)).toEqual(["idle", "idle", "idle"]);
  });
});

const SessionNews = z.looseObject({
  sessionId: z.string(),
  nextCursor: z.number(),
  result: z.looseObject({ result: z.string() }).optional(),
});

describe("the tools of Claude Code", () => {
  const tools = async (sessionId: string) => {
    const answer = await check({
      action: "poll",
      sessionId,
      pollOptions: { includeTools: true, includeEvents: false },
    });
    return z.array(z.looseObject({ name: z.string(), category: z.string() })).parse(answer["availableTools"]);
  };

  it("`claude_code_check` lists the tools as Claude Code reports them, each with a known category: `pollOptions`", async () => {
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ text: "hi" }]),
      cwd: world.folder(),
    });
    await server.end(sessionId);
    const listed = await tools(sessionId);
    expect(listed.length).toBeGreaterThan(20);
    expect(listed.filter(({ category }) => category === "other")).toEqual([]);
    expect(listed).toContainEqual({ name: "Agent", category: "agents", description: expect.any(String) });
  });

  it("a tool may be named in any case and by a former name; an unknown name causes a warning", async () => {
    const script = [{ tools: [{ name: "Bash", input: { command: "touch made" } }] }, { text: "Made." }];
    const named = { allowedTools: ["bash"], disallowedTools: ["task", "Reed"] };
    const started = await server.call("claude_code", { prompt: scriptTag(script), cwd: world.folder(), ...named });
    expect(started["warnings"]).toEqual(["disallowedTools: this server knows no tool Reed. Did you mean Read?"]);
    // No request interrupts the turn.
    expect(await server.end(started.sessionId)).toMatchObject({ result: { result: "Made." } });
    const request = await world.model.waitForRequest(({ sessionId }) => sessionId === started.sessionId);
    expect(request.tools).toContain("Bash");
    expect(request.tools).not.toContain("Agent");
    expect((await tools(started.sessionId)).map(({ name }) => name)).not.toContain("Agent");
  });
});

describe("`responseMode` full of `claude_code_check`", () => {
  it("messages come unchanged within `maxEvents` and `maxBytes`, and a cut message can be read whole: `eventId`", async () => {
    const cwd = world.folder();
    writeFileSync(join(cwd, "long.txt"), "a line of the file\n".repeat(600));
    const read = { name: "Read", input: { file_path: join(cwd, "long.txt") }, id: "toolu_long" };
    const script = [{ thinking: "It is long.", text: "I read.", tools: [read] }, { text: "It is read." }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });
    await server.end(sessionId);
    const full = await check({ action: "poll", sessionId, responseMode: "full" });
    const messages = full.events.map(({ data }) => JSON.stringify(data));
    expect(messages.some((text) => text.includes('"type":"thinking"'))).toBe(true);
    const whole = messages.find((text) => text.includes('"tool_use_id":"toolu_long"')) ?? "";
    expect(whole.match(/a line of the file/g)).toHaveLength(600);

    const minimal = await check({ action: "poll", sessionId });
    const call = minimal.events.find(({ data }) => data["tool"] === "Read");
    expect(call?.data).toEqual({
      text: "I read.",
      tool: "Read",
      input: { file_path: join(cwd, "long.txt") },
      ok: true,
    });
    const outcome = full.events.find(({ data }) => JSON.stringify(data) === whole);
    const page = await server.call("claude_code_check", { action: "poll", sessionId, eventId: outcome?.id });
    expect(page["content"]).toBe(whole);
    const [first, ...others] = (await check({ action: "poll", sessionId, responseMode: "full", maxEvents: 1 })).events;
    expect([first, others]).toEqual([full.events[0], []]);
    const cut = await check({ action: "poll", sessionId, responseMode: "full", maxBytes: 4_096 });
    expect(cut["truncatedFields"]).toContain("events");
  });
});

it("a poll shows live text of a language without spaces", async () => {
  const prompt = scriptTag([{ text: ["潮水每天涨落", "两次。"], chunkDelayMs: 1_000 }]);
  const advanced = { includePartialMessages: true };
  const { sessionId } = await server.call("claude_code", { prompt, cwd: world.folder(), advanced });
  const look = async () => check({ action: "poll", sessionId, waitMs: 0 });
  await expect.poll(async () => (await look())["partial"], { timeout: 10_000, interval: 50 }).toBe("潮水每天涨落");
  await server.call("claude_code_session", { action: "cancel", sessionId });
});
