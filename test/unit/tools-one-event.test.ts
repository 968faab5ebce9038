import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonBytes } from "../../src/view/size.ts";
import { callOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { NOW } from "../kit/tools/fake-session.ts";
import { emitOutcome, startRunningSession } from "../kit/tools/log.ts";
import { runForAnswer, check, run } from "../kit/tools/run.ts";

interface Page {
  content: string;
  offset: number;
  nextOffset?: number;
  totalChars: number;
}

const page = async (engine: FakeEngine, args: object) =>
  (await runForAnswer(engine, "_check", { action: "poll", sessionId: "s1", ...args })) as unknown as Page;

const asking = (input: Record<string, unknown>) => {
  const engine = new FakeEngine();
  const session = engine.add();
  session.startTurn();
  return { engine, session, eventId: session.openRequest({ toolName: "Write", input }) };
};

describe("one event alone", () => {
  it("a single event is shown completely, with its type", async () => {
    const { engine, eventId } = asking({ file_path: "/a" });
    expect(await page(engine, { eventId })).toEqual({
      sessionId: "s1",
      status: "waiting_permission",
      eventId,
      type: "permission_request",
      timestamp: new Date(NOW + eventId).toISOString(),
      offset: 0,
      totalChars: 101,
      content:
        '{"requestId":"r1","kind":"permission","toolName":"Write","input":{"file_path":"/a"},"toolUseId":"u1"}'.slice(
          0,
        ),
    });
  });

  it("pages of any size give the same content, within the budget and without a split character", async () => {
    const text = fc.array(fc.constantFrom("😀", "é", "\u0001", '"', "plain text ", "\\"), { maxLength: 400 });
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.integer({ min: 1, max: 3_000 }),
        fc.constantFrom(2_048, 4_096),
        async (parts, limit, maxBytes) => {
          const input = { content: parts.join("") };
          const { engine, eventId } = asking(input);
          let offset: number | undefined = 0;
          let content = "";
          while (offset !== undefined) {
            // Limits below 20 on a long text repeat one case.
            const answer: Page = await page(engine, { eventId, offset, limit: Math.max(limit, 20), maxBytes });
            expect(jsonBytes(answer)).toBeLessThanOrEqual(maxBytes);
            expect(answer.offset).toBe(offset);
            expect(answer.content).not.toMatch(/\p{Cs}/u);
            content += answer.content;
            offset = answer.nextOffset;
          }
          expect((JSON.parse(content) as { input: object }).input).toEqual(input);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("a page advances by one character at least, and begins with a whole character", async () => {
    const { engine, eventId } = asking({ content: "😀" });
    const { content, totalChars } = await page(engine, { eventId });
    const at = content.indexOf("😀");
    expect(await page(engine, { eventId, offset: at, limit: 1 })).toMatchObject({ content: "😀", nextOffset: at + 2 });
    expect(await page(engine, { eventId, offset: at + 1, limit: 2 })).toMatchObject({ content: "😀", offset: at });
    expect(await page(engine, { eventId, offset: 10_000 })).toMatchObject({ content: "", offset: totalChars });
  });

  it("a page of a request reports to the engine how far the request was read", async () => {
    const { engine, eventId } = asking({ content: "c".repeat(1_000) });
    const first = await page(engine, { eventId, limit: 600 });
    await page(engine, { eventId, offset: first.nextOffset });
    const of = first.totalChars;
    expect(engine.delivers).toEqual([
      [{ requestId: "r1", whole: false, page: { from: 0, to: 600, of } }],
      [{ requestId: "r1", whole: false, page: { from: 600, to: of, of } }],
    ]);
    await page(engine, { eventId, limit: 10 });
    expect(engine.delivers).toHaveLength(3);
    const gone = { action: "poll", sessionId: "s1", eventId };
    await run(engine, "_check", gone, callOf(AbortSignal.abort()));
    expect(engine.delivers).toHaveLength(3);
  });

  it("an action whose input is cut names its event", async () => {
    const { engine, eventId } = asking({ content: "c".repeat(5_000) });
    const answer = await runForAnswer(engine, "_check", {
      action: "poll",
      sessionId: "s1",
      waitMs: 0,
      maxBytes: 2_048,
    });
    expect(answer.actions).toMatchObject([{ inputTruncated: true, inputEventId: eventId }]);
  });

  it("the event of the end of a turn is the complete result", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    const eventId = session.finishTurn("long ".repeat(2_000));
    const { content } = await page(engine, { eventId });
    expect(JSON.parse(content)).toMatchObject({ result: "long ".repeat(2_000), usage: { output_tokens: 20 } });
  });

  it.each<[object, string]>([
    [{ eventId: 9 }, "eventId: there is no event 9; the log ends with 3."],
    [{ eventId: 1 }, "eventId: there is no event 1; the log begins with 2."],
    [{ eventId: 3 }, "eventId: event 3 (session.configured) is not visible to callers."],
    [{ eventId: 0 }, "eventId: must be at least 1, not 0."],
    [{ eventId: 2, cursor: 1 }, "cursor: cannot be combined with eventId, which reads one event."],
    [{ eventId: 2, pollOptions: {} }, "pollOptions: cannot be combined with eventId"],
    [{ offset: 5 }, "offset: is only allowed with eventId."],
    [{ limit: 5 }, "limit: is only allowed with eventId."],
    [{ eventId: 2, requestId: "r1" }, "requestId: is only for action respond_permission"],
    [{ eventId: 2, action: "respond_permission" }, "eventId: is only allowed with action poll."],
  ])("a poll with %j is refused", async (args, problem) => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.emitText("a");
    session.emit({ type: "session.configured", data: {} });
    session.trimmedBefore = 2;
    const reply = await run(engine, "_check", { action: "poll", sessionId: "s1", ...args });
    expect(reply.text).toContain(`Error [INVALID_ARGUMENT]: ${problem}`);
  });
});

describe("a cut input that is part of another event", () => {
  const content = "c".repeat(999);
  const writes = { type: "tool_use", id: "u1", name: "Write", input: { file_path: "/a", content } };
  const cutCall = { tool: "Write", input: { file_path: "/a" } };

  it("a call with a text before it names the event with its full input", async () => {
    const { engine, session } = startRunningSession();
    const id = session.emitText("Now I write it.");
    const two = [writes, { ...writes, id: "u2" }];
    const inputEventId = session.emit({
      type: "message",
      data: { message: { type: "assistant", message: { content: two } } },
    });
    emitOutcome(session, ["u1"]);
    const data = { text: "Now I write it.", ...cutCall, inputEventId, ok: true, output: "out of u1" };
    const others = [{ ...cutCall, inputEventId, toolUseId: "u2" }];
    expect((await check(engine)).events).toEqual([{ id, type: "output", data: { ...data, others } }]);
    expect((await page(engine, { eventId: id })).content).not.toContain(content);
    expect((await page(engine, { eventId: inputEventId })).content).toContain(content);
  });

  it("an outcome of a requested call names the request with the full input", async () => {
    const { engine, session } = startRunningSession();
    const inputEventId = session.openRequest({ toolName: "Write", input: writes.input });
    session.state.requests = [];
    const id = emitOutcome(session, ["u1"]);
    const data = { ...cutCall, inputEventId, ok: true, output: "out of u1" };
    expect((await check(engine, { cursor: id })).events).toEqual([{ id, type: "output", data }]);
    expect((await page(engine, { eventId: id })).content).not.toContain(content);
    expect((await page(engine, { eventId: inputEventId })).content).toContain(content);
  });
});
