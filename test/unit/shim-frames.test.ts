import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  encodeFrame,
  type Frame,
  frameHead,
  FrameReader,
  MAX_BODY,
  MAX_HEADER,
  ProtocolError,
  writeFrame,
} from "../../src/shim/frame.ts";
import { isId } from "../../src/shim/fields.ts";
import { type FromShim, readFromShim, readToShim, type ToShim } from "../../src/shim/protocol.ts";
import { amount } from "../kit/runner/amount.ts";

const RUNS = { numRuns: amount(200, 20_000) };

/** Cuts `stream` into pieces at `cuts`. */
function pieces(stream: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (stream.length + 1)), stream.length].toSorted((one, other) => one - other);
  return at.slice(1).map((end, index) => stream.subarray(at[index], end));
}

function read(chunks: readonly Buffer[]): Frame[] {
  const reader = new FrameReader();
  return chunks.flatMap((chunk) => reader.push(chunk));
}

/** Returns the error thrown by `action`, `undefined` without one. */
function faultOf(action: () => unknown): unknown {
  try {
    action();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Returns a frame of any bytes, without the checks of `encodeFrame`. */
function raw(header: Buffer, body: Buffer = Buffer.alloc(0)): Buffer {
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(header.length, 0);
  lengths.writeUInt32BE(body.length, 4);
  return Buffer.concat([lengths, header, body]);
}

const anyHeader = fc
  .record({ t: fc.string(), fields: fc.dictionary(fc.string(), fc.jsonValue()) })
  // JSON changes -0 to 0.
  .map(({ fields, t }) => JSON.parse(JSON.stringify({ ...fields, t })) as Frame["header"]);
const anyBody = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));

describe("frames between a shim and its owner", () => {
  it("frames are decoded unchanged, however the stream is cut", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ header: anyHeader, body: anyBody })), fc.array(fc.nat()), (frames, cuts) => {
        const stream = Buffer.concat(frames.map((each) => encodeFrame(each.header, each.body)));
        expect(read(pieces(stream, cuts))).toEqual(frames);
      }),
      RUNS,
    );
  });

  it("decoding any bytes throws nothing but ProtocolError, and throws it again at every later chunk", () => {
    const bytes = fc.uint8Array({ maxLength: 200 }).map((each) => Buffer.from(each));
    const stream = fc.oneof(
      bytes,
      bytes.map((each) => raw(each)),
      fc.tuple(bytes, bytes).map(([a, b]) => raw(a, b)),
    );
    fc.assert(
      fc.property(fc.array(stream), (chunks) => {
        const reader = new FrameReader();
        const faults = chunks.map((chunk) => faultOf(() => reader.push(chunk).map(({ header: { t } }) => t.length)));
        const first = faults.findIndex((each) => each !== undefined);
        expect(faults.filter((each) => each !== undefined && !(each instanceof ProtocolError))).toEqual([]);
        expect(faults.slice(first).filter((each) => each !== faults[first])).toEqual([]);
      }),
      RUNS,
    );
  });

  it.for([
    ["a header that is not UTF-8", raw(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])), "not UTF-8"],
    ["a header that is not JSON", raw(Buffer.from("{t:1}")), "not JSON"],
    ["a header that is a list", raw(Buffer.from('["t"]')), "not a JSON object"],
    ["a header without a kind", raw(Buffer.from('{"id":"a"}')), "no `t`"],
    ["an empty header", raw(Buffer.alloc(0)), "not JSON"],
    ["the length of a header above the limit", lengthsOf(MAX_HEADER + 1, 0), "8388609 bytes"],
    ["the length of a body above the limit", lengthsOf(2, MAX_BODY + 1), "134217729 bytes"],
  ] as const)("%s is refused", ([, stream, message]) => {
    expect(() => new FrameReader().push(stream)).toThrow(message);
  });

  it("a frame above a limit writes nothing, so that later frames of the stream are whole", () => {
    const stream = new PassThrough();
    const body = Buffer.alloc(20_000);
    const long = { t: "x".repeat(MAX_HEADER) };
    expect(() => writeFrame(stream, long, body)).toThrow(ProtocolError);
    writeFrame(stream, { t: "list" });
    const next: unknown = stream.read();
    expect(next).toEqual(encodeFrame({ t: "list" }));
  });

  it("a frame carries a line of 100 MB, and is not made above the limits", () => {
    const large = Buffer.alloc(100_000_000, "x");
    const reader = new FrameReader();
    const stream = encodeFrame({ t: "line" }, large);
    const found: Frame[] = [];
    for (let at = 0; at < stream.length; at += 1_000_000)
      found.push(...reader.push(stream.subarray(at, at + 1_000_000)));
    expect(found.map((each) => each.body.equals(large))).toEqual([true]);
    expect(() => frameHead({ t: "line" }, MAX_BODY + 1)).toThrow(ProtocolError);
    const long = { t: "x".repeat(MAX_HEADER) };
    expect(() => frameHead(long, 0)).toThrow(ProtocolError);
  });
});

function lengthsOf(header: number, body: number): Buffer {
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(header, 0);
  lengths.writeUInt32BE(body, 4);
  return lengths;
}

const OF = { id: "p1", epoch: 3 };
const IDENTITY = { pid: 17, startedAt: "4711" };
const TO_SHIM: ToShim[] = [
  { t: "hello", protocol: 1, daemon: "d" },
  { t: "start", ...OF, command: "claude", args: ["-p"], cwd: "/", env: { A: "1" }, tag: "9 a/b" },
  { t: "start", ...OF, command: "claude", args: [], env: {}, tag: "" },
  { t: "attach", ...OF, after: 4 },
  { t: "write", ...OF, lineId: "r:1" },
  { t: "ack", ...OF, upTo: 5 },
  { t: "end-input", ...OF },
  { t: "signal", ...OF, signal: "SIGTERM" },
  { t: "kill", ...OF },
  { t: "bound", ...OF },
  { t: "list" },
  { t: "reaper", line: "-17" },
  { t: "end" },
];
const FROM_SHIM: FromShim[] = [
  { t: "hello", protocol: 1, ...IDENTITY },
  { t: "started", id: "p1", ...IDENTITY },
  { t: "failed", id: "p1", message: "no", code: "ENOENT" },
  { t: "failed", id: "p1", message: "no" },
  {
    t: "attached",
    id: "p1",
    ...IDENTITY,
    lost: 1,
    evicted: 2,
    record: 9,
    initialize: true,
    open: ["q"],
    written: ["w"],
  },
  { t: "written", id: "p1", lineId: "r:1", again: true },
  { t: "lines", id: "p1", n: 3 },
  { t: "exit", id: "p1", n: 4, code: null, signal: "SIGKILL" },
  { t: "exit", id: "p1", n: 4, code: 0, signal: null },
  { t: "stderr", id: "p1" },
  { t: "superseded", id: "p1" },
  { t: "refused", id: "p1", of: "write", lineId: "r:1", message: "no" },
  { t: "refused", of: "hello", message: "no" },
  {
    t: "processes",
    processes: [{ id: "p1", ...IDENTITY, epoch: 3, tag: "9 a", session: true, owned: true, exited: true }],
  },
  { t: "processes", processes: [{ id: "p2", ...IDENTITY, epoch: 0, tag: "" }] },
];
const wire = (message: object) => read([encodeFrame(message as Frame["header"])])[0]!.header;

describe("messages between a shim and its owner", () => {
  it.for([...TO_SHIM, ...FROM_SHIM])("a message is read on the other side as it was written: %j", (message) => {
    const isToShim = TO_SHIM.some((each) => each === message);
    expect(isToShim ? readToShim(wire(message)) : readFromShim(wire(message))).toEqual(message);
  });

  it("reading any fields throws nothing but ProtocolError", () => {
    const kinds = [...new Set([...TO_SHIM, ...FROM_SHIM].map(({ t }) => t))];
    const names = [...new Set([...TO_SHIM, ...FROM_SHIM].flatMap((each) => Object.keys(each)))].filter(
      (name) => name !== "t",
    );
    const fields = fc.dictionary(fc.constantFrom(...names), fc.oneof(fc.jsonValue(), fc.nat(), fc.string()));
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fields, (t, others) => {
        const faults = [readToShim, readFromShim].map((reading) => faultOf(() => reading({ ...others, t })));
        expect(faults.filter((each) => each !== undefined && !(each instanceof ProtocolError))).toEqual([]);
      }),
      RUNS,
    );
  });

  it.for([
    [{ t: "attach", id: "p1", epoch: 1.5, after: 0 }, "`epoch`"],
    [{ t: "attach", id: "p1", epoch: 1, after: -1 }, "`after`"],
    [{ t: "ack", id: "", epoch: 1, upTo: 0 }, "`id`"],
    [{ t: "write", id: "p1", epoch: 1, lineId: 'a"b' }, "`lineId`"],
    [{ t: "write", id: "p1", epoch: 1, lineId: "x".repeat(129) }, "`lineId`"],
    [{ t: "start", ...OF, command: "c", args: [1], env: {}, tag: "" }, "`args`"],
    [{ t: "start", ...OF, command: "c", args: [], env: null, tag: "" }, "`env`"],
    [{ t: "stop" }, "not a message to a shim"],
  ] as const)("a message to a shim is checked: %j", ([message, text]) => {
    expect(() => readToShim(wire(message))).toThrow(text);
  });

  it("an id is text of 1 to 128 characters that needs no escape in JSON", () => {
    for (const text of Array.from({ length: 0x180 }, (_, code) => String.fromCodePoint(code))) {
      expect(isId(text)).toBe(/^[\x21-\x7e]$/.test(text) && JSON.stringify(text) === `"${text}"`);
    }
    expect([isId(""), isId("x".repeat(128)), isId("x".repeat(129))]).toEqual([false, true, false]);
  });
});
