import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ControlRequests } from "../../src/shim/control-requests.ts";
import { Exchange, Refusal } from "../../src/shim/exchange.ts";
import { LineBuffer, LineSplitter, TOO_LONG } from "../../src/shim/line-buffer.ts";
import { amount } from "../kit/runner/amount.ts";

const RUNS = { numRuns: amount(200, 20_000) };
const text = (value: string) => Buffer.from(value);
const partial = (name: string, length = 30) => text(`{"type":"stream_event","event":"${name.padEnd(length, ".")}"}`);
const whole = (name: string, length = 30) => text(`{"type":"assistant","message":"${name.padEnd(length, ".")}"}`);

/** Returns the numbers of all items above `after`. */
function numbers(buffer: LineBuffer, after = 0): number[] {
  const found: number[] = [];
  for (let item = buffer.next(after); item; item = buffer.next(item.n)) found.push(item.n);
  return found;
}

describe("a line splitter", () => {
  it("a line splitter gives each line unchanged, however the stream is cut, and the rest behind the last break", () => {
    const line = fc
      .uint8Array({ maxLength: 40 })
      .map((bytes) => Buffer.from(bytes.map((each) => (each === 10 ? 11 : each))));
    fc.assert(
      fc.property(fc.array(line), line, fc.array(fc.nat()), (lines, last, cuts) => {
        const stream = Buffer.concat([...lines.flatMap((each) => [each, text("\n")]), last]);
        const at = [0, ...cuts.map((cut) => cut % (stream.length + 1)), stream.length].toSorted((a, b) => a - b);
        const splitter = new LineSplitter(1_000);
        const found = at.slice(1).flatMap((end, index) => splitter.push(stream.subarray(at[index], end)));
        expect(found).toEqual(lines);
        expect(splitter.rest() ?? Buffer.alloc(0)).toEqual(last);
      }),
      RUNS,
    );
  });

  it("a line splitter reports a line above the limit once, as soon as possible, and goes on behind it", () => {
    const splitter = new LineSplitter(10);
    const chunks = ["0123456789\n01234", "567890", "1234567890", "5\nabc\n", "01234567890\nd"];
    expect(
      chunks.map((chunk) => splitter.push(text(chunk)).map((each) => (each === TOO_LONG ? each : each.toString()))),
    ).toEqual([["0123456789"], [TOO_LONG], [], ["abc"], [TOO_LONG]]);
    expect(splitter.rest()?.toString()).toBe("d");
  });
});

describe("a line buffer", () => {
  it("a line buffer numbers lines from 1, gives those above a number, and forgets acknowledged ones", () => {
    const buffer = new LineBuffer();
    for (const name of ["a", "b", "c"]) buffer.push(whole(name));
    expect(numbers(buffer)).toEqual([1, 2, 3]);
    expect(buffer.next(1)).toEqual({ n: 2, line: whole("b") });
    buffer.acknowledge(2);
    expect(numbers(buffer)).toEqual([3]);
    expect(buffer.next(3)).toBeUndefined();
    expect(buffer.missingAfter(2)).toEqual({ lost: 0, evicted: 0 });
  });

  it("a line buffer evicts partial text only, the oldest first, and is full when none is left", () => {
    const buffer = new LineBuffer(1_300);
    for (const line of [whole("a"), partial("b"), partial("c"), whole("d")]) buffer.push(line);
    expect([numbers(buffer), buffer.isFull]).toEqual([[1, 2, 3, 4], false]);
    buffer.push(whole("e"));
    expect([numbers(buffer), buffer.isFull]).toEqual([[1, 3, 4, 5], false]);
    for (const name of ["f", "g"]) buffer.push(whole(name));
    expect([numbers(buffer), buffer.isFull]).toEqual([[1, 4, 5, 6, 7], true]);
    expect([buffer.missingAfter(0), buffer.missingAfter(2), buffer.missingAfter(3)]).toEqual([
      { lost: 0, evicted: 2 },
      { lost: 0, evicted: 1 },
      { lost: 0, evicted: 0 },
    ]);
    buffer.acknowledge(4);
    expect([buffer.isFull, buffer.missingAfter(4)]).toEqual([false, { lost: 0, evicted: 0 }]);
  });

  it("a line buffer tells evicted lines from acknowledged and from lost ones", () => {
    const buffer = new LineBuffer(1_000);
    for (const line of [whole("a"), whole("b"), partial("c"), whole("d")]) buffer.push(line);
    buffer.skip();
    buffer.acknowledge(1);
    buffer.push(whole("e"));
    buffer.push(whole("f"));
    expect(numbers(buffer)).toEqual([2, 4, 6, 7]);
    // Line 1 counts as lost for an owner that attaches after 0.
    expect(buffer.missingAfter(0)).toEqual({ lost: 2, evicted: 1 });
    expect(buffer.missingAfter(1)).toEqual({ lost: 1, evicted: 1 });
    expect(buffer.missingAfter(5)).toEqual({ lost: 0, evicted: 0 });
  });

  it("a line buffer has the exit as its last item, and is done when the exit is acknowledged", () => {
    const buffer = new LineBuffer();
    buffer.push(whole("a"));
    buffer.end({ code: 0, signal: null });
    expect(buffer.next(1)).toEqual({ n: 2, exit: { code: 0, signal: null } });
    expect(buffer.missingAfter(0)).toEqual({ lost: 0, evicted: 0 });
    buffer.acknowledge(1);
    expect([buffer.next(0), buffer.isDone]).toEqual([{ n: 2, exit: { code: 0, signal: null } }, false]);
    buffer.acknowledge(2);
    expect([buffer.next(0), buffer.isDone, buffer.missingAfter(2)]).toEqual([undefined, true, { lost: 0, evicted: 0 }]);
  });

  it("a line buffer keeps a short line without its chunk once the partial text around it is evicted", () => {
    const buffer = new LineBuffer(700);
    const chunk = Buffer.concat([whole("a"), Buffer.alloc(65_536)]);
    buffer.push(chunk.subarray(0, whole("a").length));
    for (const line of [partial("b"), partial("c")]) buffer.push(line);
    const item = buffer.next(0);
    expect(numbers(buffer)).toEqual([1, 3]);
    expect(item && "line" in item && [item.line, item.line.buffer.byteLength]).toEqual([whole("a"), whole("a").length]);
  });
});

describe("control requests that pass a shim", () => {
  const request = (id: string) =>
    text(JSON.stringify({ type: "control_request", request_id: id, request: { subtype: "can_use_tool" } }));

  it("a control request of Claude Code is open until a response is written or the request is cancelled", () => {
    const control = new ControlRequests();
    for (const id of ["a", "b", "c"]) control.noteRead(request(id));
    control.noteRead(text('{"request_id":"d","type":"control_request","request":{}}'));
    control.noteWritten("r:a", text("{}"));
    control.noteRead(text('{"type":"control_cancel_request","request_id":"b"}'));
    control.noteRead(text('{"type":"assistant","text":"\\"control_request\\" \\"request_id\\":\\"e\\""}'));
    control.noteRead(text('{"type":"control_request"'));
    expect(control.open).toEqual(["c", "d"]);
  });

  it("the last 1,024 control requests are open, and only under ids that an owner can name", () => {
    const control = new ControlRequests();
    for (const id of ["a b", "x".repeat(129)]) control.noteRead(request(id));
    expect(control.open).toEqual([]);
    for (let at = 0; at < 1_026; at += 1) control.noteRead(request(`q${String(at)}`));
    expect([control.open.length, control.open[0], control.open.at(-1)]).toEqual([1_024, "q2", "q1025"]);
  });

  it("the first answer to `initialize` is kept, not a later one or one to another request", () => {
    const control = new ControlRequests();
    const answer = (id: string, more: string) =>
      text(
        `{"type":"control_response","response":{"subtype":"success","request_id":"${id}","response":{"more":"${more}"}}}`,
      );
    control.noteWritten("u1", text('{"type":"user","message":"say \\"initialize\\""}'));
    control.noteWritten("1:i", text('{"request_id":"i","type":"control_request","request":{"subtype":"initialize"}}'));
    control.noteRead(answer("x", "other"));
    expect(control.initializeAnswer).toBeUndefined();
    control.noteRead(answer("i", "first"));
    control.noteWritten("2:j", text('{"request_id":"j","type":"control_request","request":{"subtype":"initialize"}}'));
    control.noteRead(answer("j", "second"));
    control.noteRead(answer("i", "again"));
    expect(control.initializeAnswer?.toString()).toContain("first");
  });
});

describe("the exchange of a process with its owner", () => {
  it("an exchange writes each line once by its id, also for another owner", () => {
    const exchange = new Exchange("one", 1);
    expect([exchange.write("a", text("x")), exchange.write("a", text("x")), exchange.write("b", text("x"))]).toEqual([
      true,
      false,
      true,
    ]);
    exchange.attach("two", 2, 0);
    expect([exchange.write("b", text("y")), exchange.written]).toEqual([false, ["a", "b"]]);
  });

  it("an exchange remembers the last 4,096 ids", () => {
    const exchange = new Exchange("one", 1);
    for (let at = 0; at < 4_097; at += 1) exchange.write(`w${String(at)}`, text("x"));
    expect([exchange.written.length, exchange.written[0], exchange.write("w1", text("x"))]).toEqual([
      4_096,
      "w1",
      false,
    ]);
  });

  it("an exchange belongs to the highest epoch, and to the same epoch again when its connection has ended", () => {
    const exchange = new Exchange("one", 1);
    expect(() => exchange.attach("two", 1, 0)).toThrow(Refusal);
    expect(exchange.attach("two", 2, 0).former).toBe("one");
    expect(() => exchange.check("one", 1)).toThrow("epoch 1 is not the owner's, 2");
    expect(() => exchange.check("one", 2)).toThrow("another connection");
    expect(() => exchange.attach("one", 1, 0)).toThrow(Refusal);
    expect([exchange.release("one"), exchange.release("two"), exchange.owner]).toEqual([false, true, undefined]);
    expect(exchange.attach("three", 2, 0).former).toBeUndefined();
    expect(() => exchange.attach("four", 1, 0)).toThrow(Refusal);
    expect(() => exchange.check("three", 2)).not.toThrow();
  });

  it("an exchange gives an owner each line once, and again when the owner attaches", () => {
    const exchange = new Exchange("one", 1);
    for (const name of ["a", "b", "c"]) exchange.read(whole(name));
    expect([exchange.next()?.n, exchange.next()?.n]).toEqual([1, 2]);
    expect(() => exchange.acknowledge(3)).toThrow("not sent");
    exchange.acknowledge(1);
    expect(() => exchange.attach("one", 1, 4)).toThrow("written 3 lines");
    exchange.attach("one", 1, 1);
    expect([exchange.next()?.n, exchange.next()?.n, exchange.next()]).toEqual([2, 3, undefined]);
  });
});
