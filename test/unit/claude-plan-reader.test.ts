import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";

import { MessageReader } from "../../src/claude/messages.ts";
import { readUsageWindows } from "../../src/claude/plan-reader.ts";
import type { Account } from "../../src/domain/plan.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";

/** Reports on the plan of a subscription, in the form that Claude Code sends them (test/claude/plan-limits.test.ts). */

type Loose = Readonly<Record<string, unknown>>;

const ACCOUNT: Account = { id: "account:a", paidBy: "a login", configFolder: "/c", hasWindows: true };
const RESET = 1_795_889_839;
const WEEK = 1_796_186_239;
const WINDOWS = {
  five_hour: { utilization: 0.4249, resetsAt: RESET },
  seven_day: { utilization: 0.1, resetsAt: WEEK },
};

const event = (info: Loose): Loose => ({ type: "rate_limit_event", rate_limit_info: info });
const REJECTED = { status: "rejected", rateLimitType: "five_hour", resetsAt: RESET, isUsingOverage: false };
const PASSING = { status: "rejected", isUsingOverage: false };
const synthetic = (info?: Loose): Loose => ({
  type: "assistant",
  error: "rate_limit",
  parent_tool_use_id: null,
  message: { model: "<synthetic>", content: [{ type: "text", text: "You've hit your 5-hour limit" }] },
  ...(info && { api_error_params: { rate_limit_info: info } }),
});
const spokenIn = (parent: string | null): Loose => ({
  type: "assistant",
  parent_tool_use_id: parent,
  message: { content: [{ type: "text", text: "Well." }] },
});
const RESULT: Loose = {
  type: "result",
  subtype: "success",
  is_error: true,
  terminal_reason: "api_error",
  api_error_status: 429,
  result: "You've hit your 5-hour limit",
  num_turns: 1,
  total_cost_usd: 0,
  usage: {},
  modelUsage: {},
  permission_denials: [],
};
const agentEnded = { type: "system", subtype: "task_notification", task_id: "t", status: "failed" };
const summary = "Agent terminated early due to an API error: You've hit your 5-hour limit";

function read(messages: readonly Loose[], reader = newReader()): AgentSignal[] {
  return messages.flatMap((message) => reader.read(message as unknown as SDKMessage));
}

function newReader(): MessageReader {
  return new MessageReader("s", undefined, { expectsStructured: false, account: ACCOUNT });
}

const plans = (signals: readonly AgentSignal[]) => signals.filter(({ type }) => type === "plan");
const resultIn = (signals: readonly AgentSignal[]) =>
  signals.flatMap((signal) => (signal.type === "result" ? [signal.result] : [])).at(-1);

describe("an event about the plan", () => {
  it("an event reports each window with percent and milliseconds, and becomes a notice", () => {
    const info = { status: "allowed", rateLimitType: "five_hour", unifiedWindows: WINDOWS };
    expect(read([event(info)])).toEqual([
      {
        type: "plan",
        account: ACCOUNT,
        report: {
          windows: [
            { window: "five_hour", usedPercent: 42.5, resetsAt: RESET * 1000, source: "headers" },
            { window: "seven_day", usedPercent: 10, resetsAt: WEEK * 1000, source: "headers" },
          ],
          isUsingOverage: false,
        },
      },
      {
        type: "notice",
        kind: "rate_limit",
        message: "5-hour window: 42 % used, resets 18:17 UTC; weekly window: 10 % used, resets 2026-12-02 04:37 UTC",
        details: event(info),
      },
    ]);
  });

  it.each([
    ["of a rejection", REJECTED, [{ window: "five_hour", resetsAt: RESET * 1000, isRejected: true }], false],
    [
      "of a rejection with shares",
      { ...REJECTED, unifiedWindows: WINDOWS },
      [{ window: "seven_day" }, { window: "five_hour", usedPercent: 42.5, isRejected: true, source: "rejection" }],
      false,
    ],
    [
      "of a rejection for a model",
      { ...REJECTED, rateLimitType: "seven_day_opus", resetsAt: undefined },
      [{ window: "seven_day_opus", isRejected: true, source: "rejection" }],
      false,
    ],
    [
      "of requests that are paid beyond the plan",
      { ...REJECTED, isUsingOverage: true, unifiedWindows: { five_hour: { utilization: 1, resetsAt: RESET } } },
      [{ window: "five_hour", usedPercent: 100, resetsAt: RESET * 1000, source: "headers" }],
      true,
    ],
    ["of overage without windows", { ...REJECTED, isUsingOverage: true }, [], true],
  ])("an event %s is reported as such", (_, info, windows, isUsingOverage) => {
    const report = plans(read([event(info)]))[0];
    expect(report).toMatchObject({ report: { windows, isUsingOverage } });
  });

  it.each([
    ["a rejection", REJECTED, "5-hour window: used up, resets 18:17 UTC"],
    ["overage", { ...REJECTED, isUsingOverage: true }, "Requests are paid beyond the plan"],
    ["a passing limit", PASSING, "The API limits requests for now, within the plan"],
    ["no headers", { status: "allowed" }, "The plan allows requests"],
    ["an impossible time", { ...REJECTED, resetsAt: 1e300 }, "5-hour window: used up"],
    ["nothing known", "odd", "rate_limit_event"],
  ])("the notice of %s is a short sentence", (_, info, message) => {
    expect(read([event(info as Loose)])).toContainEqual(expect.objectContaining({ kind: "rate_limit", message }));
  });

  it.each([PASSING, { status: "allowed" }, {}])("an event without a window reports nothing: %j", (info) => {
    expect(plans(read([event(info)]))).toEqual([]);
  });

  it("without an account, an event reports nothing", () => {
    const reader = new MessageReader();
    expect(plans(read([event(REJECTED)], reader))).toEqual([]);
  });
});

describe("a result", () => {
  const LIMIT = { window: "five_hour", resetsAt: RESET * 1000 };

  it.each([
    ["after the event of a rejection", [event(REJECTED), synthetic()], LIMIT],
    ["after a refusal without an event, as of an equal rejection", [synthetic(REJECTED)], LIMIT],
    [
      "after a refusal and an answer to a subagent",
      [event(REJECTED), synthetic(REJECTED), spokenIn("t"), event({ status: "allowed" })],
      LIMIT,
    ],
    ["after a refusal and an answer to the same conversation", [synthetic(REJECTED), spokenIn(null)], undefined],
    [
      "after a refusal without a window",
      [event({ ...REJECTED, rateLimitType: undefined }), synthetic({ ...REJECTED, rateLimitType: undefined })],
      { ...LIMIT, window: "overage" },
    ],
    ["without any event, as with an API key", [synthetic()], undefined],
    ["after a fault that is no limit of the plan", [event(REJECTED), event(PASSING), synthetic()], undefined],
    ["with overage", [event({ ...REJECTED, isUsingOverage: true }), synthetic()], undefined],
    ["after requests were allowed again", [event(REJECTED), event({ status: "allowed" }), synthetic()], undefined],
  ])("an error 429 %s names the limit only if there is one", (_, before, limit) => {
    const result = resultIn(read([...before, RESULT]));
    expect(result?.limit).toEqual(limit);
    expect(result?.category).toBe(limit ? "limit" : "overloaded");
  });

  it.each([
    ["a success", { is_error: false, api_error_status: null, terminal_reason: "completed" }],
    ["another error of the API", { api_error_status: 529 }],
    ["another end", { terminal_reason: "max_turns" }],
    ["an interrupt", { subtype: "error_during_execution", errors: [] }],
  ])("%s after a rejection names no limit", (_, more) => {
    expect(resultIn(read([event(REJECTED), { ...RESULT, ...more }]))).not.toHaveProperty("limit");
  });

  it("a second rejection names the limit without a second event", () => {
    const signals = read([event(REJECTED), synthetic(REJECTED), RESULT, synthetic(REJECTED), RESULT]);
    expect(resultIn(signals)?.limit).toEqual(LIMIT);
    expect(plans(signals)).toHaveLength(1);
  });

  it("a rejection that another server has read is known after a takeover", () => {
    const reader = newReader();
    reader.remember([synthetic(REJECTED)]);
    expect(resultIn(read([RESULT], reader))?.limit).toEqual(LIMIT);
    const answered = newReader();
    answered.remember([synthetic(REJECTED), { type: "assistant", message: { content: [] } }]);
    expect(resultIn(read([RESULT], answered))).not.toHaveProperty("limit");
  });

  it("a subagent that was refused is told in `warnings`, once", () => {
    const signals = read([event(REJECTED), { ...agentEnded, summary }, { ...agentEnded, summary }, RESULT]);
    expect(resultIn(signals)?.warnings).toEqual([
      "A subagent was refused at the plan's limit (5-hour window). Its work is lost, and Claude sees only that it failed.",
    ]);
    const next = read([event(REJECTED), { ...agentEnded, summary }, RESULT, RESULT]);
    expect(resultIn(next)).not.toHaveProperty("warnings");
  });

  it.each([
    ["at a fault that is no limit", [event(PASSING), { ...agentEnded, summary }]],
    ["for another reason", [event(REJECTED), { ...agentEnded, summary: "Agent failed" }]],
    ["not at all", [event(REJECTED), { ...agentEnded, status: "completed", summary }]],
  ])("a subagent that ended %s is in no warning", (_, messages) => {
    expect(resultIn(read([...messages, RESULT]))).not.toHaveProperty("warnings");
  });

  it.each([
    [{ modelUsage: { m: { costUSD: 1, costBasis: "unknown" } } }, true],
    [{ modelUsage: { m: { costUSD: 1, costBasis: "list" } } }, undefined],
    [{ modelUsage: { m: { costUSD: 1 } } }, undefined],
    // Only the earlier turn has used the model.
    [
      { modelUsage: { m: { costBasis: "unknown" } }, model_usage_since_last_result: { n: { costBasis: "list" } } },
      undefined,
    ],
    [{ modelUsage: {}, model_usage_since_last_result: { m: { costBasis: "unknown" } } }, true],
  ])("`hasUnknownPrice` is set for a model without a price: %j", (usage, expected) => {
    expect(resultIn(read([{ ...RESULT, ...usage }]))?.hasUnknownPrice).toBe(expected);
  });
});

describe("the answer of the usage method", () => {
  const five = "2026-11-28T18:00:00.000Z";
  it("the usage method names all windows, also by model", () => {
    const limits = {
      five_hour: { utilization: 41, resets_at: five },
      seven_day: { utilization: 12.34, resets_at: null },
      seven_day_opus: { utilization: 3, resets_at: five },
      seven_day_oauth_apps: null,
      extra_usage: { is_enabled: true, utilization: 5 },
      limits: [{ kind: "session", percent: 41 }],
      model_scoped: [{ display_name: "Fable 5", utilization: 77, resets_at: five }],
    };
    const resetsAt = Date.parse(five);
    expect(readUsageWindows({ rate_limits: limits })).toEqual([
      { window: "five_hour", usedPercent: 41, resetsAt, source: "usage" },
      { window: "seven_day", usedPercent: 12.3, source: "usage" },
      { window: "seven_day_opus", usedPercent: 3, resetsAt, source: "usage" },
      { window: "seven_day_fable_5", usedPercent: 77, resetsAt, source: "usage" },
    ]);
  });

  it.each([{ rate_limits: null }, {}, undefined, { rate_limits: { five_hour: { utilization: null } } }])(
    "an answer without windows reports none: %j",
    (answer) => {
      expect(readUsageWindows(answer)).toEqual([]);
    },
  );
});
