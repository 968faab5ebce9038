import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ daemon: "auto" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

/** Polls until `enough` holds; returns all events so far. */
async function pollUntil(sessionId: string, enough: (told: Answer["events"]) => boolean): Promise<Answer["events"]> {
  const told: Answer["events"] = [];
  let cursor = 1;
  for (let polls = 0; polls < 100; polls++) {
    const answer = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor,
      waitMs: 20_000,
      until: "event",
      responseMode: "delta_compact",
    });
    told.push(...answer.events);
    cursor = answer.nextCursor;
    if (enough(told)) return told;
  }
  throw new Error(`never told: ${JSON.stringify(told)}`);
}

const turnEnds = (told: Answer["events"]) => told.filter(({ type }) => type === "result" || type === "error");

describe("work that goes on after the first result", () => {
  it("a turn with a subagent that asks for permission ends only when Claude Code is idle", async () => {
    const cwd = world.folder();
    const file = join(cwd, "by-subagent.txt");
    const subagent = scriptTag([
      { tools: [{ name: "Write", input: { file_path: file, content: "x" } }] },
      { text: "The subagent is done." },
    ]);
    const input = { description: "write", subagent_type: "general-purpose", prompt: `Do it. ${subagent}` };
    const script = [
      { tools: [{ name: "Agent", input }] },
      { text: "Launched, waiting." },
      { text: "Everything is finished." },
    ];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });

    const asked = await server.news(sessionId);
    expect(asked.actions).toMatchObject([{ toolName: "Write", input: { file_path: file } }]);
    expect(asked.actions[0]?.agentID).toMatch(/\w+/);
    expect(asked.background).toMatchObject([{ type: "local_agent", description: "write" }]);
    // The first result exists by now, but the turn has not ended.
    const told = await pollUntil(sessionId, (events) => JSON.stringify(events).includes("Launched, waiting."));
    expect(turnEnds(told)).toEqual([]);
    const done = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      cursor: asked.nextCursor,
      requestId: asked.actions[0]?.requestId,
      decision: "allow",
      until: "end",
    });
    expect(done).toMatchObject({ status: "idle", result: { result: "Everything is finished.", isError: false } });
    expect(done).not.toHaveProperty("background.0");
    expect(existsSync(file)).toBe(true);
    const all = await server.end(sessionId);
    expect(turnEnds(all.events)).toHaveLength(1);
  });

  it("a turn with a background shell ends at once; another turn begins when the shell ends", async () => {
    const cwd = world.folder();
    const input = { command: `while [ ! -e ${cwd}/go ]; do sleep 0.05; done; echo finished`, run_in_background: true };
    const script = [{ tools: [{ name: "Bash", input }] }, { text: "It runs." }, { text: "The shell has ended." }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] });
    const first = await server.end(sessionId);
    expect(first).toMatchObject({ status: "idle", result: { result: "It runs." } });
    expect(first.background).toEqual([{ id: expect.any(String), type: "local_bash", description: input.command }]);

    writeFileSync(join(cwd, "go"), "");
    const told = await pollUntil(sessionId, (events) => turnEnds(events).length === 2);
    expect(turnEnds(told).map(({ type }) => type)).toEqual(["result", "result"]);
    expect(await server.end(sessionId)).toMatchObject({
      status: "idle",
      background: [],
      result: { result: "The shell has ended.", isError: false },
    });
  });
});

/** Returns a background subagent, blocked before its last text until `gate` is released. */
function gatedSubagent(gate: string, usage = {}) {
  const steps = [
    { usage, tools: [{ name: "Bash", input: { command: "ls" } }] },
    { gateBefore: gate, text: "Agent done." },
  ];
  const prompt = `Do it. ${scriptTag(steps)}`;
  return { name: "Agent", input: { description: "work", subagent_type: "general-purpose", prompt } };
}

async function background(sessionId: string): Promise<unknown[]> {
  const { sessions } = await server.call("claude_code_session", { action: "get", sessionId });
  const tasks: unknown = sessions[0]?.["background"] ?? [];
  return z.array(z.unknown()).parse(tasks);
}

describe("a subagent and a shell at once", () => {
  it("a turn ends with its subagent; a shell runs on, and another turn begins when the shell ends", async () => {
    const cwd = world.folder();
    const gate = `gate-${cwd}`;
    const input = { command: `while [ ! -e ${cwd}/go ]; do sleep 0.05; done; echo finished`, run_in_background: true };
    const script = [
      { tools: [gatedSubagent(gate), { name: "Bash", input }] },
      { text: "Both run." },
      { text: "The agent has ended." },
      { text: "The shell has ended." },
    ];
    const start = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] };
    const { sessionId } = await server.call("claude_code", start);
    await expect.poll(async () => (await background(sessionId)).length, { timeout: 10_000 }).toBe(2);
    await pollUntil(sessionId, (told) => JSON.stringify(told).includes("Both run."));
    const running = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(running.status).toBe("running");
    world.model.release(gate);
    const first = await server.end(sessionId);
    expect(first).toMatchObject({ status: "idle", result: { result: "The agent has ended.", isError: false } });
    expect(await background(sessionId)).toHaveLength(1);
    writeFileSync(join(cwd, "go"), "");
    await pollUntil(sessionId, (events) => turnEnds(events).length === 2);
    const all = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      waitMs: 0,
      responseMode: "delta_compact",
    });
    expect(turnEnds(all.events)).toMatchObject([{ data: { result: "The agent has ended." } }, { type: "result" }]);
    expect(all.result?.result).toBe("The shell has ended.");
    expect(await background(sessionId)).toEqual([]);
  });

  it("an interrupt ends the turn and its subagent; the shell runs on", async () => {
    const cwd = world.folder();
    const input = { command: `while [ ! -e ${cwd}/go ]; do sleep 0.05; done`, run_in_background: true };
    const script = [{ tools: [gatedSubagent(`gate-${cwd}`), { name: "Bash", input }] }, { text: "Both run." }];
    const start = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] };
    const { sessionId } = await server.call("claude_code", start);
    await pollUntil(sessionId, (told) => JSON.stringify(told).includes("Both run."));
    await expect.poll(async () => (await background(sessionId)).length, { timeout: 10_000 }).toBe(2);
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    const end = await server.end(sessionId);
    expect(end).toMatchObject({ status: "idle", result: { isError: true, errorSubtype: "interrupted" } });
    await expect.poll(async () => background(sessionId), { timeout: 10_000 }).toMatchObject([{ type: "local_bash" }]);
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a subagent that spends the budget after the first result is stopped", async () => {
    const cwd = world.folder();
    const script = [
      { tools: [gatedSubagent(`gate-${cwd}`, { input_tokens: 900_000 })] },
      { text: "It runs." },
      { text: "never" },
    ];
    const end = await server.call("claude_code", {
      prompt: scriptTag(script),
      cwd,
      allowedTools: ["Bash"],
      waitMs: 40_000,
      advanced: { maxBudgetUsd: 1 },
    });
    expect(end).toMatchObject({ status: "error", result: { errorSubtype: "error_max_budget_usd", retryable: true } });
  });
});
