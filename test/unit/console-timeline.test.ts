import { describe, expect, it } from "vitest";
import type { Item } from "../../console/src/timeline/reducer/item.ts";
import { callTitle } from "../../console/src/timeline/call/title.ts";
import { TimelineReducer } from "../../console/src/timeline/reducer/timeline-reducer.ts";
import { processorMs } from "../kit/runner/processor-time.ts";
import {
  findCall,
  toolCall,
  ended,
  fold,
  toolResult,
  kinds,
  message,
  numbered,
  prompt,
  assistantSays,
  started,
  text,
  type Draft,
  type Loose,
} from "../kit/browser/timeline.ts";

describe("the timeline of a session", () => {
  it("the timeline has the prompt, thoughts, texts and calls, and the end of the turn", () => {
    const items = fold(
      prompt("p"),
      started("p"),
      assistantSays([{ type: "thinking", thinking: "hm" }]),
      assistantSays([
        { type: "text", text: "I look." },
        { type: "tool_use", id: "u", name: "Bash", input: { command: "ls" } },
      ]),
      toolResult("u", "a\nb"),
      text("Done."),
      message({ type: "result", subtype: "success", result: "Done." }),
      ended(),
    );
    expect(kinds(items)).toEqual(["prompt", "thinking", "text", "call", "text", "turn"]);
    expect(items[0]).toMatchObject({ state: "begun" });
    expect(findCall(items, "u")).toMatchObject({
      name: "Bash",
      state: "done",
      output: "a\nb",
      at: 4000,
      endedAt: 5000,
    });
    expect(items.at(-1)).toMatchObject({ result: { subtype: "success" } });
  });

  it("the timeline shows text that only the result contains", () => {
    const items = fold(message({ type: "result", subtype: "success", result: "Total cost: $0" }), ended());
    expect(items.map((item) => (item.kind === "text" ? item.text : item.kind))).toEqual(["Total cost: $0", "turn"]);
  });

  it("the timeline has prompts that wait, join a turn, are dropped, or begin later", () => {
    const items = fold(
      prompt("a"),
      started("a"),
      prompt("b"),
      prompt("c"),
      prompt("d"),
      { type: "prompt.steered", data: { promptId: "b" } },
      { type: "prompt.dropped", data: { promptId: "c", reason: "cancelled" } },
      ended(),
      started("d"),
      prompt("e"),
    );
    const states = items.flatMap((item) => (item.kind === "prompt" ? [[item.promptId, item.state]] : []));
    expect(states).toEqual([
      ["a", "begun"],
      ["b", "steered"],
      ["c", "dropped"],
      ["d", "begun"],
      ["e", "waiting"],
    ]);
    expect(kinds(items)).toEqual(["prompt", "prompt", "prompt", "turn", "prompt", "prompt"]);
  });

  it("a waiting prompt stands at the end of the timeline, and at its beginning once it has begun", () => {
    const before = [prompt("a"), started("a"), text("One."), prompt("b"), text("Two.")];
    const keysOf = (items: readonly Item[]) =>
      items.map((item) => (item.kind === "prompt" ? item.promptId : item.kind));
    expect(keysOf(fold(...before))).toEqual(["a", "text", "text", "b"]);
    const after = [ended(), started("b"), text("Three."), ended()];
    const all = ["a", "text", "text", "turn", "b", "text", "turn"];
    expect(keysOf(fold(...before, ...after))).toEqual(all);
    // The first loaded event may also be in the middle of the preceding turn.
    expect(keysOf(fold(...before.slice(2), ...after))).toEqual(all.slice(1));
  });

  it("an interruption is shown only at the end of the turn, and a stopped call is not shown as failed", () => {
    const words = "[Request interrupted by user for tool use]";
    const items = fold(
      toolCall("u", "Bash"),
      toolResult("u", words, { is_error: true }),
      message({ type: "user", message: { content: [{ type: "text", text: words }] }, parent_tool_use_id: null }),
      ended({ outcome: "interrupted" }),
    );
    expect(kinds(items)).toEqual(["call", "turn"]);
    expect(findCall(items, "u").state).toBe("stopped");
  });

  it("the timeline shows a wait for a slot of 3 s, but not of 1 s", () => {
    const waits: Draft = { type: "notice", data: { kind: "waiting", message: "It waits for a slot." } };
    const up: Draft = { type: "process.started", data: { processId: "1", resumed: false } };
    const lines = (...drafts: Draft[]) => fold(...drafts).flatMap((item) => (item.kind === "line" ? [item.text] : []));
    expect(lines(waits, up)).toEqual(["Claude Code started"]);
    const idle = [prompt("b"), prompt("c")];
    expect(lines(waits, ...idle, up)).toEqual(["It waits for a slot.", "Claude Code started"]);
  });

  it("the timeline nests the work of subagents under their calls, at any depth", () => {
    const items = fold(
      toolCall("a", "Agent"),
      toolCall("b", "Agent", {}, "a"),
      toolCall("c", "Read", {}, "b"),
      toolResult("c", [{ type: "text", text: "file" }, { type: "image" }], {}, "b"),
      text("deep", "b"),
      toolResult("b", "b done", {}, "a"),
      toolResult("a", "a done"),
    );
    expect(items).toHaveLength(1);
    const inner = findCall(findCall(items, "a").children, "b");
    expect(kinds(inner.children)).toEqual(["call", "text"]);
    expect(findCall(inner.children, "c")).toMatchObject({ state: "done", output: "file\n[image]" });
    expect(findCall(items, "a")).toMatchObject({ state: "done", output: "a done" });
  });

  it("the state of a call is its outcome: failed, denied, stopped or running", () => {
    const items = fold(
      toolCall("fails", "Bash"),
      toolResult("fails", "exit 1", { is_error: true }),
      toolCall("denied", "Bash"),
      { type: "notice", data: { kind: "denial", message: "no", details: { tool_use_id: "denied" } } },
      toolResult("denied", "no", { is_error: true }),
      toolCall("open", "Bash"),
      ended({ outcome: "interrupted" }),
      toolCall("runs", "Bash"),
    );
    const states = items.flatMap((item) => (item.kind === "call" ? [[item.id, item.state]] : []));
    expect(states).toEqual([
      ["fails", "failed"],
      ["denied", "denied"],
      ["open", "stopped"],
      ["runs", "running"],
    ]);
  });

  it("a call stays in the background until its background work ends, and then shows the outcome", () => {
    const task = (subtype: string, more: Loose = {}) =>
      message({ type: "system", subtype, task_id: "k", tool_use_id: "a", ...more });
    const background = (...ids: string[]): Draft => ({
      type: "background.changed",
      data: { tasks: ids.map((id) => ({ id, type: "agent", description: "looks" })) },
    });
    const drafts = [
      toolCall("a", "Agent"),
      task("task_started"),
      background("k"),
      toolResult("a", "launched"),
      ended(),
    ];
    expect(findCall(fold(...drafts), "a").state).toBe("background");
    expect(findCall(fold(...drafts, background()), "a").state).toBe("done");
    const failed = fold(...drafts, task("task_notification", { status: "failed", summary: "It broke." }), background());
    expect(findCall(failed, "a")).toMatchObject({ state: "failed", summary: "It broke." });
  });

  it("a request in the timeline has its answer, approver and time, and the approvers that it passed", () => {
    const request = { requestId: "r", kind: "permission", toolName: "Bash", input: { command: "ls" }, toolUseId: "u" };
    const asked: Draft = { type: "permission.asked", data: request };
    const passed: Draft = {
      type: "request.passed",
      data: { requestId: "r", from: "user", to: "console", why: "time" },
    };
    const answer = (behavior: string): Draft => ({
      type: "permission.answered",
      data: { requestId: "r", toolName: "Bash", behavior, by: "console" },
    });
    expect(findCall(fold(toolCall("u", "Bash"), asked), "u").state).toBe("asked");
    const items = fold(toolCall("u", "Bash"), asked, passed, answer("deny"), toolResult("u", "no", { is_error: true }));
    expect(findCall(items, "u").state).toBe("denied");
    expect(items[1]).toMatchObject({
      kind: "request",
      at: 2000,
      passed: [{ from: "user", to: "console", why: "time", at: 3000 }],
      answer: { by: "console", behavior: "deny", at: 4000 },
    });
    expect(findCall(fold(toolCall("u", "Bash"), asked, answer("allow")), "u").state).toBe("running");
  });

  it("the timeline may begin with a result, a subagent or an answer whose beginning is not loaded", () => {
    const items = fold(
      toolResult("u", "late"),
      text("of a subagent", "agent"),
      { type: "permission.answered", data: { requestId: "r", toolName: "Bash", behavior: "allow", by: "rule" } },
      { type: "prompt.steered", data: { promptId: "p" } },
      started("p"),
    );
    expect(kinds(items)).toEqual(["call", "call", "line", "line"]);
    expect(items[0]).toMatchObject({ name: undefined, output: "late" });
    expect(items[1]).toMatchObject({ children: [{ kind: "text" }] });
  });

  it.each<[string, Draft]>([
    ["an event of a newer server", { type: "planet.moved", data: { to: "elsewhere" } }],
    ["a message of a newer Claude Code", message({ type: "planet", subtype: "moved" })],
    ["a system message of a newer Claude Code", message({ type: "system", subtype: "moved" })],
    ["an unknown block", assistantSays([{ type: "hologram", beam: 1 }])],
    ["an assistant message without content", message({ type: "assistant" })],
    ["an invalid user message", message({ type: "user", message: 5 })],
    ["an invalid block", assistantSays([null])],
    ["a call without a name", assistantSays([{ type: "tool_use", id: "u" }])],
    ["a notice of a new kind", { type: "notice", data: { kind: "new", message: "Something new" } }],
  ])("the timeline shows %s as one line", (_, draft) => {
    const items = fold(draft);
    expect(kinds(items)).toEqual(["line"]);
  });

  it("the timeline survives calls that claim to be each other's parents", () => {
    const items = fold(
      toolCall("a", "Agent", {}, "b"),
      toolCall("b", "Agent", {}, "a"),
      toolCall("c", "Agent", {}, "c"),
    );
    expect(items.length).toBeGreaterThan(0);
  });

  it("the timeline keeps the identity of unchanged items, so that only changes are rendered", () => {
    const made = new TimelineReducer();
    const drafts = [text("one"), toolCall("a", "Agent"), text("two"), text("three", "a")];
    const snapshots = numbered(drafts).map((event) => {
      made.take(event);
      return made.items;
    });
    const [, , before = [], after = []] = snapshots;
    expect(after.map((item, at) => item === before[at])).toEqual([true, false, true]);
    expect(made.items).toBe(after);
  });

  it("an item of the timeline records which of its events were cut", () => {
    const items = fold(
      { ...toolCall("u", "Bash"), cut: true },
      { ...toolResult("u", "long"), cut: true },
      text("short"),
    );
    expect(items.map(({ cutIn }) => cutIn)).toEqual([[1, 2], []]);
  });

  it("the timeline takes ten thousand events within 3 s", async () => {
    const made = new TimelineReducer();
    const drafts = Array.from({ length: 5_000 }, (_, at) => [
      toolCall(`u${String(at)}`, "Bash", {}, at % 3 === 0 ? null : "u0"),
      toolResult(`u${String(at)}`, "ok"),
    ]).flat();
    const takeAll = () => numbered(drafts).forEach((event) => made.take(event));
    expect(await processorMs(takeAll)).toBeLessThan(3_000);
    expect(made.items.length).toBeGreaterThan(1_000);
  });
});

describe("the title of a call", () => {
  it.each<[string | undefined, Loose, string]>([
    ["Bash", { command: "npm test\n && ls" }, "Bash | npm test && ls"],
    ["Read", { file_path: "/home/ann/shop/src/a.ts" }, "Read | src/a.ts"],
    ["Write", { file_path: "/elsewhere/a.ts" }, "Write | /elsewhere/a.ts"],
    ["Agent", { description: "Look", subagent_type: "Explore" }, "Agent (Explore) | Look"],
    ["mcp__git_hub__create", { title: "T", count: 1 }, "git_hub: create | T"],
    ["AskUserQuestion", { questions: [{ question: "Which?" }] }, "Question | Which?"],
    ["constructor", {}, "constructor | "],
    ["Bash", { command: "ls \u202Etxt.exe" }, "Bash | ls ⟨U+202E⟩txt.exe"],
    [undefined, {}, "An earlier call | "],
  ])("the call %s %j has the title %s", (name, input, title) => {
    const { subject, verb } = callTitle(name, input, "/home/ann/shop");
    expect(`${verb} | ${subject}`).toBe(title);
  });
});
