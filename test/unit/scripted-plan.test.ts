import { afterEach, beforeEach, expect, it } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../src/demo/model/server.ts";

/** The plan of a subscription in the scripted model, and comparison of its requests. */

let model: ScriptedModel;
beforeEach(async () => (model = await startScriptedModel()));
afterEach(async () => model.close());

const HEADER = "anthropic-ratelimit-unified-";

async function post(body: object): Promise<Response> {
  const all = { model: "m", max_tokens: 1000, ...body };
  return fetch(`${model.url}/v1/messages`, { method: "POST", body: JSON.stringify(all) });
}

/** Headers of the answer, without their common beginning. */
async function play(script: Script, stream = false): Promise<Record<string, string>> {
  const { headers } = await post({ stream, messages: [{ role: "user", content: scriptTag(script) }] });
  const named = [...headers].filter(([name]) => name.startsWith(HEADER));
  return Object.fromEntries(named.map(([name, value]) => [name.slice(HEADER.length), value]));
}

it("`plan` sends headers about the plan with an error, and with each form of an answer", async () => {
  const script: Script = [
    { error: { status: 429, plan: { claim: "seven_day", sevenDay: { used: 1, resetsAt: 1_800_000_000 } } } },
    {
      text: "ok",
      plan: {
        claim: "five_hour",
        fiveHour: { used: 0.42, resetsAt: 1_800_000_000, status: "allowed_warning", threshold: 0.4 },
        sevenDayOverageIncluded: { used: 0.1 },
        overage: { status: "rejected", inUse: false, disabledReason: "out_of_credits" },
      },
    },
  ];
  expect(await play(script)).toEqual({
    status: "rejected",
    reset: "1800000000",
    "representative-claim": "seven_day",
    "7d-utilization": "1",
    "7d-reset": "1800000000",
  });
  for (const stream of [true, false]) {
    expect(await play(script, stream)).toEqual({
      status: "allowed",
      reset: "1800000000",
      "representative-claim": "five_hour",
      "5h-utilization": "0.42",
      "5h-reset": "1800000000",
      "5h-status": "allowed_warning",
      "5h-surpassed-threshold": "0.4",
      "7d_oi-utilization": "0.1",
      "overage-status": "rejected",
      "overage-in-use": "false",
      "overage-disabled-reason": "out_of_credits",
    });
  }
  expect(await play([{ text: "ok" }])).toEqual({});
});

it("`resetsInS` counts from the answer on", async () => {
  const { "5h-reset": reset } = await play([{ plan: { fiveHour: { resetsInS: 600 } } }]);
  expect(Math.abs(Number(reset) - Date.now() / 1000 - 600)).toBeLessThan(30);
});

it("`digest` is equal for requests with equal system prompts and messages, apart from marks for the cache", async () => {
  const text = { type: "text", text: "hi" };
  const messages = [{ role: "user", content: [text] }];
  await post({ messages, system: "s", tools: [{ name: "Bash" }] });
  await post({ messages: [{ role: "user", content: [{ ...text, cache_control: {} }] }], system: "s" });
  await post({ messages, system: "other" });
  await post({ messages });
  await post({ messages: [{ role: "user", content: [{ ...text, more: 1 }] }], system: "s" });
  const [first, marked, ...others] = model.requests.map(({ digest }) => digest);
  expect(first).toMatch(/^[0-9a-f]{64}$/);
  expect(marked).toBe(first);
  expect(new Set([first, ...others]).size).toBe(4);
});

it("the environment signs Claude Code in to a subscription only if asked to", () => {
  expect(model.environment("/c")).toMatchObject({ ANTHROPIC_API_KEY: "scripted-model" });
  const environment = model.environment("/c", { plan: true });
  expect(environment).toMatchObject({ CLAUDE_CODE_OAUTH_TOKEN: "scripted-model" });
  expect(environment).not.toHaveProperty("ANTHROPIC_API_KEY");
});
