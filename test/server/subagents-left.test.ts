import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { limitedClaude } from "../kit/faults/limited-claude.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/**
 * At the end of its own budget, Claude Code leaves a foreground subagent running, and the subagent goes on asking the model.
 */

const world = useWorld({ daemon: "auto" });
let server: Server;
/** Server with a Claude Code that stops no task. */
let deaf: Server;
beforeAll(async () => {
  const args = ["--allow-rules", "Bash"];
  server = await world.server({ args, env: limitedClaude(world.folder(), 0.1) });
  deaf = await world.server({ args, env: limitedClaude(world.folder(), 0.1, { deaf: true }) });
});

/** Price of each answer of the model. */
const PRICE_USD = 0.04;
const usage = { input_tokens: 10_000, output_tokens: 0 };

/** Prompt that starts a shell, which outlives the turn, and a foreground subagent without an end. */
function prompt(): string {
  const bash = (command: string, more = {}) => ({ name: "Bash", input: { command, description: command, ...more } });
  const steps = Array.from({ length: 80 }, () => ({ delayMs: 100, usage, tools: [bash("true")] }));
  const input = { description: "an agent", subagent_type: "general-purpose", prompt: `Work. ${scriptTag(steps)}` };
  const agent = { name: "Agent", input: { ...input, run_in_background: false } };
  return scriptTag([{ usage, tools: [bash("sleep 60", { run_in_background: true }), agent] }]);
}

const asked = (sessionId: string) => world.model.requests.filter((request) => request.sessionId === sessionId).length;
const LIMIT = { isError: true, errorSubtype: "error_max_budget_usd" };

describe("foreground subagents that Claude Code leaves running", () => {
  it("a foreground subagent is stopped before the turn's end is reported; a background shell runs on", async () => {
    const { sessionId } = await server.call("claude_code", { prompt: prompt(), cwd: world.folder() });
    const end = await server.end(sessionId);
    const requests = asked(sessionId);
    expect(end).toMatchObject({ result: LIMIT, background: [{ type: "local_bash", description: "sleep 60" }] });
    // Claude Code asks nothing once its budget is spent.
    const next = await server.call("claude_code_reply", { sessionId, prompt: "More.", waitMs: 40_000 });
    expect(next).toMatchObject({ result: { ...LIMIT, usage: { costUsd: 0 } } });
    expect(asked(sessionId)).toBe(requests);
    await server.call("claude_code_session", { action: "close", sessionId });
  });

  it("a subagent that cannot be stopped ends with the process, whose losses are named; the next prompt runs", async () => {
    const { sessionId } = await deaf.call("claude_code", { prompt: prompt(), cwd: world.folder() });
    const back = scriptTag([{ usage, text: "Back." }]);
    await deaf.call("claude_code_reply", { sessionId, prompt: back, whenBusy: "queue", waitMs: 0 });
    const { background, events } = await deaf.end(sessionId);
    const ends = events.filter(({ type }) => type === "error" || type === "result");
    expect(ends).toMatchObject([
      { type: "error", data: { ...LIMIT, result: expect.stringContaining("with its process: sleep 60.") as string } },
      { type: "result", data: { result: "Back.", isError: false, totalCostUsd: PRICE_USD } },
    ]);
    expect(background).toEqual([]);
    // Counts all answers to the subagent but the last two: the answer cut off by the kill, and the answer before.
    const answers = Number(ends[0]?.data["totalCostUsd"]) / PRICE_USD;
    expect(answers).toBeGreaterThan(asked(sessionId) - 1 - 3);
    await deaf.call("claude_code_session", { action: "close", sessionId });
  });
});
