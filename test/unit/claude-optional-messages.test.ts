import type { SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { MessageReader } from "../../src/claude/messages.ts";
import { presentMessage } from "../../src/view/message.ts";

type Loose = Readonly<Record<string, unknown>>;

const system = (subtype: string, over: Loose = {}): Loose => ({ type: "system", subtype, uuid: "u", ...over });

/** Reads `messages` in order with one `MessageReader`. */
function read(...messages: Loose[]) {
  const reader = new MessageReader();
  return messages.flatMap((message) => {
    const sent: SDKMessage = JSON.parse(JSON.stringify({ session_id: "s", ...message }));
    return reader.read(sent);
  });
}

describe("an optional message of Claude Code", () => {
  it("the answer of a hook is stored without duplicate fields, cut to 4,000 characters", () => {
    const hook = {
      hook_id: "h",
      hook_name: "PreToolUse:Bash",
      hook_event: "PreToolUse",
      exit_code: 0,
      outcome: "success",
    };
    const output = "y".repeat(5000);
    expect(read(system("hook_response", { ...hook, output, stdout: output, stderr: "" }))).toEqual([
      { type: "message", message: system("hook_response", { ...hook, output: "y".repeat(4000) }) },
    ]);
  });

  it("the progress of a task is stored if its summary is new, otherwise it is a sign of life", () => {
    const progress = (id: string, summary?: string) =>
      system("task_progress", { task_id: id, summary, description: "d" });
    const kept = (id: string, summary: string) => ({ type: "message", message: progress(id, summary) });
    const alive = { type: "alive" };
    expect(
      read(
        progress("a", "Reading."),
        progress("a"),
        progress("a", "Reading."),
        progress("b", "Reading."),
        progress("a", "Writing."),
      ),
    ).toEqual([kept("a", "Reading."), alive, alive, kept("b", "Reading."), kept("a", "Writing.")]);
  });

  it.each([
    [
      "outcome of a hook",
      system("hook_response", { hook_name: "Stop", outcome: "error", exit_code: 2, output: "two\nlines" }),
      { hook: { name: "Stop", outcome: "error", exitCode: 2, output: "two lines" } },
    ],
    [
      "progress of a task",
      system("task_progress", { task_id: "t", summary: "Reading." }),
      { backgroundTask: { id: "t", status: "running", summary: "Reading." } },
    ],
    [
      "suggestion for the next prompt",
      { type: "prompt_suggestion", suggestion: "x".repeat(600) },
      { promptSuggestion: `${"x".repeat(499)}…` },
    ],
  ])("an optional message has a short form for callers: %s", (_, message, data) => {
    expect(presentMessage(message, "short")).toEqual({ type: "progress", data });
  });

  it("a message of another type or without a summary has no short form", () => {
    expect(presentMessage({ type: "telepathy", suggestion: "x" }, "short")).toBeUndefined();
    expect(presentMessage(system("task_progress", { task_id: "t" }), "short")).toBeUndefined();
  });
});

/** `remember` passes a reader the messages that the server before has stored. */
describe("a reader that takes over", () => {
  const sent = (message: Loose) => {
    const sdkMessage: SDKMessage = JSON.parse(JSON.stringify({ session_id: "s", ...message }));
    return sdkMessage;
  };
  const result = { type: "result", subtype: "success", is_error: true, result: "x", terminal_reason: "api_error" };
  const failed = { ...result, api_error_status: 500, usage: {}, modelUsage: {}, permission_denials: [] };
  const error = { type: "assistant", error: "billing_error" };
  const categoryAfter = (...spoken: Parameters<MessageReader["remember"]>[0]) => {
    const reader = new MessageReader();
    reader.remember(spoken);
    return reader.read(sent(failed)).map((signal) => (signal.type === "result" ? signal.result.category : undefined));
  };

  it("a reader that takes over knows why the last answer failed, unless its turn has ended", () => {
    expect(categoryAfter()).toEqual(["overloaded"]);
    expect(categoryAfter(error)).toEqual(["billing"]);
    expect(categoryAfter(error, { type: "result" })).toEqual(["overloaded"]);
  });

  it("a reader that takes over does not store unchanged messages again", () => {
    const facts = { type: "system", subtype: "init", model: "m", permissionMode: "plan" };
    const progress = { type: "system", subtype: "task_progress", task_id: "t", summary: "half" };
    const reader = new MessageReader();
    reader.remember([facts, progress]);
    const types = [facts, progress, { ...facts, model: "n" }, { ...progress, summary: "done" }].map((message) =>
      reader.read(sent(message)).map(({ type }) => type),
    );
    expect(types).toEqual([["reported"], ["alive"], ["reported", "message"], ["message"]]);
  });

  it("a reader reports the new id of Claude Code after /clear, once", () => {
    const reader = new MessageReader("s");
    const alive = { type: "system", subtype: "status" };
    expect(reader.read(sent(alive))).toEqual([{ type: "alive" }]);
    expect(reader.read(sent({ ...alive, session_id: "new" }))[0]).toEqual({ type: "reported", transcriptId: "new" });
    expect(reader.read(sent({ ...alive, session_id: "new" }))).toEqual([{ type: "alive" }]);
  });
});
