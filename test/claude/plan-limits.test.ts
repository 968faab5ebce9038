import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterEach, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { of, PlanSession, resultOf } from "../kit/plan/plan-session.ts";
import { LIMIT, plan, planSuite, refused } from "../kit/plan/suite.ts";
import { useWorld } from "../kit/world.ts";

/**
 * The contract on the plan of a subscription with the real Claude Code. The nightly workflow runs it with the newest Agent SDK as
 * well, because neither the reports nor a message without content are documented.
 */

planSuite("real");

const world = useWorld({ plan: true });
const sessions: PlanSession[] = [];
const begun = (options: Partial<SessionOptions> = {}) => {
  const session = new PlanSession(world, "real", options);
  sessions.push(session);
  session.begin();
  return session;
};
afterEach(async () => Promise.all(sessions.splice(0).map(async (session) => session.end("kill"))));

it("a subagent in the foreground that was refused is told in `warnings`, whether or not its turn is refused too", async () => {
  const call = {
    description: "help",
    subagent_type: "general-purpose",
    prompt: `Help. ${scriptTag([refused])}`,
    run_in_background: false,
  };
  const asks = { tools: [{ name: "Agent", input: call }], plan: plan(0.9) };
  const warnings = [expect.stringContaining("A subagent was refused at the plan's limit (5-hour window)") as unknown];
  const session = begun();
  const going = resultOf(await session.prompt("THE PROMPT", [asks, { text: "on", plan: plan(0.5) }]));
  expect(going).toMatchObject({ text: "on", isError: false, warnings });
  expect(going).not.toHaveProperty("limit");
  const ended = resultOf(await session.prompt("AGAIN", [asks, { ...refused, text: "went on" }]));
  expect(ended).toMatchObject({ limit: LIMIT, warnings });
  expect(resultOf(await session.sendAgain())).toMatchObject({ text: "went on", isError: false });
});

it("the windows of a login are also reported by `usage`, with the account that the login has left", async () => {
  const folder = world.folder();
  const claudeAiOauth = {
    accessToken: "sk-ant-oat01-of-these-tests",
    refreshToken: "sk-ant-ort01-of-these-tests",
    expiresAt: Date.now() + 8 * 3_600_000,
    scopes: ["user:inference", "user:profile"],
    subscriptionType: "max",
    rateLimitTier: "default_claude_max_5x",
  };
  writeFileSync(join(folder, ".credentials.json"), JSON.stringify({ claudeAiOauth }), { mode: 0o600 });
  writeFileSync(join(folder, ".claude.json"), JSON.stringify({ oauthAccount: { accountUuid: "of-these-tests" } }));
  // A proxy that does not exist, because Claude Code would ask a host outside about the login.
  const env = { CLAUDE_CODE_OAUTH_TOKEN: "", CLAUDE_CONFIG_DIR: folder, HTTPS_PROXY: "http://127.0.0.1:9" };
  const session = begun({ env });
  await session.prompt("One.", [{ text: "ok", plan: plan(0.42) }]);
  const before = session.signals.length;
  const answer = await session.control({ do: "usage" });
  expect(Object.keys(answer ?? {})).toEqual(["context", "costUsd", "modelUsage", "linesAdded", "linesRemoved"]);
  const [reported] = of("plan", session.signals.slice(before));
  expect(reported?.account).toMatchObject({ id: "account:of-these-tests", configFolder: folder, hasWindows: true });
  expect(reported?.report.windows).toContainEqual({ ...LIMIT, usedPercent: 42, source: "usage" });
});

it("a model without a known price is told", async () => {
  const session = begun({ model: "claude-of-these-tests-1" });
  expect(resultOf(await session.prompt("One.", [{ text: "ok" }]))).toMatchObject({ text: "ok", hasUnknownPrice: true });
  const known = begun();
  expect(resultOf(await known.prompt("One.", [{ text: "ok" }]))).not.toHaveProperty("hasUnknownPrice");
});
