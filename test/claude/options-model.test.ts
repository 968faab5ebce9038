import { beforeAll, describe, expect, it } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { runScript, requestsOf, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const ok = [{ text: "ok" }];

/** Returns the first request of a session with `options`, and the result of the turn. */
async function requestWith(options: object, script: Script = ok) {
  const { sessionId, result } = await runScript(server, script, { cwd: world.folder(), ...options });
  const [request] = requestsOf(world, sessionId);
  if (!request) throw new Error("nothing was asked of the model");
  return { ...request, result };
}

const BETA = "context-1m-2025-08-07";
const OWN_PROMPT = "You are an agent working with the user";

describe("an option of `claude_code` that is for the model", () => {
  it("an omitted option has Claude Code's own default", async () => {
    const { model, thinking, outputConfig, betas, system, ...request } = await requestWith({});
    expect({ model, thinking, outputConfig }).toMatchObject({
      model: "claude-opus-5-5",
      thinking: { type: "adaptive", display: "updates" },
      outputConfig: { effort: "medium" },
    });
    expect(betas).not.toContain(BETA);
    expect(system).toContain(OWN_PROMPT);
    expect(request.told).toContain("<model-script>");
  });

  it("the request has `prompt`, `model`, `thinking`, `betas`, `taskBudget`; `systemPrompt` replaces the default; `outputFormat` shapes the result", async () => {
    const schema = { type: "object", properties: { answer: { type: "number" } }, required: ["answer"] };
    const answer = { tools: [{ name: "StructuredOutput", input: { answer: 42 } }] };
    const request = await requestWith(
      {
        model: "claude-sonnet-4-5",
        systemPrompt: "You are a parrot.",
        advanced: {
          thinking: { type: "enabled", budgetTokens: 2048 },
          betas: [BETA],
          taskBudget: { total: 50_000 },
          outputFormat: { type: "json_schema", schema },
        },
      },
      [answer, ...ok],
    );
    expect(request).toMatchObject({
      model: "claude-sonnet-4-5",
      thinking: { type: "enabled", budget_tokens: 2048 },
      outputConfig: { task_budget: { type: "tokens", total: 50_000 } },
    });
    expect(request.betas).toContain(BETA);
    expect(request.system).toMatch(/You are a parrot\.$/);
    expect(request.system).not.toContain(OWN_PROMPT);
    // Claude Code itself uses the larger window, too.
    expect(request.result?.["modelUsage"]).toMatchObject({ "claude-sonnet-4-5": { contextWindow: 1_000_000 } });
    expect(request.tools).toContain("StructuredOutput");
    expect(request.result).toMatchObject({ isError: false, structuredOutput: { answer: 42 } });
  });

  it("`effort` and `thinking` reach the request, flat or in `advanced`; a preset `systemPrompt` is extended; `maxTurns` ends the turn", async () => {
    const look = { tools: [{ name: "Bash", input: { command: "ls" } }] };
    const request = await requestWith(
      {
        systemPrompt: { type: "preset", preset: "claude_code", append: "And rhyme." },
        effort: "low",
        maxTurns: 2,
        advanced: { thinking: { type: "adaptive", display: "summarized" } },
      },
      [look, look, look, ...ok],
    );
    expect(request).toMatchObject({
      thinking: { type: "adaptive", display: "summarized" },
      outputConfig: { effort: "low" },
    });
    expect(request.system).toMatch(/And rhyme\.$/);
    expect(request.system.length).toBeGreaterThan(2000);
    expect(request.result).toMatchObject({ isError: true, errorSubtype: "error_max_turns" });
    expect(requestsOf(world, request.sessionId ?? "")).toHaveLength(2);
  });

  it("`fallbackModel` answers if the first model is overloaded; `thinking` without effect gives a warning (a budget, or `disabled`)", async () => {
    const overloaded = { error: { status: 529 as const, retryAfterSeconds: 0.05 }, times: 3, text: "From the second." };
    const { sessionId, ...answer } = await server.call("claude_code", {
      prompt: scriptTag([overloaded]),
      cwd: world.folder(),
      model: "claude-opus-5-5",
      advanced: {
        fallbackModel: "claude-haiku-5-5",
        thinking: { type: "enabled", budgetTokens: 2048 },
        env: { CLAUDE_CODE_MAX_RETRIES: "4" },
      },
      waitMs: 40_000,
    });
    expect(answer["warnings"]).toEqual([expect.stringContaining("thinking.budgetTokens: has no effect")]);
    const asked = requestsOf(world, sessionId);
    expect(asked[0]?.thinking).toMatchObject({ type: "adaptive" });
    expect([...new Set(asked.map(({ model }) => model))]).toEqual(["claude-opus-5-5", "claude-haiku-5-5"]);
    const thoughtless = { cwd: world.folder(), advanced: { thinking: { type: "disabled" } }, waitMs: 40_000 };
    const thinks = await server.call("claude_code", { ...thoughtless, prompt: "Think." });
    expect(thinks["warnings"]).toEqual([expect.stringContaining("thinking.type: disabled has no effect")]);
    expect(requestsOf(world, thinks.sessionId)[0]?.thinking).toMatchObject({ type: "adaptive" });
    const { events, result } = await readWholeLog(server, sessionId);
    expect(result).toMatchObject({ isError: false, result: "From the second." });
    expect(events.map(({ data }) => data["notice"])).toContain("fallback");
  });
});
