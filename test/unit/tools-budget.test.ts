import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assembleCheck, type CheckMaterial } from "../../src/view/check.ts";
import { readRequest } from "../../src/tools/check/request.ts";
import type { EventType, ResponseMode, ShownEvent } from "../../src/view/event.ts";
import { beginningWithin, cutText, fit, jsonBytes } from "../../src/view/size.ts";
import { amount } from "../kit/runner/amount.ts";
import { NOW } from "../kit/tools/fake-session.ts";
import { withCaller } from "../kit/sessions/open-request.ts";

const { include } = readRequest({}, { maxWaitMs: 0 }).form;
const timestamp = new Date(NOW).toISOString();

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.integer({ min: 0, max: 6_000 }).map((length) => "\u0001".repeat(length)),
  fc.integer({ min: 0, max: 6_000 }).map((length) => "word ".repeat(length)),
  fc.constantFrom("\ud83d", "😀".repeat(2_000), '"\\'.repeat(2_000)),
);
const object = fc.dictionary(
  fc.string({ maxLength: 12 }),
  fc.oneof(text, fc.integer(), fc.jsonValue({ maxDepth: 4 })),
  { maxKeys: 8 },
);

const event = fc.record({
  type: fc.constantFrom<EventType>("output", "progress", "result", "error"),
  data: fc.oneof(
    text.map((said) => ({ text: said })),
    text.map((said) => ({ result: said, isError: false })),
    object,
  ),
});

const asked = fc.array(
  fc.record({
    input: object,
    reason: fc.option(text, { nil: undefined }),
    suggestions: fc.option(fc.array(object, { maxLength: 3 }), { nil: undefined }),
  }),
  { maxLength: 12 },
);

const material = fc
  .record({
    from: fc.integer({ min: 1, max: 1_000_000 }),
    events: fc.array(event, { maxLength: 40 }),
    hidden: fc.array(fc.nat(3), { minLength: 40, maxLength: 40 }),
    asked,
    result: fc.option(fc.record({ result: text, usage: object, structuredOutput: object }), { nil: undefined }),
    mode: fc.constantFrom<ResponseMode>("minimal", "delta_compact", "full"),
    lists: fc.record({ background: fc.array(object, { maxLength: 20 }), availableTools: fc.array(object) }),
    tail: text.map((reason) => ({ cancelledReason: cutText(reason, 300), lastEventId: 1_000_000 })),
  })
  .map(({ from, events, hidden, asked: given, lists, mode, result, tail }): CheckMaterial & { from: number } => {
    let id = from;
    const shown: ShownEvent[] = [];
    for (const [index, { type, data }] of events.entries()) {
      id += hidden[index] ?? 0;
      shown.push({ id, type, data, timestamp });
      id += 1;
    }
    const requests = given.map(({ input, reason, suggestions }, index) => ({
      open: {
        requestId: `r${String(index)}`,
        kind: "permission" as const,
        eventId: 1,
        toolName: "Bash",
        seenWhole: false,
        ...withCaller(NOW, NOW + 60_000),
      },
      request: {
        requestId: `r${String(index)}`,
        kind: "permission" as const,
        toolName: "Bash",
        toolUseId: "toolu_01",
        input,
        ...(reason !== undefined && { decisionReason: reason }),
        ...(suggestions && { suggestions }),
      },
    }));
    const head = {
      sessionId: "0b5f4a52-6f4e-4d5c-9d3e-1f2a3b4c5d6e",
      status: "waiting_permission",
      pollInterval: 1_000,
    };
    const form = { mode, include };
    const rest = { more: false, asked: requests, result, resultEventId: id, now: NOW };
    return { from, form, lists, head, tail, events: shown, end: id, ...rest };
  });

const budget = fc.oneof(fc.integer({ min: 2_048, max: 4_096 }), fc.constant(32_768));

interface Answer {
  events: { id: number; data: { text?: string; result?: string } }[];
  nextCursor: number;
  truncated?: true;
  truncatedFields?: string[];
  actions?: { requestId: string; input: object; inputTruncated?: true; suggestions?: object[] }[];
  result?: { result?: string };
}

function assemble(what: CheckMaterial, maxBytes: number): Answer {
  return assembleCheck(what, maxBytes).answer as unknown as Answer;
}

describe("an answer of claude_code_check", () => {
  it("an answer never exceeds its budget", () => {
    fc.assert(
      fc.property(material, budget, (what, maxBytes) => {
        expect(jsonBytes(assembleCheck(what, maxBytes).answer)).toBeLessThanOrEqual(maxBytes);
      }),
      { numRuns: amount(50, 2_000) },
    );
  });

  it("an answer always advances the caller, and every event is shown once", () => {
    fc.assert(
      fc.property(material, budget, (what, maxBytes) => {
        const seen: number[] = [];
        let cursor = what.from;
        while (cursor < what.end) {
          const events = what.events.filter(({ id }) => id >= cursor);
          const answer = assemble({ ...what, events }, maxBytes);
          expect(answer.nextCursor).toBeGreaterThan(cursor);
          const isCut = answer.truncatedFields?.includes("events") ?? false;
          expect(isCut).toBe(answer.nextCursor < what.end);
          seen.push(...answer.events.map(({ id }) => id));
          cursor = answer.nextCursor;
        }
        // A minimal answer may omit output that the result repeats verbatim.
        const isRepeated = ({ type, data }: ShownEvent) =>
          what.form.mode === "minimal" && type === "output" && data["text"] === what.result?.["result"];
        const repeated = what.events.filter(isRepeated).map(({ id }) => id);
        const expected = what.events.map(({ id }) => id).filter((id) => seen.includes(id) || !repeated.includes(id));
        expect(seen).toEqual(expected);
      }),
      { numRuns: amount(30, 1_000) },
    );
  });

  it("an answer marks every request with incomplete input, and never cuts a suggestion", () => {
    fc.assert(
      fc.property(material, budget, (what, maxBytes) => {
        const { answer, shown } = assembleCheck(what, maxBytes);
        const actions = (answer as unknown as Answer).actions ?? [];
        expect(shown.map(({ requestId }) => requestId)).toEqual(actions.map(({ requestId }) => requestId));
        for (const [index, action] of actions.entries()) {
          const { request } = what.asked[index]!;
          const whole = jsonBytes(action.input) === jsonBytes(request.input);
          expect(shown[index]?.whole).toBe(action.inputTruncated === undefined);
          expect(whole || action.inputTruncated === true).toBe(true);
          expect([undefined, request.suggestions]).toContain(action.suggestions);
        }
      }),
      { numRuns: amount(30, 1_000) },
    );
  });
});

describe("the content to cut", () => {
  const head = { sessionId: "s1", status: "idle" };
  const plain: CheckMaterial = {
    form: { mode: "delta_compact", include },
    lists: {},
    head,
    tail: {},
    events: [],
    end: 1,
    more: false,
    asked: [],
    result: undefined,
    resultEventId: null,
    now: NOW,
  };
  const output = (id: number, said: string): ShownEvent => ({ id, type: "output", data: { text: said }, timestamp });
  const ended = (id: number, said: string): ShownEvent => ({ id, type: "result", data: { result: said }, timestamp });
  const long = "All tests pass now. ".repeat(20);

  it("a cut text is marked with its size, and the longest text is cut first", () => {
    const { value, cut } = fit({ id: "toolu_01ABC", short: "stays", long: "x".repeat(2_000) }, 500);
    expect(cut).toBe(true);
    expect(value).toMatchObject({ id: "toolu_01ABC", short: "stays" });
    expect(value["long"]).toMatch(/^x{300,}… \[cut, \d+ bytes\]$/);
    const kept = /^x*/.exec(String(value["long"]))?.[0].length ?? 0;
    expect(value["long"]).toContain(`[cut, ${String(2_000 - kept)} bytes]`);
  });

  it("a text is never cut in the middle of a character", () => {
    expect(cutText("😀".repeat(100), 200)).toMatch(/^(?:😀)+… \[cut, \d+ bytes\]$/u);
  });

  it("a single event that is larger than the answer is cut", () => {
    const answer = assemble({ ...plain, events: [output(7, "y".repeat(9_000)), output(9, "next")], end: 12 }, 2_048);
    expect(answer).toMatchObject({ truncated: true, truncatedFields: ["events", "events[].data"], nextCursor: 9 });
    expect(answer.events).toHaveLength(1);
    expect(answer.events[0]?.data.text).toMatch(/^y{1000,}… \[cut, \d+ bytes\]$/);
  });

  it("an event that fits into the next answer is not cut", () => {
    const answer = assemble({ ...plain, events: [output(7, "first"), output(9, "y".repeat(1_900))], end: 10 }, 2_048);
    expect(answer).toMatchObject({ truncatedFields: ["events"], nextCursor: 9 });
    expect(answer.events.map(({ id }) => id)).toEqual([7]);
  });

  it("an answer in which nothing is cut has no `truncated`", () => {
    const answer = assemble({ ...plain, events: [output(7, "all")], end: 10 }, 2_048);
    expect(answer).toEqual({ ...head, events: [output(7, "all")], nextCursor: 10 });
  });

  it("a text that the result of the answer repeats is replaced by (see result)", () => {
    const answer = assemble({ ...plain, events: [output(7, long)], end: 8, result: { result: long } }, 4_096);
    expect(answer.events[0]?.data.text).toBe("(see result)");
    expect(answer.result?.result).toBe(long);
  });

  it("a text that the end of an earlier turn repeats is replaced only if both are in the answer", () => {
    const both = assemble({ ...plain, events: [output(7, long), ended(9, long)], end: 10 }, 4_096);
    expect(both.events.map(({ data }) => data.text ?? data.result)).toEqual(["(see result)", long]);
    const tight = "z".repeat(1_000);
    const one = assemble({ ...plain, events: [output(7, tight), ended(9, tight)], end: 10 }, 2_048);
    expect(one).toMatchObject({ events: [{ data: { text: tight } }], nextCursor: 9 });
  });

  it("a short text is shown in full even if the result repeats it", () => {
    const answer = assemble({ ...plain, events: [output(7, "Done.")], end: 8, result: { result: "Done." } }, 4_096);
    expect(answer.events[0]?.data.text).toBe("Done.");
  });

  it("the text of a result is kept, and its numbers are dropped only if necessary", () => {
    const usage = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`count${String(index)}`, index]));
    const result = { sessionId: "s1", result: "short", isError: false, usage, modelUsage: usage };
    const answer = assemble({ ...plain, result }, 2_048);
    expect(answer.result).toEqual({ sessionId: "s1", result: "short", isError: false });
    expect(answer.truncatedFields).toEqual(["result"]);
  });
});

describe("the size of a character", () => {
  const borders = [
    0x00, 0x1f, 0x20, 0x22, 0x5c, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdfff, 0xe000, 0xffff, 0x10000,
  ];
  it.each([...borders, 0x08, 0x0b, 0x10ffff])("the size of code point %i is its exact size in JSON", (code) => {
    const character = String.fromCodePoint(code);
    const bytes = jsonBytes(character) - 2;
    expect(beginningWithin(character, bytes)).toBe(character);
    expect(beginningWithin(character, bytes - 1)).toBe("");
  });
});
