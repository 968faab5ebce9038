import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/domain/event.ts";
import { JsonObject } from "../../src/domain/json.ts";
import { FailureCategory } from "../../src/domain/turn.ts";
import { headline, presentEvent, type ShownEvent } from "../../src/view/event.ts";
import { presentMessage } from "../../src/view/message.ts";
import { shortResult, presentResult } from "../../src/view/result.ts";
import { summaryOf } from "../../src/view/summary.ts";
import { receiptOf, RED } from "../kit/tools/evidence.ts";
import { ENDED, NOW } from "../kit/tools/fake-session.ts";

describe("a summary is one line for people", () => {
  it.each<[string, JsonObject, string]>([
    ["Bash", { command: "npm test" }, "Bash: npm test"],
    ["Bash", { command: "cat <<EOF\n  one\n\ttwo\u0007\nEOF" }, "Bash: cat <<EOF one two EOF"],
    ["Write", { file_path: "/a/b.ts", content: "x".repeat(1_229) }, "Write /a/b.ts (1.2 KB)"],
    ["Write", { file_path: "/a/b.ts", content: "é" }, "Write /a/b.ts (2 bytes)"],
    ["Edit", { file_path: "/a/b.ts", old_string: "a", new_string: "b" }, "Edit /a/b.ts"],
    ["WebFetch", { url: "https://example.org/x", prompt: "p" }, "WebFetch https://example.org/x"],
    ["WebSearch", { query: "node streams" }, "WebSearch: node streams"],
    ["Task", { description: "look around", prompt: "p" }, "Task: look around"],
    ["ExitPlanMode", { plan: "# Plan\n1. read" }, "ExitPlanMode: # Plan 1. read"],
    ["AskUserQuestion", { questions: [{ question: "Which one?" }] }, "AskUserQuestion: Which one?"],
    ["AskUserQuestion", { questions: [null] }, 'AskUserQuestion {"questions":[null]}'],
    ["mcp__lab__run", { job: 7 }, 'mcp__lab__run {"job":7}'],
    ["mcp__lab__stop", {}, "mcp__lab__stop"],
    ["Bash", { command: 5 }, 'Bash {"command":5}'],
    ["constructor", { name: "x" }, 'constructor {"name":"x"}'],
  ])("the summary of %s with %j is one line", (tool, input, summary) => {
    expect(summaryOf(tool, input)).toBe(summary);
  });

  it.each([
    ["Bash", { command: "😀".repeat(500) }],
    ["Write", { file_path: `/${"d/".repeat(300)}`, content: "x".repeat(3_000_000) }],
    ["x".repeat(5_000), {}],
    ["Bash", { command: " ".repeat(5_000) }],
  ])("a summary has at most 200 characters: %#", (tool, input) => {
    const summary = summaryOf(tool, input);
    expect(Array.from(summary).length).toBeLessThanOrEqual(200);
    expect(summary).not.toMatch(/\p{Cs}/u);
  });
});

describe("a message of Claude Code", () => {
  const assistant = (content: object[], more: object = {}) => ({
    type: "assistant",
    message: { content },
    parent_tool_use_id: null,
    ...more,
  });
  const user = (content: unknown, more: object = {}) => ({ type: "user", message: { content }, ...more });
  const result = (content: unknown, more: object = {}) => ({
    type: "tool_result",
    tool_use_id: "u1",
    content,
    ...more,
  });

  it.each<[string, JsonObject, object | undefined]>([
    ["text", assistant([{ type: "text", text: "Hi" }]), { type: "output", data: { text: "Hi" } }],
    [
      "a tool call",
      assistant([{ type: "tool_use", id: "u1", name: "Bash", input: { command: "ls" } }]),
      { type: "output", data: { tool: "Bash", input: { command: "ls" }, toolUseId: "u1" } },
    ],
    [
      "text and several calls of a subagent",
      assistant(
        [
          { type: "text", text: "Both" },
          { type: "tool_use", id: "u1", name: "Read", input: { file_path: "/a" } },
          { type: "tool_use", id: "u2", name: "Read", input: { file_path: "/b" } },
        ],
        { parent_tool_use_id: "u0" },
      ),
      {
        type: "output",
        data: {
          text: "Both",
          tool: "Read",
          input: { file_path: "/a" },
          toolUseId: "u1",
          others: [{ tool: "Read", input: { file_path: "/b" }, toolUseId: "u2" }],
          agentId: "u0",
        },
      },
    ],
    [
      "an API error",
      assistant([{ type: "text", text: "API Error" }], { error: "rate_limit" }),
      { type: "output", data: { text: "API Error", error: "rate_limit" } },
    ],
    ["thinking", assistant([{ type: "thinking", thinking: "hm" }]), undefined],
    ["an empty text", assistant([{ type: "text", text: "" }]), undefined],
    [
      "a tool's answer",
      user([result("done")]),
      { type: "progress", data: { toolUseId: "u1", ok: true, output: "done" } },
    ],
    [
      "a tool's error",
      user([result([{ type: "text", text: "no such file" }], { is_error: true })], { parent_tool_use_id: "u0" }),
      { type: "progress", data: { toolUseId: "u1", ok: false, output: "no such file", agentId: "u0" } },
    ],
    [
      "a tool's picture",
      user([result([{ type: "image", source: { data: "AAAA" } }, 5])]),
      { type: "progress", data: { output: "[image]\n[?]" } },
    ],
    ["a tool's silence", user([result(undefined)]), { type: "progress", data: { output: "" } }],
    ["a prompt", user("do it"), undefined],
    ["a subagent's prompt", user([{ type: "text", text: "do it" }]), undefined],
    [
      "the start",
      { type: "system", subtype: "init", model: "opus", tools: ["Bash", "Read"] },
      { type: "progress", data: { model: "opus", tools: 2 } },
    ],
    [
      "the end of background work",
      {
        type: "system",
        subtype: "task_notification",
        task_id: "b1",
        status: "completed",
        summary: "tests ran",
        output_file: "/x",
      },
      { type: "progress", data: { backgroundTask: { id: "b1", status: "completed", summary: "tests ran" } } },
    ],
    ["a result", { type: "result", result: "done" }, undefined],
    ["a system message not known here", { type: "system", subtype: "brand_new" }, undefined],
    ["an empty object", {}, undefined],
  ])("a message is shown or skipped by its kind: %s", (_, message, shown) => {
    const presented = presentMessage(message, "short");
    expect(presented === undefined).toBe(shown === undefined);
    expect(presented ?? {}).toMatchObject(shown ?? {});
  });

  it("a message is shown in short: inputs are cut, and outputs reduced to their beginning", () => {
    const input = { file_path: "/a", content: "c".repeat(5_000) };
    const call = presentMessage(assistant([{ type: "tool_use", id: "u1", name: "Write", input }]), "short");
    expect(JSON.stringify(call?.data["input"]).length).toBeLessThanOrEqual(400);
    expect(call?.data["input"]).toMatchObject({ file_path: "/a" });
    const answer = presentMessage(user([result("😀".repeat(600))]), "short");
    expect(answer?.data["output"]).toBe(`${"😀".repeat(500)}…`);
  });
});

describe("an event", () => {
  const shown = (event: SessionEvent): ShownEvent | undefined =>
    presentEvent({ ...event, id: 3, at: NOW }, "delta_compact");
  const request = { requestId: "r1", toolName: "Bash", input: { command: "ls" }, toolUseId: "u1" };

  it.each<[SessionEvent, object]>([
    [
      { type: "permission.asked", data: { kind: "permission", ...request } },
      { type: "permission_request", data: { requestId: "r1", toolName: "Bash", summary: "Bash: ls" } },
    ],
    [
      {
        type: "question.asked",
        data: {
          kind: "question",
          ...request,
          toolName: "AskUserQuestion",
          input: { questions: [{ question: "Which?" }] },
        },
      },
      { type: "permission_request", data: { summary: "AskUserQuestion: Which?" } },
    ],
    [
      {
        type: "permission.answered",
        data: { requestId: "r1", toolName: "Bash", behavior: "allow", by: "caller", forSession: true },
      },
      {
        type: "permission_result",
        data: { requestId: "r1", toolName: "Bash", decision: "allow_for_session", by: "caller" },
      },
    ],
    [
      {
        type: "permission.answered",
        data: { requestId: "r1", toolName: "Bash", behavior: "deny", by: "timeout", message: "nobody" },
      },
      { type: "permission_result", data: { decision: "deny", by: "timeout", message: "nobody" } },
    ],
    [
      { type: "notice", data: { kind: "compaction", message: "shortened", details: { a: 1 } } },
      { type: "progress", data: { notice: "compaction", message: "shortened" } },
    ],
    [
      { type: "background.changed", data: { tasks: [{ id: "b1", type: "shell", description: "tests" }] } },
      { type: "progress", data: { background: [{ id: "b1", type: "shell", description: "tests" }] } },
    ],
    [
      { type: "prompt.dropped", data: { promptId: "p", reason: "cancelled" } },
      { type: "progress", data: { promptDropped: "cancelled" } },
    ],
  ])("the event %j is shown", (event, expected) => {
    expect(shown(event)).toMatchObject({ id: 3, timestamp: new Date(NOW).toISOString(), ...expected });
  });

  it.each<SessionEvent>([
    { type: "session.opened", data: { cwd: "/secret" } },
    { type: "session.configured", data: {} },
    { type: "session.closed", data: { reason: "closed", by: "x" } },
    { type: "prompt.queued", data: { promptId: "p", text: "secret" } },
    { type: "prompt.steered", data: { promptId: "p" } },
    { type: "turn.started", data: { turnId: "t", origin: "self", promptIds: [] } },
    { type: "process.started", data: { processId: "1", resumed: false } },
    { type: "process.exited", data: { processId: "1", code: 0, signal: null, expected: true } },
  ])("an event of type $type is skipped", (event) => {
    expect(shown(event)).toBeUndefined();
  });

  it.each<[Partial<ShownEvent>, string]>([
    [{ type: "output", data: { text: "I look\naround" } }, "I look around"],
    [{ type: "output", data: { tool: "Bash", input: { command: "npm test" } } }, "Bash: npm test"],
    [{ type: "progress", data: { ok: true, output: "12 passed" } }, "12 passed"],
    [{ type: "progress", data: { notice: "retry", message: "retry 1 of 10" } }, "retry 1 of 10"],
    [{ type: "progress", data: { background: [] } }, "at work"],
    [{ type: "permission_request", data: { summary: "Bash: ls" } }, "waiting for a decision: Bash: ls"],
    [{ type: "permission_result", data: { toolName: "Bash", decision: "deny" } }, "Bash deny"],
  ])("an event has a headline: %j", (event, line) => {
    expect(headline({ id: 1, timestamp: "", type: "output", data: {}, ...event })).toBe(line);
  });
});

describe("a result", () => {
  it("a result has every field of Claude Code's result, under the names of the wire", () => {
    const message = {
      result: "Done",
      stop_reason: "end_turn",
      structured_output: { answer: 42 },
      usage: { output_tokens: 1 },
      modelUsage: { opus: { costUSD: 1 } },
      permission_denials: [{ tool_name: "Bash" }],
    };
    expect(presentResult("s1", ENDED, message)).toEqual({
      sessionId: "s1",
      result: "Done",
      isError: false,
      durationMs: 1_200,
      durationApiMs: 800,
      numTurns: 2,
      totalCostUsd: 0.01,
      sessionTotalTurns: 4,
      sessionTotalCostUsd: 0.02,
      stopReason: "end_turn",
      structuredOutput: { answer: 42 },
      usage: { output_tokens: 1 },
      modelUsage: { opus: { costUSD: 1 } },
      permissionDenials: [{ tool_name: "Bash" }],
    });
  });

  it("the result of a call that waited has the fields that docs/tools.md names", async () => {
    const docs = await readFile("docs/tools.md", "utf8");
    const [, section = ""] = /`usage` is the cost of this call([^]*?)A result larger than/.exec(docs) ?? [];
    const kinds: readonly string[] = FailureCategory.options;
    const fields = section.match(/(?<=`)[a-z]\w+(?=`)/gi)?.filter((name) => !kinds.includes(name)) ?? [];
    expect(fields).toHaveLength(14);
    const failure = { outcome: "failed", category: "limit", errorSubtype: "x", code: "y" } as const;
    const message = { stop_reason: "max_tokens", structured_output: 1, usage: {}, permission_denials: [{}] };
    const ended = { ...ENDED, ...failure, limit: { window: "five_hour", resetsAt: 0 }, warnings: ["z"] };
    const { usage, ...shown } = shortResult(
      presentResult("s1", ended, message, { receipt: receiptOf(1), verification: RED }),
    );
    expect(Object.keys({ ...shown, ...JsonObject.parse(usage) })).toEqual(expect.arrayContaining(fields));
  });

  it("a result has costs without rounding errors", () => {
    const summed = { ...ENDED, costUsd: 0.1 + 0.2, sessionCostUsd: 0.0048000000000000004 };
    expect(presentResult("s1", summed, {})).toMatchObject({ totalCostUsd: 0.3, sessionTotalCostUsd: 0.0048 });
  });

  it.each([
    [{}, "The CLI died."],
    [{ result: "" }, "The CLI died."],
    [{ result: "half a text" }, "half a text\n\nThe CLI died."],
    [{ result: null, stop_reason: null, usage: "?", permission_denials: [] }, "The CLI died."],
  ])("the result of a turn that broke down contains what is known: %j", (message, text) => {
    const ended = {
      ...ENDED,
      outcome: "lost",
      isError: true,
      errorSubtype: "lost",
      category: "connection",
      message: "The CLI died.",
    } as const;
    const result = presentResult("s1", ended, message);
    expect(result).toMatchObject({ result: text, isError: true, errorSubtype: "lost", category: "connection" });
    expect(Object.values(result)).not.toContain(undefined);
    expect(result).not.toHaveProperty("usage");
  });
});
