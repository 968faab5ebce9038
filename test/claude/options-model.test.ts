import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { play, requestsOf } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

/** The first request of a session with these options. */
async function requestWith(options: object) {
  const { sessionId, result } = await play(server, [{ text: "ok" }], { cwd: world.folder(), ...options });
  const [request] = requestsOf(world, sessionId);
  if (!request) throw new Error("nothing was asked of the model");
  return { ...request, result };
}

const BETA = "context-1m-2025-08-07";
const OWN_PROMPT = "You are an agent working with the user";

describe("an option of `claude_code` that is for the model", () => {
  it("is at Claude Code's own default where nothing is said", async () => {
    const { model, thinking, outputConfig, betas, system, told } = await requestWith({});
    expect({ model, thinking, outputConfig }).toMatchObject({
      model: "claude-opus-5-5",
      thinking: { type: "adaptive", display: "updates" },
      outputConfig: { effort: "medium" },
    });
    expect(betas).not.toContain(BETA);
    expect(system).toContain(OWN_PROMPT);
    expect(told).toContain("<model-script>");
  });

  it("is in the request: `prompt`, `model`, `thinking`, `betas`, `taskBudget`; a `systemPrompt` replaces", async () => {
    const request = await requestWith({
      model: "claude-sonnet-4-5",
      systemPrompt: "You are a parrot.",
      advanced: {
        thinking: { type: "enabled", budgetTokens: 2048 },
        betas: [BETA],
        taskBudget: { total: 50_000 },
      },
    });
    expect(request).toMatchObject({
      model: "claude-sonnet-4-5",
      thinking: { type: "enabled", budget_tokens: 2048 },
      outputConfig: { task_budget: { type: "tokens", total: 50_000 } },
    });
    expect(request.betas).toContain(BETA);
    expect(request.system).toMatch(/You are a parrot\.$/);
    expect(request.system).not.toContain(OWN_PROMPT);
    // Claude Code itself reckons with the larger window, too.
    expect(request.result?.["modelUsage"]).toMatchObject({ "claude-sonnet-4-5": { contextWindow: 1_000_000 } });
  });

  it("is told in a warning where it has no effect: the budget of `thinking` with a model that decides by itself", async () => {
    const advanced = { thinking: { type: "enabled", budgetTokens: 2048 } };
    const prompt = scriptTag([{ text: "ok" }]);
    const start = { prompt, cwd: world.folder(), advanced, waitMs: 40_000 };
    const { sessionId, ...answer } = await server.call("claude_code", start);
    expect(answer["warnings"]).toEqual([expect.stringContaining("thinking.budgetTokens: has no effect")]);
    expect(requestsOf(world, sessionId)[0]?.thinking).toMatchObject({ type: "adaptive" });
  });

  it("is in the request, flat or in `advanced`: `effort`, `thinking`; a `systemPrompt` is added to the preset", async () => {
    const request = await requestWith({
      systemPrompt: { type: "preset", preset: "claude_code", append: "And rhyme." },
      effort: "low",
      advanced: { thinking: { type: "adaptive", display: "summarized" } },
    });
    expect(request).toMatchObject({
      thinking: { type: "adaptive", display: "summarized" },
      outputConfig: { effort: "low" },
    });
    expect(request.system).toMatch(/And rhyme\.$/);
    expect(request.system.length).toBeGreaterThan(2000);
  });

  it("names who answers when the first is overloaded: `fallbackModel`", async () => {
    const overloaded = { error: { status: 529 as const, retryAfterSeconds: 0.05 }, times: 3, text: "From the second." };
    const { sessionId, result, events } = await play(server, [overloaded], {
      cwd: world.folder(),
      model: "claude-opus-5-5",
      advanced: { fallbackModel: "claude-haiku-5-5", env: { CLAUDE_CODE_MAX_RETRIES: "4" } },
    });
    expect(result).toMatchObject({ isError: false, result: "From the second." });
    const asked = requestsOf(world, sessionId).map(({ model }) => model);
    expect([...new Set(asked)]).toEqual(["claude-opus-5-5", "claude-haiku-5-5"]);
    expect(events.map(({ data }) => data["notice"])).toContain("fallback");
  });

  it("gives the result its form: `outputFormat`", async () => {
    const answer = { name: "StructuredOutput", input: { answer: 42 } };
    const schema = { type: "object", properties: { answer: { type: "number" } }, required: ["answer"] };
    const { result, sessionId } = await play(server, [{ tools: [answer] }, { text: "ok" }], {
      cwd: world.folder(),
      advanced: { outputFormat: { type: "json_schema", schema } },
    });
    expect(requestsOf(world, sessionId)[0]?.tools).toContain("StructuredOutput");
    expect(result).toMatchObject({ isError: false, structuredOutput: { answer: 42 } });
  });

  it("ends the turn: `maxTurns`", async () => {
    const look = { tools: [{ name: "Bash", input: { command: "ls" } }] };
    const options = { cwd: world.folder(), maxTurns: 2 };
    const { result, sessionId } = await play(server, [look, look, look, { text: "ok" }], options);
    expect(result).toMatchObject({ isError: true, errorSubtype: "error_max_turns" });
    expect(requestsOf(world, sessionId)).toHaveLength(2);
  });
});
