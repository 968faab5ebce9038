import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type FormerOwner, Inbound, takeLineNumber } from "../../src/claude/shim/inbound.ts";
import { Outbound, type OutboundLine } from "../../src/claude/shim/outbound.ts";

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const asks = (id: string, subtype = "can_use_tool") =>
  json({ type: "control_request", request_id: id, request: { subtype } });
const callsHook = (id: string, toolUseId: string) =>
  json({ type: "control_request", request_id: id, request: { subtype: "hook_callback", tool_use_id: toolUseId } });
const cancels = (id: string) => json({ type: "control_cancel_request", request_id: id });
const initialized = (id: string, more: object = {}) =>
  json({ type: "control_response", response: { subtype: "success", request_id: id, response: {}, ...more } });
const says = (text: string) => json({ type: "assistant", text });

/** Makes an `Inbound`, and collects lines in `handed`, exit codes in `exits` and open requests in `pending`. */
function makeInbound(former?: Partial<FormerOwner>) {
  const handed: string[] = [];
  const exits: (number | null)[] = [];
  const pending: (readonly string[])[] = [];
  const inbound = new Inbound(
    {
      hand: (...parts) => handed.push(Buffer.concat(parts).toString()),
      onExit: ({ code }) => exits.push(code),
      onPending: (ids) => pending.push(ids),
    },
    former && { written: new Set(), initialized: undefined, ...former },
  );
  let n = 0;
  const push = (...lines: Buffer[]) => lines.forEach((line) => inbound.push({ n: (n += 1), line }));
  const exit = (code: number) => inbound.push({ n: (n += 1), code, signal: null });
  const messages = () =>
    handed.map((line) => {
      const message: Record<string, unknown> = JSON.parse(line);
      return message["request_id"] ?? message["text"] ?? message["type"];
    });
  return { inbound, handed, exits, pending, push, exit, messages };
}

describe("lines of a process behind a shim", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("a line carries its number, which `takeLineNumber` removes and no text of Claude Code can set", () => {
    const { handed, push } = makeInbound();
    push(json({ type: "assistant", _line: 99 }), says("b"));
    const messages = handed.map((line) => JSON.parse(line) as object);
    expect(messages.map((message) => takeLineNumber(message))).toEqual([1, 2]);
    expect(messages).toEqual([{ type: "assistant" }, { type: "assistant", text: "b" }]);
    expect(takeLineNumber({ _line: "1" })).toBeUndefined();
  });

  it.each(["{}", "", "no JSON", "[1]"])("a line that can carry no number is handed on unchanged: %j", (line) => {
    const { handed, push } = makeInbound();
    push(Buffer.from(line));
    expect(handed).toEqual([`${line}\n`]);
  });

  it("a line that comes again is dropped", () => {
    const { inbound, messages, push } = makeInbound();
    push(says("a"), says("b"));
    inbound.push({ n: 2, line: says("again") });
    inbound.push({ n: 3, line: says("c") });
    expect([messages(), inbound.last]).toEqual([["a", "b", "c"], 3]);
  });

  it.each(["can_use_tool", "hook_callback", "elicitation"])(
    "lines wait behind a request of %s until it is settled",
    (kind) => {
      const { exit, exits, inbound, messages, push } = makeInbound();
      push(asks("q", kind), says("behind"));
      exit(0);
      inbound.settle("another");
      expect([messages(), exits]).toEqual([["q"], []]);
      inbound.settle("q");
      expect([messages(), exits]).toEqual([["q", "behind"], [0]]);
    },
  );

  it("lines do not wait behind a request that the SDK answers by itself", () => {
    const { messages, push } = makeInbound();
    push(asks("q", "mcp_message"), says("behind"));
    expect(messages()).toEqual(["q", "behind"]);
  });

  it("lines wait behind a hook call until it is reported by its tool use id", () => {
    const { inbound, messages, push } = makeInbound();
    push(callsHook("h", "of-the-hook"), says("a"));
    inbound.settle("another");
    expect(messages()).toEqual(["h"]);
    inbound.settle("of-the-hook");
    expect(messages()).toEqual(["h", "a"]);
  });

  it("lines go on after a while behind a request that no owner settles", () => {
    const { messages, push } = makeInbound();
    push(asks("q"), says("behind"));
    vi.runAllTimers();
    expect(messages()).toEqual(["q", "behind"]);
  });

  it("lines wait for nothing once the SDK reads no more", () => {
    const { inbound, messages, push } = makeInbound({});
    push(says("a"), asks("q"), says("b"));
    expect(messages()).toEqual([]);
    inbound.open();
    push(asks("r"), says("c"));
    expect(messages()).toEqual(["a", "q", "b", "r", "c"]);
  });
});

describe("lines for a later owner", () => {
  it("a later owner gets lines after the answer to `initialize`, without listed, answered and cancelled requests", () => {
    const { messages, pending, push, inbound } = makeInbound({ written: new Set(["r:answered"]) });
    push(says("a"), asks("listed"), asks("answered", "mcp_message"), asks("cancelled", "mcp_message"));
    push(asks("kept", "mcp_message"), cancels("cancelled"), initialized("other"));
    inbound.initializing("i");
    expect([messages(), pending]).toEqual([[], []]);
    push(initialized("i", { pending_permission_requests: [{ request_id: "listed" }] }));
    expect(pending).toEqual([["listed"]]);
    expect(messages()).toEqual(["control_response", "a", "kept", "cancelled", "control_response"]);
  });

  it.each([
    ["before the SDK initializes", ["exit", "initializing"]],
    ["after the SDK has initialized", ["initializing", "exit"]],
    ["after a refusal of its input", ["initializing", "refused", "exit"]],
  ] as const)("a later owner gets the lines and the exit of a process that has ended %s", (_, steps) => {
    const first = initialized("first", {
      response: { models: ["m"] },
      pending_permission_requests: [{ request_id: "q" }],
    });
    const { exit, exits, handed, inbound, pending, push } = makeInbound({ initialized: first });
    push(says("a"));
    const ways = {
      exit: () => exit(3),
      initializing: () => inbound.initializing("i"),
      refused: () => inbound.refused(),
    };
    for (const step of steps) ways[step]();
    const answer = { subtype: "success", request_id: "i", response: { models: ["m"] } };
    expect(handed.map((line): unknown => JSON.parse(line))).toEqual([
      { type: "control_response", response: answer },
      { type: "assistant", text: "a", _line: 1 },
    ]);
    expect([exits, pending]).toEqual([[3], [[]]]);
  });

  it("a later owner gets hook calls without an answer as pending", () => {
    const { inbound, messages, pending, push } = makeInbound({ written: new Set(["r:answered"]) });
    push(callsHook("answered", "one"), callsHook("open", "two"), callsHook("over", "three"), cancels("over"));
    inbound.initializing("i");
    push(initialized("i"));
    expect(pending).toEqual([["open", "two"]]);
    expect(messages()).toEqual(["control_response", "open"]);
  });

  it("a later owner gets an empty answer to `initialize` if Claude Code ended without any", () => {
    const { exit, exits, handed, inbound } = makeInbound({});
    exit(1);
    expect(exits).toEqual([]);
    inbound.initializing("i");
    expect(JSON.parse(handed[0]!)).toEqual({
      type: "control_response",
      response: { subtype: "success", response: {}, request_id: "i" },
    });
    expect(exits).toEqual([1]);
  });
});

describe("lines towards a process behind a shim", () => {
  function makeOutbound(hasHooks = false) {
    const sent: OutboundLine[] = [];
    let isEnded = false;
    const stdin = new Outbound({
      epoch: () => 7,
      hasHooks: () => hasHooks,
      send: (line) => void sent.push(line),
      onEnd: () => (isEnded = true),
    });
    return { sent, stdin, isEnded: () => isEnded };
  }

  it.each([
    ["a message by its uuid", { type: "user", uuid: "u-1" }, "u-1"],
    ["a message without uuid by its place", { type: "user" }, "7:line-1"],
    ["a response by its request", { type: "control_response", response: { request_id: "q" } }, "r:q"],
    ["a request by its owner", { type: "control_request", request_id: "x", request: {} }, "7:x"],
    ["a cancellation by its request", { type: "control_cancel_request", request_id: "q" }, "c:q"],
    ["any other message by its place", { type: "keep_alive" }, "7:line-1"],
    ["an id that a shim does not take by its place", { type: "user", uuid: "a b" }, "7:line-1"],
    ["a line that is not an object by its place", 5, "7:line-1"],
  ])("each line has an id: %s", (_, line, id) => {
    const { sent, stdin } = makeOutbound();
    stdin.write(`${JSON.stringify(line)}\n`);
    expect(sent).toEqual([{ id, text: JSON.stringify(line) }]);
  });

  it("lines are sent once complete; empty lines are dropped; invalid JSON is sent unchanged", () => {
    const { isEnded, sent, stdin } = makeOutbound();
    for (const part of ["{no", " JSON}\n\n  \n", '{"type":"x"}', "\nrest"]) stdin.write(part);
    expect(sent.map(({ id, text }) => [id, text])).toEqual([
      ["7:line-1", "{no JSON}"],
      ["7:line-2", '{"type":"x"}'],
    ]);
    expect(isEnded()).toBe(false);
    stdin.end();
    return vi.waitFor(() => expect(isEnded()).toBe(true));
  });

  it.each([
    [true, { subtype: "initialize", agents: {} }],
    [false, { subtype: "initialize", hooks: { Stop: [] }, agents: {} }],
  ])("`initialize` names hooks unless Claude Code has them from a former owner (%s)", (hasHooks, request) => {
    const { sent, stdin } = makeOutbound(hasHooks);
    const given = { subtype: "initialize", hooks: { Stop: [] }, agents: {} };
    stdin.write(`${JSON.stringify({ type: "control_request", request_id: "i", request: given })}\n`);
    expect(sent.map(({ id, initializeId, text }) => [id, initializeId, JSON.parse(text) as object])).toEqual([
      ["7:i", "i", { type: "control_request", request_id: "i", request }],
    ]);
  });
});
