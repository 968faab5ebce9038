import { describe, expect, it } from "vitest";

import { Transcript } from "../../src/cli/sessions/transcript.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import { receiptOf } from "../kit/browser/evidence.ts";

/** A log as Markdown, event by event. `test/server/sessions.test.ts` exports whole sessions. */

type Entry = readonly [type: string, data: object];

/** Renders events with partial `data`, because older versions stored fewer fields. */
function markdown(...entries: Entry[]): string {
  const events = entries.map(([type, data], at) => ({ id: at + 1, at: 0, type, data }) as unknown as StoredEvent);
  return new Transcript().page(events);
}

const assistant = (...content: object[]): Entry => [
  "message",
  { message: { type: "assistant", message: { content } } },
];
const text = (words: string) => ({ type: "text", text: words });
const toolUse = (name: string, input: object = {}) => ({ type: "tool_use", id: "u", name, input });
const toolResult = (content: unknown, more: object = {}): Entry => [
  "message",
  { message: { type: "user", message: { content: [{ type: "tool_result", tool_use_id: "u", content, ...more }] } } },
];
const result = (words: string): Entry => ["message", { message: { type: "result", result: words } }];
const ended = (more: object = {}): Entry => [
  "turn.ended",
  { outcome: "done", numTurns: 1, durationMs: 1000, costUsd: 0, resultEventId: 1, ...more },
];

const receipt = (more: object): Entry => ["turn.receipt", { receipt: receiptOf(more) }];
const verification = (more: object): Entry => [
  "verification.ended",
  { verification: { status: "passed", attempts: 1, of: 1, commands: [{ command: "npm test", exit: 0 }], ...more } },
];

describe("one event", () => {
  it.each<[string, Entry, string]>([
    [
      "a prompt",
      ["prompt.queued", { text: "do\r\n\r\nit" }],
      "## Prompt\n\n1970-01-01T00:00:00.000Z\n\n> do\n>\n> it\n",
    ],
    [
      "a turn without a prompt",
      ["turn.started", { origin: "self" }],
      "## Claude Code continues on its own\n\n1970-01-01T00:00:00.000Z\n",
    ],
    ["a turn of a prompt", ["turn.started", { origin: "prompt" }], ""],
    ["a receipt without changes", receipt({}), "- receipt: no files changed\n"],
    [
      "a receipt",
      receipt({
        files: [{ path: "a.test.ts", change: "changed", lines: [4, 2], tests: { removed: 2 }, by: ["tree"] }],
        commands: [
          { eventId: 1, command: "npm test", exit: 1, check: "test" },
          { eventId: 3, command: "npm test", exit: 0, check: "test", passed: 4, failed: 0 },
        ],
        denied: 1,
        complete: false,
      }),
      "- receipt: 1 file (1 changed; +4 -2 lines), 2 tests removed, 2 commands (1 failed), `npm test` exit 0 (4 passed, 0 failed), 1 denied, not everything was seen\n",
    ],
    ["a green verification", verification({}), "- verification passed\n"],
    [
      "a red verification",
      verification({ status: "failed", attempts: 2, of: 2, commands: [{ command: "npm test", exit: 3 }] }),
      "- verification failed, run 2 of 2: `npm test` exit 3\n",
    ],
    [
      "a denied verification",
      verification({ status: "denied", commands: [], message: "No." }),
      "- verification denied: `No.`\n",
    ],
    ["an empty text", assistant(text(" \n")), ""],
    ["a text with a heading", assistant(text("# Hi")), "**Claude Code**\n\n> # Hi\n"],
    ["a call", assistant(toolUse("Bash", { command: "ls" })), "- calls **Bash** `ls`\n"],
    ["a call with ticks", assistant(toolUse("Bash", { command: "a `b`" })), "- calls **Bash** `` a `b` ``\n"],
    ["a call without input", assistant(toolUse("List")), "- calls **List**\n"],
    ["a part of another kind", assistant({ type: "thinking" }), ""],
    ["a message without content", ["message", { message: { type: "assistant" } }], ""],
    ["a result without a call", toolResult("x"), "- tool done: `x`\n"],
    ["an empty result", toolResult(undefined), "- tool done\n"],
    ["a failed result", toolResult("no", { is_error: true }), "- tool failed: `no`\n"],
    ["a result with an image", toolResult([text("a"), { type: "image" }]), "- tool done: `a [image]`\n"],
    [
      "a subagent's call",
      [
        "message",
        {
          message: {
            type: "assistant",
            parent_tool_use_id: "p",
            message: { content: [toolUse("Read", { file_path: "f" })] },
          },
        },
      ],
      "- calls (subagent) **Read** `f`\n",
    ],
    [
      "a task's end",
      ["message", { message: { type: "system", subtype: "task_notification", status: "completed", summary: "built" } }],
      "- in the background: completed `built`\n",
    ],
    ["a request", ["permission.asked", { toolName: "Bash", input: { command: "ls" } }], "- asks: **Bash** `ls`\n"],
    ["a question", ["question.asked", { toolName: "AskUserQuestion", input: {} }], "- asks: **AskUserQuestion**\n"],
    [
      "an answer for the session",
      ["permission.answered", { toolName: "Bash", behavior: "allow", by: "caller", forSession: true }],
      "- Bash allowed for the session by caller\n",
    ],
    [
      "a denial with its reason",
      ["question.answered", { toolName: "Bash", behavior: "deny", by: "timeout", forSession: true, message: "late" }],
      "- Bash denied by timeout: `late`\n",
    ],
    [
      "a denial without a reason",
      ["permission.answered", { toolName: "Bash", behavior: "deny", by: "policy", message: "" }],
      "- Bash denied by policy\n",
    ],
    ["a notice", ["notice", { kind: "model", message: "other" }], "- notice (model): `other`\n"],
    ["a dropped prompt", ["prompt.dropped", { reason: "closed" }], "- a prompt was dropped: `closed`\n"],
    ["an empty list of tasks", ["background.changed", { tasks: [] }], "- no background tasks\n"],
    [
      "a list of tasks",
      ["background.changed", { tasks: [{ description: "build" }, { description: "test" }] }],
      "- in the background: `build`, `test`\n",
    ],
    ["an expected exit", ["process.exited", { expected: true, code: 0 }], ""],
    [
      "an exit",
      ["process.exited", { expected: false, code: 3, signal: null }],
      "- Claude Code ended unexpectedly: `code 3`\n",
    ],
    [
      "an exit by a signal",
      ["process.exited", { expected: false, code: null, signal: "SIGKILL" }],
      "- Claude Code ended unexpectedly: `SIGKILL`\n",
    ],
    [
      "an exit with an error",
      ["process.exited", { expected: false, code: 1, signal: null, error: "no key" }],
      "- Claude Code ended unexpectedly: `no key`\n",
    ],
    ["a close", ["session.closed", { by: "me", reason: "closed" }], "- the session was closed by `me`\n"],
    [
      "a close with a message",
      ["session.closed", { by: "me", reason: "closed", message: "enough" }],
      "- the session was closed by `me`: `enough`\n",
    ],
    ["an event of a later version", ["session.sung", {}], ""],
  ])("%s is rendered as Markdown", (_, event, expected) => {
    expect(markdown(event)).toBe(expected);
  });
});

describe("the end of a turn", () => {
  it("a result equal to the text above is not repeated", () => {
    const out = markdown(assistant(text("done")), result("done"), ended());
    expect(out).toContain("### Result: done\n\n1 model call, 1.0s, $0.0000; the text above\n");
    expect(out.match(/> done/g)).toHaveLength(1);
  });

  it("a result that was not said before is shown, with the message or the warnings of the server", () => {
    expect(markdown(assistant(text("a")), result("b"), ended({ message: "lost" }))).toMatch(/\n> b\n\n> lost\n$/);
    expect(markdown(result("b"), ended({ warnings: ["of this"] }))).toMatch(/\n> b\n\n> of this\n$/);
  });

  it("a turn that ends without a result does not show the result of the turn before", () => {
    expect(markdown(result("b"), ended(), ended({ resultEventId: undefined })).match(/> b/g)).toHaveLength(1);
  });

  it("the end of a turn forgets the names of its tool calls", () => {
    expect(markdown(assistant(toolUse("Bash")), ended(), toolResult("x"))).toContain("- tool done: `x`");
  });
});

it("list items stand together, and a block has an empty line before and after it", () => {
  expect(
    markdown(
      assistant(toolUse("Bash"), toolUse("Read")),
      toolResult("x"),
      assistant(text("hi")),
      assistant(toolUse("Edit")),
    ),
  ).toBe("- calls **Bash**\n- calls **Read**\n- Read done: `x`\n\n**Claude Code**\n\n> hi\n\n- calls **Edit**\n");
});
