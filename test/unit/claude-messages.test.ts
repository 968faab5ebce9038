import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { MessageReader } from "../../src/claude/messages.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { Walk } from "../kit/step/walk.ts";

/** Message of Claude Code, reduced to the relevant fields. `SDKMessage` does not cover all types. */
type Loose = Readonly<Record<string, unknown>>;

/** Reads `messages` with one `MessageReader`, as JSON, so that `undefined` fields are absent. */
function read(...messages: Loose[]): AgentSignal[] {
  const reader = new MessageReader();
  return messages.flatMap((message) => {
    const sent: SDKMessage = JSON.parse(JSON.stringify({ session_id: "s", ...message }));
    return reader.read(sent);
  });
}

const system = (subtype: string, over: Loose = {}): Loose => ({ type: "system", subtype, uuid: "u", ...over });
const assistant = (content: Loose[], over: Loose = {}): Loose => ({ type: "assistant", message: { content }, ...over });

const INIT = system("init", { model: "opus", permissionMode: "default", tools: ["Bash"], cwd: "/repo" });
const RESULT: Loose = {
  type: "result",
  subtype: "success",
  is_error: false,
  terminal_reason: "completed",
  result: "Done.",
  stop_reason: "end_turn",
  duration_ms: 900,
  duration_api_ms: 500,
  num_turns: 2,
  total_cost_usd: 0.25,
  usage: { input_tokens: 1 },
  modelUsage: { opus: { costUSD: 0.25 } },
  permission_denials: [],
  user_message_uuid: "p1",
  user_message_uuids: ["p1"],
};
const FAILED = {
  is_error: true,
  subtype: "success",
  terminal_reason: "api_error",
  total_cost_usd: 0,
  result: "API Error",
};
const BROKEN = { is_error: true, subtype: "error_during_execution", result: undefined, errors: ["[ede_diagnostic] x"] };

describe("a message of Claude Code", () => {
  it.each([
    ["of an unknown type", { type: "telepathy", thought: { a: [1] } }],
    ["of an unknown kind of system message", system("weather", { rain: true })],
    ["that a background task has ended", system("task_notification", { task_id: "t", status: "completed" })],
    ["that a hook has answered", system("hook_response", { output: "x" })],
    ["with a suggestion for the next prompt", { type: "prompt_suggestion", suggestion: "run the tests" }],
    ["about Claude Code's login", { type: "auth_status", isAuthenticating: true }],
    ["of the user that is not a replay", { type: "user", message: { role: "user", content: "x" } }],
  ])("a message %s is stored unchanged, except for the session's id", (_, message) => {
    expect(read(message)).toEqual([{ type: "message", message }]);
  });

  it.each([
    "keep_alive",
    "attachment",
    "session_title_changed",
    "active_goal",
    "system/commands_changed",
    "system/files_persisted",
    "system/memory_recall",
    "system/worker_shutting_down",
  ])("a housekeeping message is dropped: %s", (name) => {
    expect(read(named(name))).toEqual([]);
  });

  it.each([
    "stream_event",
    "tool_progress",
    "system/task_progress",
    "system/task_updated",
    "system/thinking_tokens",
    "system/hook_started",
    "system/hook_progress",
    "system/control_request_progress",
  ])("a progress message is a sign of life: %s", (name) => {
    expect(read(named(name))).toEqual([{ type: "alive" }]);
  });

  it.each([
    ["system/compact_boundary", "compaction", {}, "system/compact_boundary"],
    ["system/model_fallback", "fallback", { content: "Switched to sonnet." }, "Switched to sonnet."],
    ["system/model_refusal_fallback", "fallback", { content: "Refused." }, "Refused."],
    ["system/model_refusal_no_fallback", "fallback", { content: "Refused." }, "Refused."],
    ["system/permission_denied", "denial", { message: "Not allowed." }, "Not allowed."],
    ["system/mirror_error", "data_loss", { error: "full" }, "system/mirror_error"],
    ["system/session_writes_lost", "data_loss", { error_code: "ENOSPC" }, "system/session_writes_lost"],
    ["conversation_reset", "warning", { trigger: "clear" }, "conversation_reset"],
    [
      "system/api_retry",
      "retry",
      { attempt: 2, max_retries: 10, retry_delay_ms: 1234, error: "overloaded" },
      "overloaded: retry 2 of 10 in 1.2 s",
    ],
  ])("a message that users should know of becomes a notice: %s", (name, kind, over, message) => {
    const details = { ...named(name), ...over };
    expect(read(details)).toEqual([{ type: "notice", kind, message, details }]);
  });

  it("`toolUseId` is the id of the last tool use in a message", () => {
    const content = [
      { type: "tool_use", id: "toolu_1" },
      { type: "tool_use", id: "toolu_2" },
      { type: "text", text: "x" },
    ];
    expect(read(assistant(content))).toEqual([{ type: "message", message: assistant(content), toolUseId: "toolu_2" }]);
    expect(read(assistant([{ type: "text", text: "x" }]))[0]).not.toHaveProperty("toolUseId");
  });

  it("an init message is stored once, and again after a change in it", () => {
    const { uuid: _, ...facts } = INIT;
    const reported = { type: "reported", model: "opus", permissionMode: "default" };
    const again = { ...INIT, uuid: "u2", user_message_uuids: ["p2"] };
    const more = { ...INIT, tools: ["Bash", "Read"] };
    expect(read(INIT, again, more, more)).toEqual([
      reported,
      { type: "message", message: facts },
      reported,
      reported,
      { type: "message", message: { ...facts, tools: ["Bash", "Read"] } },
      reported,
    ]);
  });

  it("an echo of the server's own prompt is dropped", () => {
    expect(read({ type: "user", isReplay: true, message: { role: "user", content: "begin" } })).toEqual([]);
  });

  it("a tool's output keeps its patch, short texts and numbers, but no file bodies", () => {
    const patch = [{ oldStart: 1, lines: ["-a", "+b"] }];
    const small = { filePath: "/repo/a", structuredPatch: patch, durationMs: 5, userModified: false };
    const large = { originalFile: "x".repeat(501), content: { deep: "x" }, list: ["x"], nothing: null };
    const user = { type: "user", message: { content: [] } };
    expect(read({ ...user, tool_use_result: { ...small, ...large } })).toEqual([
      { type: "message", message: { ...user, tool_use_result: small } },
    ]);
    for (const output of ["a text", ["a"], null, large, { structuredPatch: ["x".repeat(65_536)] }]) {
      expect(read({ ...user, tool_use_result: output })).toEqual([{ type: "message", message: user }]);
    }
  });

  it.each([
    ["running", { type: "busy", id: "u" }],
    ["idle", { type: "idle" }],
    ["requires_action", { type: "alive" }],
  ])("the state %s of Claude Code becomes a signal", (state, signal) => {
    expect(read(system("session_state_changed", { state }))).toEqual([signal]);
  });

  it("background work marked `ambient` is not listed", () => {
    const task = { task_id: "t1", task_type: "local_bash", description: "make", run_id: "r" };
    const tasks = [task, { ...task, task_id: "t2", ambient: true }];
    expect(read(system("background_tasks_changed", { tasks }))).toEqual([
      { type: "background", tasks: [{ id: "t1", type: "local_bash", description: "make" }] },
    ]);
  });

  it("a status message reports its permission mode, otherwise it is a sign of life", () => {
    const signals = read(
      system("status", { status: null, permissionMode: "plan" }),
      system("status", { status: "compacting" }),
    );
    expect(signals).toEqual([{ type: "reported", permissionMode: "plan" }, { type: "alive" }]);
  });

  it("a prompt of a scheduled task becomes a notice", () => {
    const frame = { command_uuid: "c", state: "started", wakeup_source: "schedule_wakeup" };
    expect(read({ type: "command_lifecycle", ...frame })).toMatchObject([{ type: "notice", kind: "warning" }]);
  });

  it("a prompt is settled once Claude Code has completed or cancelled it", () => {
    const frames = ["queued", "started", "completed", "cancelled"].map((state) => ({ command_uuid: state, state }));
    const signals = [...frames, {}].flatMap((frame) => read({ type: "command_lifecycle", ...frame }));
    expect(signals).toEqual(["completed", "cancelled"].map((promptId) => ({ type: "prompt-settled", promptId })));
  });

  it.each([
    ["an assistant without content", { type: "assistant", message: {} }],
    ["a result without its numbers", { type: "result", subtype: "success", is_error: false, result: "Done." }],
    ["a failed result without reasons", { ...RESULT, ...BROKEN, errors: undefined }],
    ["a change of background work without the work", system("background_tasks_changed")],
    ["a message without a type", {}],
  ])("missing fields do not stop the reader: %s", (_, message) => {
    expect(read(message)).toHaveLength(1);
  });
});

describe("a result", () => {
  it("a result reports usage, cost and the prompts that it answers", () => {
    const structured = { ...RESULT, structured_output: { a: 1 }, permission_denials: [{ tool_name: "Bash" }] };
    expect(read(structured)).toEqual([
      {
        type: "result",
        message: structured,
        result: {
          text: "Done.",
          isError: false,
          subtype: "success",
          terminalReason: "completed",
          stopReason: "end_turn",
          promptIds: ["p1"],
          numTurns: 2,
          durationMs: 900,
          durationApiMs: 500,
          costUsdTotal: 0.25,
          structuredOutput: { a: 1 },
          usage: { input_tokens: 1 },
          modelUsage: { opus: { costUSD: 0.25 } },
          permissionDenials: [{ tool_name: "Bash" }],
        },
      },
    ]);
  });

  it.each([
    [{ user_message_uuids: ["a", "b"] }, ["a", "b"]],
    [{ user_message_uuids: undefined }, ["p1"]],
    [{ user_message_uuids: undefined, user_message_uuid: undefined }, []],
  ])("a result answers the prompts that it names: %j", (over, promptIds) => {
    expect(read({ ...RESULT, ...over })).toMatchObject([{ result: { promptIds } }]);
  });

  it("a result omits internal texts of Claude Code, and the error of an earlier turn", () => {
    const errors = ["[ede_diagnostic] x", "No conversation found", "y"];
    expect(read({ ...RESULT, ...BROKEN, errors })).toMatchObject([
      { result: { text: "No conversation found\ny" }, message: { result: "No conversation found\ny" } },
    ]);
    const [, , second] = read(assistant([], { error: "billing_error" }), RESULT, { ...RESULT, is_error: true });
    expect(second).toMatchObject({ result: { category: "unknown" } });
  });

  /** Title, error of the assistant's message, fields of the result (as measured), outcome of the turn. */
  it.each([
    ["an answer", undefined, {}, "done"],
    ["400", "unknown", { api_error_status: 400 }, "failed api_error request"],
    ["401", "authentication_failed", { api_error_status: 401 }, "failed api_error access"],
    ["403", "authentication_failed", { api_error_status: 403 }, "failed api_error access"],
    ["403 without an error", undefined, { api_error_status: 403 }, "failed api_error access"],
    ["402", "billing_error", { api_error_status: 402 }, "failed api_error billing"],
    ["404", "model_not_found", { api_error_status: 404 }, "failed api_error request"],
    ["413", "invalid_request", { api_error_status: 413, terminal_reason: "image_error" }, "failed image_error request"],
    ["429", "rate_limit", { api_error_status: 429 }, "failed api_error overloaded"],
    ["500", "server_error", { api_error_status: 500 }, "failed api_error overloaded"],
    ["529", "server_error", { api_error_status: 529 }, "failed api_error overloaded"],
    ["529 without an error", undefined, { api_error_status: 529 }, "failed api_error overloaded"],
    ["a refused connection", "server_error", { api_error_status: null }, "failed api_error connection"],
    ["a broken connection", undefined, { api_error_status: null }, "failed api_error connection"],
    ["no login", "authentication_failed", { api_error_status: null }, "failed api_error access"],
    [
      "max turns",
      undefined,
      { ...BROKEN, subtype: "error_max_turns", terminal_reason: "max_turns" },
      "failed error_max_turns limit",
    ],
    ["max budget", undefined, { ...BROKEN, subtype: "error_max_budget_usd" }, "failed error_max_budget_usd limit"],
    ["an interrupted text", undefined, { ...BROKEN, terminal_reason: "aborted_streaming" }, "interrupted interrupted"],
    ["an interrupted tool", undefined, { ...BROKEN, terminal_reason: "aborted_tools" }, "interrupted interrupted"],
    [
      "a failed start",
      undefined,
      { ...BROKEN, terminal_reason: undefined, startup_failure_reason: "config_file_invalid" },
      "failed error_during_execution configuration",
    ],
  ])("a result is classified: %s", (_, error, over, expected) => {
    const result = { ...RESULT, ...(expected !== "done" && FAILED), ...over };
    const messages = error === undefined ? [result] : [assistant([], { error }), result];
    const walk = new Walk().prompt("p1").hear({ type: "ready" }, ...read(...messages), { type: "idle" });
    const { category, errorSubtype, outcome } = walk.ended[0]!;
    const known = outcome === "interrupted" ? undefined : category;
    expect([outcome, errorSubtype, known].filter((word) => word !== undefined).join(" ")).toBe(expected);
  });
});

function named(name: string): Loose {
  const [type, subtype] = name.split("/");
  return { type, ...(subtype !== undefined && { subtype }) };
}

it("one warning is given for each failed MCP server, and for a given server without a login", () => {
  const statuses = (given: string, login = "pending") => ({
    mcp_servers: [
      { name: "given", status: given, source: "dynamic" },
      { name: "login", status: login, source: "dynamic" },
      { name: "mine", status: "needs-auth", source: "user" },
    ],
  });
  const inits = [statuses("failed"), statuses("failed", "needs-auth"), {}].map((over) => ({ ...INIT, ...over }));
  const warned = read(...inits).flatMap((signal) => (signal.type === "notice" ? [signal.details] : []));
  expect(warned).toEqual([{ failed: ["given"] }, { failed: ["login"] }]);
});
