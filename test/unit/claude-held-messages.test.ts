import type { SDKMessageOrigin } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { peerMessageGuard, describeForeignOrigin } from "../../src/claude/process/peer-messages.ts";

const signal = new AbortController().signal;
const envelope = (attributes: string, body = "Do it.") =>
  `<cross-session-message${attributes}>\n${body}\n</cross-session-message>`;

/**
 * Returns the requests of `peerMessageGuard` and the answer for `prompt`. Each request is denied with `denied` as the reason, or
 * allowed if `denied` is missing.
 */
async function guarded(prompt: string, denied?: string) {
  const asked: unknown[] = [];
  const guard = peerMessageGuard(async (question) => {
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
    // With files in front or several messages at once, the whole text is shown.
    [`@/f ${envelope(' from="a"')}`, { from: "a", message: `@/f ${envelope(' from="a"')}` }],
  ])("approval is requested with the sender and the text of the message: %j", async (prompt, input) => {
    const { answer, asked } = await guarded(prompt);
    expect(asked).toMatchObject([{ id: "id", toolName: "PeerMessage", input }]);
    expect(answer).toEqual({});
  });

  it("a denied message is blocked with the reason", async () => {
    const { answer } = await guarded(envelope(' from="a"'), "Not now.");
    expect(answer).toMatchObject({ decision: "block", reason: "The message of another session was denied: Not now." });
  });

  it("a prompt of a caller needs no approval", async () => {
    expect(await guarded("Do it.", "Not now.")).toEqual({ asked: [], answer: {} });
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
  expect(describeForeignOrigin(origin)).toBe(who);
});
