import { describe, expect, it } from "vitest";
import type { Item } from "../../console/src/timeline/reducer/item.ts";
import {
  findCall,
  toolCall,
  ended,
  fold,
  toolResult,
  kinds,
  message,
  prompt,
  assistantSays,
  started,
  text,
} from "../kit/browser/timeline.ts";
import type { Draft } from "../kit/browser/timeline.ts";

const placesOf = (items: readonly Item[]) =>
  items.map((item) => (item.kind === "prompt" ? item.promptId : item.kind === "text" ? item.text : item.kind));

describe("a prompt that waits behind others", () => {
  it("a queued prompt stands at the start of its turn, with the time and event of the start", () => {
    const items = fold(prompt("a"), started("a"), prompt("b"), text("One."), ended(), started("b"), text("Two."));
    expect(placesOf(items)).toEqual(["a", "One.", "turn", "b", "Two."]);
    expect(items[3]).toMatchObject({ at: 6_000, eventId: 6, queuedAt: 3_000 });
    expect(items.map(({ at }) => at)).toEqual(items.map(({ at }) => at).toSorted((a, b) => a - b));
  });

  it("a prompt that waits while another has not begun, or is held after an interruption, stands at the end until its turn starts", () => {
    const all = [prompt("a"), prompt("b"), started("a"), text("One."), ended({ outcome: "interrupted" })];
    expect(placesOf(fold(...all))).toEqual(["a", "One.", "turn", "b"]);
    const other = [...all, prompt("c"), started("c"), text("Two."), ended(), started("b"), text("Three.")];
    expect(placesOf(fold(...other))).toEqual(["a", "One.", "turn", "c", "Two.", "turn", "b", "Three."]);
  });

  it("a queued prompt stands at the place where it was dropped or joined the running turn", () => {
    const steered: Draft = { type: "prompt.steered", data: { promptId: "b" } };
    const dropped: Draft = { type: "prompt.dropped", data: { promptId: "c", reason: "cancelled" } };
    const items = fold(prompt("a"), started("a"), prompt("b"), prompt("c"), text("One."), steered, dropped);
    expect(placesOf(items)).toEqual(["a", "One.", "b", "c"]);
    expect(items.slice(2)).toMatchObject([{ at: 6_000 }, { at: 7_000 }]);
  });

  it("a prompt sent while no turn runs stands where it was sent, with that time", () => {
    const up: Draft = { type: "process.started", data: { processId: "1", resumed: false } };
    const [first] = fold(prompt("a"), up, started("a"), text("One."));
    expect(first).toMatchObject({ promptId: "a", state: "begun", at: 1_000, eventId: 1 });
    expect(first).not.toHaveProperty("queuedAt");
  });
});

describe("an API error", () => {
  const words = "API Error: 400 The prompt is too strange.";
  const said = assistantSays([{ type: "text", text: words }], null, { error: "unknown", is_api_error_message: true });
  const result = message({ type: "result", subtype: "success", is_error: true, result: words });
  const failed = ended({ outcome: "failed", isError: true, errorSubtype: "api_error" });

  it.each([
    ["in a text and in the result", [said, result]],
    ["only in the result", [result]],
    ["in a cut text after another text", [text("I try."), { ...said, cut: true as const }, result]],
  ])("an API error that ends the turn, %s, is one item with the cause", (_, drafts) => {
    const items = fold(...drafts, failed);
    const end = items.at(-1);
    expect(end).toMatchObject({ kind: "turn", cause: words, cutIn: drafts.length > 2 ? [2] : [] });
    expect(JSON.stringify(items.slice(0, -1))).not.toContain(words);
  });

  it("an API error that does not end the turn, or of a subagent, is one text and not a cause", () => {
    const items = fold(said, text("Again."), ended());
    expect(items).toMatchObject([{ isError: true, text: words }, { isError: false }, { kind: "turn" }]);
    expect(items[2]).not.toHaveProperty("cause");
    const later = fold(said, text("Again."), ended({ outcome: "failed", errorSubtype: "error_max_turns" }));
    expect(placesOf(later)).toEqual([words, "Again.", "turn"]);
    const next = fold(said, ended({ outcome: "interrupted" }), started(), toolCall("v", "Bash"), failed);
    expect(placesOf(next)).toEqual([words, "turn", "line", "call", "turn"]);
    expect(next.at(-1)).not.toHaveProperty("cause");
    const inner = assistantSays([{ type: "text", text: words }], "u", { error: "unknown" });
    const nested = fold(toolCall("u", "Agent"), inner, text("It failed."), ended());
    expect(findCall(nested, "u").children).toMatchObject([{ isError: true, text: words }]);
  });
});

describe("a request whose turn is stopped", () => {
  const request = { requestId: "r", kind: "permission", toolName: "Bash", input: { command: "ls" }, toolUseId: "u" };
  const asked: Draft = { type: "permission.asked", data: request };
  const closed = (by: string): Draft => ({
    type: "permission.answered",
    data: { requestId: "r", toolName: "Bash", behavior: "deny", by },
  });

  it.each(["cancel", "withdrawn", "shutdown"])("the call of a request closed by %s is stopped, not denied", (by) => {
    const items = fold(toolCall("u", "Bash"), asked, closed(by), toolResult("u", "Rejected.", { is_error: true }));
    expect(kinds(items)).toEqual(["call", "request"]);
    expect(findCall(items, "u").state).toBe("stopped");
  });

  it("the call of a request that no one answered in time is denied", () => {
    const items = fold(toolCall("u", "Bash"), asked, closed("timeout"), toolResult("u", "No.", { is_error: true }));
    expect(findCall(items, "u").state).toBe("denied");
  });
});
