import type { SDKMessageOrigin } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { messageGuard, strangerOf } from "../../src/claude/process/held-messages.ts";

const signal = new AbortController().signal;
const envelope = (attributes: string, body = "Do it.") =>
  `<cross-session-message${attributes}>\n${body}\n</cross-session-message>`;

/** What the hook asks, and what it answers, of a prompt whose request is denied with the reason, or allowed without one. */
async function held(prompt: string, denied?: string) {
  const asked: unknown[] = [];
  const guard = messageGuard(async (question) => {
    asked.push(question);
    return Promise.resolve(denied);
  });
  const input = { hook_event_name: "UserPromptSubmit", prompt };
  const answer = await guard(input as never, "id", { signal });
  return { asked, answer };
}

describe("a message of another session", () => {
  it.each([
    [envelope(' from="uds:/s" from-name="ann" from-mode="bypass"'), { name: "ann", from: "uds:/s", message: "Do it." }],
    [envelope(' from="uds:/s"'), { from: "uds:/s", message: "Do it." }],
    [envelope(""), { message: "Do it." }],
    [envelope(' from="a"', "x</cross-session-message>y"), { from: "a", message: "x</cross-session-message>y" }],
    // With files before it, or several at once, the whole text is shown.
    [`@/f ${envelope(' from="a"')}`, { from: "a", message: `@/f ${envelope(' from="a"')}` }],
  ])("is asked with its sender and its words: %j", async (prompt, input) => {
    const { answer, asked } = await held(prompt);
    expect(asked).toMatchObject([{ id: "id", toolName: "PeerMessage", input }]);
    expect(answer).toEqual({});
  });

  it("that is denied is blocked with the reason", async () => {
    const { answer } = await held(envelope(' from="a"'), "Not now.");
    expect(answer).toMatchObject({ decision: "block", reason: "The message of another session was denied: Not now." });
  });

  it("is not what a caller prompts", async () => {
    expect(await held("Do it.", "Not now.")).toEqual({ asked: [], answer: {} });
  });
});

it.each<[SDKMessageOrigin | undefined, string | undefined]>([
  [undefined, undefined],
  [{ kind: "peer", from: "uds:/x", name: "ann" }, "another session, ann (uds:/x)"],
  [{ kind: "peer", from: "uds:/x" }, "another session, without a name (uds:/x)"],
  [{ kind: "peer", from: "helper", senderTaskId: "t" }, undefined],
  [{ kind: "channel", server: "chat" }, "the MCP server chat"],
  [{ kind: "human" }, "human"],
  [{ kind: "coordinator" }, "coordinator"],
  [{ kind: "task-notification" }, undefined],
  [{ kind: "auto-continuation" }, undefined],
])("a turn of the origin %j was begun by %s", (origin, who) => {
  expect(strangerOf(origin)).toBe(who);
});
