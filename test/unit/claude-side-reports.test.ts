import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";

import { MessageReader } from "../../src/claude/messages.ts";
import { JsonObject } from "../../src/domain/json.ts";
import type { AgentResult } from "../../src/domain/turn.ts";

/** Results with the subtype `success`, judged by earlier messages. */

type Loose = Readonly<Record<string, unknown>>;

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
  usage: {},
  modelUsage: {},
  permission_denials: [],
};
/** Result of a prompt without a turn of Claude. */
const UNASKED = { ...RESULT, terminal_reason: undefined, num_turns: 0 };

const informational = (content: string, more: Loose = {}): Loose => ({
  type: "system",
  subtype: "informational",
  level: "warning",
  content,
  ...more,
});
const stopped = (content: string, outcome?: Loose): Loose =>
  informational(content, { prevent_continuation: true, ...(outcome && { prompt_submit_outcome: outcome }) });
const assistant = (text: string, more: Loose = {}): Loose => ({
  type: "assistant",
  parent_tool_use_id: null,
  message: { content: [{ type: "text", text }] },
  ...more,
});
const command = (source: string, more: Loose = {}): Loose =>
  assistant("", { local_command_source: source, local_command_run: { command: "compact", args: "" }, ...more });
const BLOCKED = "UserPromptSubmit operation blocked by hook:\nnot today\n\nOriginal prompt: hi\n\nthere";
const CAP = "A hook blocked the turn from ending 9 consecutive times.";
const COMPACTED = { type: "system", subtype: "compact_boundary" };
const compact = { ...UNASKED, result: "", local_command: "compact" };

/** Converts `message` to JSON form, without `undefined` fields. */
function sent(message: Loose): SDKMessage {
  const read: SDKMessage = JSON.parse(JSON.stringify({ session_id: "s", ...message }));
  return read;
}

function resultsOf(messages: Loose[], { before = [], wants = false }: { before?: Loose[]; wants?: boolean } = {}) {
  const mask = (text: string) => text.replaceAll("hunter2", "[masked]");
  const reader = new MessageReader("s", mask, { expectsStructured: wants });
  reader.remember(before.map((message) => JsonObject.parse(message)));
  const signals = messages.flatMap((message) => reader.read(sent(message)));
  return signals.flatMap((signal) => (signal.type === "result" ? [signal] : []));
}

function verdict(...about: Parameters<typeof resultsOf>): AgentResult {
  const [last] = resultsOf(...about).slice(-1);
  return last!.result;
}

describe("a result that is a success in name only", () => {
  it.each<[string, string, string, Loose[]]>([
    [
      "a hook blocked the prompt",
      "prompt_blocked",
      "not today.",
      [stopped(BLOCKED, { kind: "blocked_by_hook" }), UNASKED],
    ],
    ["an older Claude Code reports a blocked prompt", "prompt_blocked", "not today.", [stopped(BLOCKED), UNASKED]],
    [
      "a hook blocked a command",
      "prompt_blocked",
      "UserPromptExpansion",
      [stopped("UserPromptExpansion operation blocked by hook:\nno\n\nOriginal prompt: /x"), UNASKED],
    ],
    [
      "a hook stopped the prompt",
      "hook_stopped",
      ": enough.",
      [stopped("Operation stopped by hook: enough", { kind: "stopped_by_hook" }), UNASKED],
    ],
    [
      "a hook stopped the prompt without a reason",
      "hook_stopped",
      "the turn.",
      [stopped("Operation stopped by hook"), UNASKED],
    ],
    ["a hook ended the turn", "hook_stopped", "the turn.", [{ ...RESULT, terminal_reason: "hook_stopped" }]],
    [
      "a Stop hook ended the turn",
      "hook_stopped",
      "the turn.",
      [{ ...RESULT, terminal_reason: "stop_hook_prevented" }],
    ],
    ["a tool was deferred", "tool_deferred", "(tool_deferred)", [{ ...RESULT, terminal_reason: "tool_deferred" }]],
    [
      "/compact failed",
      "command_failed",
      "/compact failed: Error: No messages.",
      [command("<local-command-stderr>Error: No messages</local-command-stderr>"), compact],
    ],
    [
      "/compact had nothing to do",
      "command_failed",
      "/compact failed: Not enough messages.",
      [command("<local-command-stdout>Not enough messages.</local-command-stdout>"), compact],
    ],
    [
      "another command failed",
      "command_failed",
      "/model failed: No such model.",
      [
        command("No such model", { local_command_outcome: { kind: "failed" } }),
        { ...UNASKED, result: "No such model", local_command: "model" },
      ],
    ],
  ])("a result is a failure if %s", (_, subtype, words, messages) => {
    expect(verdict(messages).failure).toMatchObject({ subtype, message: expect.stringContaining(words) });
  });

  it("words of a hook or a command are not repeated as Claude's", () => {
    const results = resultsOf([
      stopped(BLOCKED),
      { ...UNASKED, result: BLOCKED },
      { ...RESULT, terminal_reason: "hook_stopped" },
    ]);
    expect(results.map(({ message, result }) => [message["result"], result.text])).toEqual([
      ["", ""],
      ["Done.", "Done."],
    ]);
    expect(results[0]?.result.failure?.message).not.toContain("Original prompt");
  });

  it("a result without the requested structured output is a failure", () => {
    expect(verdict([RESULT], { wants: true }).failure?.subtype).toBe("structured_output_missing");
    expect(verdict([{ ...RESULT, structured_output: { a: 1 } }], { wants: true })).not.toHaveProperty("failure");
    expect(verdict([{ ...UNASKED, local_command: "context" }], { wants: true })).not.toHaveProperty("failure");
  });

  it("a failure that Claude Code reports itself is not reported again", () => {
    const own = { ...RESULT, is_error: true, terminal_reason: "api_error" };
    expect(verdict([informational("Something"), own], { wants: true })).toMatchObject({
      isError: true,
      warnings: ["Something"],
    });
    expect(verdict([own], { wants: true })).not.toHaveProperty("failure");
  });

  it("the words of a hook are masked and cut", () => {
    const { failure } = verdict([
      stopped(BLOCKED, { kind: "blocked_by_hook", reason: "hunter2 ".repeat(200) }),
      UNASKED,
    ]);
    expect(failure?.message).not.toContain("hunter2");
    expect(failure!.message.length).toBeLessThan(600);
  });
});

describe("a successful result", () => {
  it.each<[string, Loose[]]>([
    ["a plain result", [RESULT]],
    ["a message of Claude before the result", [assistant("x"), RESULT]],
    ["/compact", [COMPACTED, compact]],
    ["/clear", [{ ...UNASKED, result: "", local_command: "clear" }]],
    [
      "a command with an output",
      [command("<local-command-stdout>Set.</local-command-stdout>"), { ...UNASKED, result: "Set." }],
    ],
    ["a notice", [informational("Nothing to see", { level: "notice" }), RESULT]],
    ["a turn interrupted for another prompt", [{ ...RESULT, terminal_reason: "aborted_streaming" }]],
    ["after a result that failed", [stopped(BLOCKED), UNASKED, RESULT]],
  ])("a successful result has neither failure nor warning: %s", (_, messages) => {
    const result = verdict(messages);
    expect(result).not.toHaveProperty("failure");
    expect(result).not.toHaveProperty("warnings");
    expect(result).not.toHaveProperty("isEmpty");
  });

  it.each<[string, boolean, Loose]>([
    ["no text", true, { ...RESULT, result: "" }],
    ["white space", true, { ...RESULT, result: " \n" }],
    ["structured output only", false, { ...RESULT, result: "", structured_output: 0 }],
  ])("a result with %s is empty: %s", (_, isEmpty, message) => {
    expect(verdict([message]).isEmpty ?? false).toBe(isEmpty);
  });

  it("a hook that kept a turn from ending is warned of, and the last text of Claude is the result", () => {
    const inAgent = { ...assistant("Of a subagent."), parent_tool_use_id: "toolu_1" };
    const result = verdict([
      assistant("Hello."),
      inAgent,
      informational(CAP),
      informational(CAP),
      { ...RESULT, result: "" },
    ]);
    expect(result).toMatchObject({ text: "Hello.", warnings: [CAP] });
    expect(result).not.toHaveProperty("isEmpty");
  });

  it("a blocked prompt that was to join the turn is warned of", () => {
    const { failure, warnings } = verdict([stopped(BLOCKED), RESULT]);
    expect(failure).toBeUndefined();
    expect(warnings).toEqual([expect.stringMatching(/^A hook \(UserPromptSubmit\) blocked the prompt.*not today\.$/)]);
  });

  it("a stopped prompt that was to join the turn is warned of", () => {
    const { warnings } = verdict([stopped("Operation stopped by hook: enough", { kind: "stopped_by_hook" }), RESULT]);
    expect(warnings).toEqual(["A hook stopped a prompt, which Claude has not answered: enough."]);
  });

  it("a pause of Claude is warned of, because Claude Code does not go on", () => {
    const { failure, warnings } = verdict([assistant("Half."), { ...RESULT, stop_reason: "pause_turn" }]);
    expect([failure, warnings]).toEqual([undefined, [expect.stringContaining("(pause_turn)")]]);
  });

  it("a result has at most five warnings", () => {
    const many = Array.from({ length: 9 }, (_, n) => informational(`Warning ${String(n)}`));
    expect(verdict([...many, RESULT]).warnings).toHaveLength(5);
  });
});

describe("a turn whose beginning another server has read", () => {
  it("a result is judged by the messages that another server has stored", () => {
    expect(verdict([UNASKED], { before: [stopped(BLOCKED)] }).failure?.subtype).toBe("prompt_blocked");
    expect(verdict([UNASKED], { before: [stopped(BLOCKED), UNASKED] })).not.toHaveProperty("failure");
  });

  it("/compact is not reported as failed if its boundary is not stored", () => {
    expect(verdict([compact], { before: [assistant("x")] })).not.toHaveProperty("failure");
  });
});
