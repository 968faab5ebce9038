import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineGuard, type LongLine } from "../../src/mcp/lines/line-guard.ts";

interface Passed {
  lines: string[];
  long: LongLine[];
}

/** Passes `text` through a `LineGuard` in pieces of `sizes` bytes, repeated in turn. */
async function pass(text: string, most: number, sizes: readonly number[] = [65_536]): Promise<Passed> {
  const long: LongLine[] = [];
  const lines: string[] = [];
  const guard = new LineGuard({
    most,
    onLongLine: (line) => long.push(line),
    take: (line) => line,
    atEnd: () => Promise.resolve(),
  });
  guard.on("data", (line: Buffer) => lines.push(line.toString()));
  const bytes = Buffer.from(text);
  for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
    const size = Math.max(1, sizes[piece % sizes.length] ?? 1);
    guard.write(bytes.subarray(at, at + size));
    at += size;
  }
  guard.end();
  await new Promise((resolve) => guard.once("end", resolve));
  return { lines, long };
}

describe("the line guard", () => {
  it("the guard passes every line within the limit in one piece, and reports longer lines", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.string({ unit: "grapheme", maxLength: 60 }).map((line) => line.replaceAll("\n", " ")),
          { minLength: 1 },
        ),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
        async (lines, sizes) => {
          const { lines: passed, long } = await pass(lines.map((line) => `${line}\n`).join(""), 64, sizes);
          const size = (line: string) => Buffer.byteLength(line) + 1;
          expect(passed).toEqual(lines.filter((line) => size(line) <= 64).map((line) => `${line}\n`));
          expect(long.map(({ bytes }) => bytes)).toEqual(lines.map(size).filter((bytes) => bytes > 64));
        },
      ),
      { numRuns: 200 },
    );
  });

  const text = "x".repeat(100_000);
  it.each<[string, object | string, string | undefined]>([
    ["before the parameters", { jsonrpc: "2.0", id: 7, method: "tools/call", params: { text } }, "7"],
    ["after the method", { method: "tools/call", jsonrpc: "2.0", id: "a-7", params: { text } }, '"a-7"'],
    ["at the end", { method: "tools/call", params: { text, id: 1 }, jsonrpc: "2.0", id: 8 }, "8"],
    ["before the version at the end", { method: "tools/call", params: { text }, id: 9, jsonrpc: "2.0" }, "9"],
    ["nowhere: a notification", { jsonrpc: "2.0", method: "notifications/x", params: { id: 5, text } }, undefined],
    [
      "nowhere: an id inside the parameters at the end",
      { jsonrpc: "2.0", method: "notifications/x", params: { text, id: 5 } },
      undefined,
    ],
    ["in the middle", { params: { text }, id: 10, more: { id: 11, text } }, "10"],
    ["twice: the last one counts", `{"id":1,"x":"${text}","id":2}`, "2"],
    ["in invalid JSON, as a sum", `{"x":"${text}","id":1-2}`, "null"],
    ["in invalid JSON, as two strings", `{"x":"${text}","id":"a" "b"}`, "null"],
    ["in invalid JSON, with an invalid escape", `{"x":"${text}","id":"\\x"}`, "null"],
    ["as a number that would be rounded", `{"x":["${text}"],"id": 9007199254740993}`, "9007199254740993"],
    ["as an object, which is not an id", { id: { id: 5 }, text }, "null"],
    ["nowhere: a batch", [{ id: 5, text }], "null"],
    ["nowhere: plain text", text, undefined],
  ])("the guard finds the id of a long message %s", async (_, message, id) => {
    const line = typeof message === "string" ? message : JSON.stringify(message);
    const { lines, long } = await pass(`${line}\n{"after":1}\n`, 50_000);
    expect(long).toEqual([{ bytes: line.length + 1, id }]);
    expect(lines).toEqual(['{"after":1}\n']);
  });
});
