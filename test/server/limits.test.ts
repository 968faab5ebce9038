import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { stream } from "../kit/clients/streaming.ts";
import { constants } from "../kit/servers/constants.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Turns at a limit of the plan. Each test has a window of its own, because all have one account. */

const world = useWorld({ agent: "stand-in", plan: true });
let server: Server;
beforeAll(async () => {
  const args = ["--toolsets", "all", "--on-limit", "wait", "--budget-usd-per-day", "80"];
  server = await world.server({ args, env: constants({ limitMarginMs: 20 }) });
});

const FAR_S = 3_600;

/** Builds a prompt whose second request is refused until a reset, and answered after that. */
function refused(claim: string, resetsInS: number): string {
  const call = { name: "Bash", input: { command: "echo looked" } };
  const error = { status: 429, plan: { claim, resetsInS } } as const;
  return `Look. ${scriptTag([{ tools: [call] }, { error, text: "I went on." }])}`;
}

const start = async (prompt: string, over: object = {}) =>
  server.call("claude_code", { prompt, cwd: world.folder(), allowedTools: ["Bash"], ...over });
const act = async (action: string, sessionId: string) => server.call("claude_code_session", { action, sessionId });
const requestsOf = (id: string) => world.model.requests.filter(({ sessionId }) => sessionId === id);
const nextPrompt = `Then. ${scriptTag([{ text: "Next." }])}`;

/** Resolves with the first poll of the session that shows a wait. */
async function waitBegun(sessionId: string): Promise<Answer> {
  for (let cursor = 1; ;) {
    const poll = { action: "poll", sessionId, cursor, waitMs: 20_000, until: "event" };
    const answer = await server.call("claude_code_check", poll);
    if (JSON.stringify(answer["waiting"] ?? "").includes("usage_limit")) return answer;
    cursor = answer.nextCursor;
  }
}

/** Expects that the third request of the session is the refused one, byte for byte, and that no request repeats the prompt. */
function expectGoneOn(sessionId: string): void {
  const [, second, third, ...later] = requestsOf(sessionId);
  expect(third?.digest).toBe(second?.digest);
  for (const request of [third, ...later]) expect(request?.told.split("Look. ")).toHaveLength(2);
}

describe.concurrent("`onLimit` of `claude_code`", () => {
  it("report ends the turn with the time of the reset, after which action continue goes on without the prompt", async () => {
    const over = { waitMs: 20_000, advanced: { onLimit: "report" } };
    const { sessionId, ...ended } = await start(refused("five_hour", 3), over);
    const limit = { errorSubtype: "usage_limit", category: "limit", window: "five_hour", retryable: true };
    expect(ended).toMatchObject({ status: "error", result: { isError: true, ...limit } });
    const resetsAt = String(ended.result?.["resetsAt"]);
    const early = await server.refusal("claude_code_session", { action: "continue", sessionId });
    expect(early).toMatchObject({ code: "SESSION_BUSY", text: expect.stringContaining(resetsAt) as string });

    await sleep(Date.parse(resetsAt) - Date.now());
    expect(await act("continue", sessionId)).toMatchObject({ sessionId, status: "running" });
    expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { result: "I went on." } });
    expect(requestsOf(sessionId)).toHaveLength(3);
    expectGoneOn(sessionId);
    const again = await server.refusal("claude_code_session", { action: "continue", sessionId });
    expect(again).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it("wait shows the turn as running and waiting, takes a queued reply, and goes on by itself after the reset", async () => {
    const { sessionId } = await start(refused("seven_day", 4), { advanced: { onLimit: "wait" } });
    const waiting = { kind: "usage_limit", window: "seven_day", until: expect.stringMatching(/^20.*Z$/) as string };
    expect(await waitBegun(sessionId)).toMatchObject({ status: "running", waiting });
    const next = { sessionId, prompt: nextPrompt };
    expect(await server.refusal("claude_code_reply", next)).toMatchObject({ code: "SESSION_BUSY" });
    const queued = await server.call("claude_code_reply", { ...next, whenBusy: "queue" });
    expect(queued).toMatchObject({ status: "running", waiting, queuePosition: 1 });
    expect((await act("get", sessionId)).sessions).toMatchObject([{ status: "running", waiting, queued: 1 }]);
    const { usage } = await act("usage", sessionId);
    const window = { window: "seven_day", usedPercent: 100, refused: true };
    const windows = expect.arrayContaining([expect.objectContaining(window)]) as object[];
    // Each running turn has reserved an eighth.
    const budget = { scope: "principal", usdPerDay: 80, estimated: true };
    expect(usage).toMatchObject({ plan: { paidBy: "CLAUDE_CODE_OAUTH_TOKEN", windows }, budgets: [budget] });
    expect(JSON.stringify(usage)).toMatch(/"reservedUsd":[1-9]0,/);

    expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { result: "Next." } });
    expect(requestsOf(sessionId)).toHaveLength(4);
    expectGoneOn(sessionId);
  });

  it("an interrupt ends a wait, and the next prompt runs at once", async () => {
    const { sessionId } = await start(refused("seven_day_opus", FAR_S));
    expect(await waitBegun(sessionId)).toMatchObject({ waiting: { kind: "usage_limit" } });
    await act("interrupt", sessionId);
    const ended = await server.end(sessionId);
    expect(ended).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
    expect(ended).not.toHaveProperty("waiting");
    const replied = await server.call("claude_code_reply", { sessionId, prompt: nextPrompt, waitMs: 20_000 });
    expect(replied).toMatchObject({ status: "idle", result: { result: "Next." } });
    expect(requestsOf(sessionId)).toHaveLength(3);
  });

  it.each(["claude_code_query", "claude_direct_query"])("a call of %s reports the limit at once", async (tool) => {
    const error = { status: 429, plan: { claim: "seven_day_sonnet", resetsInS: FAR_S } } as const;
    const prompt = `Say. ${scriptTag([{ error }])}`;
    const { data } = await stream(server, tool, { prompt, cwd: world.folder() }, { wantsLogs: false });
    const resetsAt = expect.stringMatching(/^20.*Z$/) as string;
    const failure = { category: "limit", window: "seven_day_sonnet", resetsAt };
    expect(data).toMatchObject(tool === "claude_code_query" ? { result: failure } : { isError: true, ...failure });
  });
});
