import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/domain/json.ts";
import { amount } from "../kit/runner/amount.ts";
import { emitCall, emitOutcome, startRunningSession } from "../kit/tools/log.ts";
import { check } from "../kit/tools/run.ts";

interface Part {
  tool?: string;
  input?: { command: string };
  toolUseId?: string;
  ok?: boolean;
  output?: string;
  outputEventId?: number;
}

/** Returns all calls and outcomes of `events`, entries of `others` included. */
function partsOf(events: { data: JsonObject }[]): Part[] {
  return events.flatMap(({ data }) => {
    const { others = [], ...first } = data as Part & { others?: Part[] };
    return [first, ...others];
  });
}

/** Id of the call: `toolUseId`, or the end of its command. */
const nameOf = ({ input, toolUseId }: Part) => toolUseId ?? input?.command.replace("run ", "");

describe("mode minimal", () => {
  it("a call is reported with its outcome as one event", async () => {
    const { engine, session } = startRunningSession();
    const id = emitCall(session, "u1");
    emitOutcome(session, ["u1"]);
    const answer = await check(engine);
    expect(answer.events).toMatchObject([
      {
        id,
        type: "output",
        data: { tool: "Bash", input: { command: "run u1" }, ok: true, output: "out of u1" },
      },
    ]);
    expect(answer.nextCursor).toBe(4);
  });

  it("a later outcome is reported as an update that names the call", async () => {
    const { engine, session } = startRunningSession();
    emitCall(session, "u1");
    const first = await check(engine);
    expect(first.events[0]?.data).not.toHaveProperty("ok");
    const id = emitOutcome(session, ["u1"]);
    const second = await check(engine, { cursor: first.nextCursor });
    expect(second.events).toMatchObject([
      { id, type: "progress", data: { toolUseId: "u1", ok: true, output: "out of u1" } },
    ]);
    expect(second.events[0]?.data).not.toHaveProperty("tool");
  });

  it("each of several calls has its own outcome, and other outcomes are reported separately", async () => {
    const { engine, session } = startRunningSession();
    emitCall(session, "u0");
    const from = emitCall(session, "u1", "u2");
    emitOutcome(session, ["u2", "u0"]);
    expect((await check(engine, { cursor: from })).events).toMatchObject([
      { data: { toolUseId: "u1", others: [{ input: { command: "run u2" }, ok: true, output: "out of u2" }] } },
      { type: "progress", data: { toolUseId: "u0", output: "out of u0" } },
    ]);
  });

  it("a cut outcome says where its full text can be read", async () => {
    const { engine, session } = startRunningSession();
    emitCall(session, "u1");
    const id = emitOutcome(session, ["u1"], () => `${"😀".repeat(100)}${"x".repeat(1_000)}${"é".repeat(100)}`);
    const { events } = await check(engine);
    expect(events[0]?.data).toMatchObject({
      output: `${"😀".repeat(20)} … ${"é".repeat(50)}`,
      outputEventId: id,
    });
  });

  it("every call and every outcome is reported once, however the log is divided into answers", async () => {
    const step = fc.record({ calls: fc.nat(2), outcomes: fc.nat(2), size: fc.nat(2_500) });
    const limits = fc.record({
      maxEvents: fc.integer({ min: 1, max: 4 }),
      maxBytes: fc.constantFrom(2_048, 2_500, 32_768),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.array(limits, { minLength: 1 }), async (steps, pages) => {
        const { engine, session } = startRunningSession();
        const made = { calls: [] as string[], open: [] as string[], ended: [] as string[] };
        for (const { calls, outcomes, size } of steps) {
          const ids = Array.from({ length: calls }, (_, index) => `u${String(made.calls.length + index)}`);
          if (ids.length > 0) emitCall(session, ...ids);
          made.calls.push(...ids);
          made.open.push(...ids);
          const ended = made.open.splice(0, outcomes);
          if (ended.length > 0) emitOutcome(session, ended, () => "\u0001".repeat(size));
          made.ended.push(...ended);
        }
        const reported = { calls: [] as unknown[], ended: [] as unknown[] };
        let cursor = 1;
        for (let turn = 0; cursor <= session.state.lastEventId; turn += 1) {
          const answer = await check(engine, { cursor, ...pages[turn % pages.length] });
          expect(answer.nextCursor).toBeGreaterThan(cursor);
          const parts = partsOf(answer.events);
          reported.calls.push(...parts.filter(({ tool }) => tool !== undefined).map(nameOf));
          reported.ended.push(...parts.filter(({ ok }) => ok !== undefined).map(nameOf));
          cursor = answer.nextCursor;
        }
        expect(reported.calls).toEqual(made.calls);
        expect(reported.ended).toHaveLength(made.ended.length);
        expect(new Set(reported.ended)).toEqual(new Set(made.ended));
      }),
      { numRuns: amount(60, 1_500) },
    );
  });

  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    ["Bash", { command: "ls", description: "Look" }, {}, { input: { command: "ls" }, output: "out of u1" }],
    [
      "Bash",
      { command: "ls", run_in_background: true, sandbox: false, timeout: 5 },
      {},
      { input: { command: "ls", run_in_background: true, timeout: 5 }, output: "out of u1" },
    ],
    ["Read", { file_path: "/a" }, {}, { input: { file_path: "/a" } }],
    [
      "Write",
      { file_path: "/a", content: "c".repeat(99) },
      { structuredPatch: [] },
      { input: { file_path: "/a" }, inputCut: true },
    ],
    [
      "Agent",
      { description: "look", prompt: "p".repeat(99) },
      {},
      { input: { description: "look" }, inputCut: true, toolUseId: "u1", output: "out of u1" },
    ],
    ["mcp__lab__run", { job: 7, flag: false }, {}, { input: { job: 7, flag: false }, output: "out of u1" }],
  ])(
    "a call of %s with %j is reported with the fields that a reader needs",
    async (name, input, structured, reported) => {
      const { engine, session } = startRunningSession();
      const content = [{ type: "tool_use", id: "u1", name, input }];
      session.emit({ type: "message", data: { message: { type: "assistant", message: { content } } } });
      const result = [{ type: "tool_result", tool_use_id: "u1", content: "out of u1" }];
      const message = { type: "user", message: { content: result }, tool_use_result: structured };
      session.emit({ type: "message", data: { message } });
      expect((await check(engine)).events.map(({ data }) => data)).toEqual([{ tool: name, ok: true, ...reported }]);
    },
  );

  it("the message of a failure is reported for every tool", async () => {
    const { engine, session } = startRunningSession();
    const content = [{ type: "tool_use", id: "u1", name: "Read", input: { file_path: "/a" } }];
    session.emit({ type: "message", data: { message: { type: "assistant", message: { content } } } });
    const result = [{ type: "tool_result", tool_use_id: "u1", content: "no such file", is_error: true }];
    session.emit({ type: "message", data: { message: { type: "user", message: { content: result } } } });
    expect((await check(engine)).events[0]?.data).toMatchObject({ ok: false, output: "no such file" });
  });

  it("the input of a call that waits for a decision is shown only in the request", async () => {
    const { engine, session } = startRunningSession();
    emitCall(session, "u1");
    session.openRequest();
    const data = (await check(engine)).events.map((event) => event.data);
    expect(data).toEqual([]);
    const [alone] = (await check(engine, { pollOptions: { includeActions: false } })).events;
    expect(alone?.data).toMatchObject({ input: { command: "run u1" } });
  });

  it("background work is omitted from events, and the caller's own decision is reported in short", async () => {
    const { engine, session } = startRunningSession();
    const tasks = [{ id: "b1", type: "local_bash", description: "the tests" }];
    session.state.background = tasks;
    session.emit({ type: "background.changed", data: { tasks } });
    const denied = { requestId: "r1", toolName: "Bash", behavior: "deny", message: "no" } as const;
    session.emit({ type: "permission.answered", data: { ...denied, by: "caller" } });
    session.emit({ type: "permission.answered", data: { ...denied, by: "timeout" } });
    const answer = await check(engine);
    expect(answer).toMatchObject({ background: tasks });
    expect(answer.events.map(({ data }) => data)).toEqual([
      { requestId: "r1", decision: "deny", by: "caller" },
      { requestId: "r1", toolName: "Bash", decision: "deny", by: "timeout", message: "no" },
    ]);
    const compact = await check(engine, { responseMode: "delta_compact" });
    expect(compact.events.map(({ data }) => data)).toMatchObject([{ background: tasks }, { message: "no" }, {}]);
  });
});

describe("the other modes", () => {
  it("mode delta_compact reports every message by itself", async () => {
    const { engine, session } = startRunningSession();
    emitCall(session, "u1");
    emitOutcome(session, ["u1"]);
    const { events } = await check(engine, { responseMode: "delta_compact" });
    expect(events.map(({ type }) => type)).toEqual(["output", "progress"]);
  });

  it("mode full reports messages as they are stored, including messages that no other mode reports", async () => {
    const { engine, session } = startRunningSession();
    const thinking = { type: "assistant", message: { content: [{ type: "thinking", thinking: "hm" }] } };
    const unknown = { type: "system", subtype: "brand_new", inside: [1] };
    const input = { command: "c".repeat(3_000) };
    session.emit({ type: "message", data: { message: thinking } });
    session.emit({ type: "message", data: { message: unknown } });
    session.openRequest({ input });
    const { events } = await check(engine, { responseMode: "full" });
    expect(events.map(({ data, type }) => [type, data])).toEqual([
      ["output", thinking],
      ["progress", unknown],
      ["permission_request", { requestId: "r1", kind: "permission", toolName: "Bash", toolUseId: "u1", input }],
    ]);
    const cut = await check(engine, { responseMode: "full", cursor: 4, maxBytes: 2_048 });
    expect(cut).toMatchObject({ truncated: true, nextCursor: 5 });
    expect(cut.truncatedFields).toContain("events[].data");
  });
});

describe("pollOptions", () => {
  const ended = () => {
    const { engine, session } = startRunningSession();
    session.emitText("working");
    session.emit({ type: "notice", data: { kind: "retry", message: "again" } });
    session.finishTurn("All is done, and well done.");
    return engine;
  };

  it.each<[string, JsonObject, string[]]>([
    ["all events", {}, ["output", "progress"]],
    ["includeResult", { includeResult: false }, ["output", "progress", "result"]],
    ["includeProgressEvents", { includeProgressEvents: false }, ["output"]],
    ["includeTerminalEvents", { includeTerminalEvents: false }, ["output", "progress"]],
    ["includeEvents", { includeEvents: false }, []],
  ])("a poll returns only the chosen events: %s", async (_, pollOptions, types) => {
    const answer = await check(ended(), { pollOptions });
    expect(answer.events.map(({ type }) => type)).toEqual(types);
    // `nextCursor` passes unwanted events all the same.
    expect(answer.nextCursor).toBe(6);
    expect(answer).not.toHaveProperty("truncated");
  });

  it("a result omitted by `includeResult` is contained in its event", async () => {
    const answer = await check(ended(), { pollOptions: { includeResult: false } });
    expect(answer).not.toHaveProperty("result");
    expect(answer.events.at(-1)?.data).toMatchObject({ result: "All is done, and well done.", numTurns: 2 });
    const short = { result: "All is done, and well done.", isError: false };
    const usage = { costUsd: 0.01, inputTokens: 0, outputTokens: 20 };
    expect((await check(ended())) as object).toMatchObject({ result: { ...short, usage } });
    expect(await check(ended(), { pollOptions: { includeUsage: false } })).not.toHaveProperty("result.usage");
  });

  it("`pollOptions` add or omit `usage`, `modelUsage` and `structuredOutput` of a result", async () => {
    const counted = await check(ended(), { pollOptions: { includeUsage: true } });
    expect(counted).toMatchObject({ result: { usage: { output_tokens: 20 } } });
    expect(await check(ended(), { responseMode: "full" })).toMatchObject({ result: { usage: { output_tokens: 20 } } });
    const without = await check(ended(), { responseMode: "full", pollOptions: { includeUsage: false } });
    expect(without).toHaveProperty("result.result");
    expect(without).not.toHaveProperty("result.usage");
    const { engine, session } = startRunningSession();
    const message = { type: "result", result: "r", structured_output: { a: 1 }, modelUsage: { opus: { costUSD: 1 } } };
    const resultEventId = session.emit({ type: "message", data: { message } });
    session.endTurn({ resultEventId });
    expect(await check(engine)).toHaveProperty("result.structuredOutput", { a: 1 });
    expect(await check(engine)).not.toHaveProperty("result.modelUsage");
    const chosen = { includeStructuredOutput: false, includeModelUsage: true };
    const other = await check(engine, { pollOptions: chosen });
    expect(other).not.toHaveProperty("result.structuredOutput");
    expect(other).toHaveProperty("result.modelUsage");
  });

  it("requests omitted by `includeActions` do not count as delivered", async () => {
    const { engine, session } = startRunningSession();
    session.openRequest();
    const answer = await check(engine, { pollOptions: { includeActions: false } });
    expect(answer).not.toHaveProperty("actions");
    expect(answer.events[0]?.data).toMatchObject({ summary: "Bash: npm test" });
    expect(engine.delivers).toEqual([]);
  });

  it("`maxBytes` is accepted in `pollOptions` as well", async () => {
    const { engine, session } = startRunningSession();
    for (let line = 0; line < 50; line += 1) session.emitText("x".repeat(200));
    const answer = await check(engine, { pollOptions: { maxBytes: 3_000 } });
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThanOrEqual(3_000);
    expect(answer.truncatedFields).toEqual(["events"]);
  });
});
