import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineLimit } from "../../src/claude/supervise/output.ts";
import { exceededBy, JsonSize } from "../../src/security/json-size.ts";
import { amount } from "../kit/runner/amount.ts";

/** Counts like `JsonSize`, but from the parsed value. */
function countsOf(value: unknown): { members: number; depth: number } {
  if (typeof value !== "object" || value === null) return { members: 0, depth: 0 };
  const below = Object.values(value).map(countsOf);
  const members = below.reduce((sum, each) => sum + each.members, Math.max(1, below.length));
  return { members, depth: 1 + Math.max(0, ...below.map(({ depth }) => depth)) };
}

describe("the size of a JSON text", () => {
  it("the size of a JSON text is the size of its value, in any notation and in chunks of any length", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 1, max: 9 }), fc.boolean(), (value, piece, wide) => {
        const text = Buffer.from(JSON.stringify(value, undefined, wide ? 2 : 0));
        const size = new JsonSize();
        for (let at = 0; at < text.length; at += piece) size.take(text.subarray(at, at + piece));
        const { depth, members } = countsOf(JSON.parse(text.toString()));
        expect(size.exceeded({ members, depth })).toBeUndefined();
        expect(size.exceeded({ members: members - 1, depth })).toBe("members");
        expect(size.exceeded({ members, depth: depth - 1 })).toBe("depth");
      }),
      { numRuns: amount(200, 5_000) },
    );
  });

  it.each([
    ["marks in strings do not count", String.raw`["a,b,[{\"c,", "\\", ","]`, undefined],
    ["a string without an end", '["a,b,c,d,e', undefined],
    ["text that is not JSON", ",,,,,,", "members"],
    ["brackets that close nothing", "]]]][][][][]", "members"],
    ["nested brackets", "[[[[]]]]", "depth"],
  ] as const)("the size of a text is bounded by members and depth: %s", (_, text, bound) => {
    expect(exceededBy(Buffer.from(text), { members: bound === "depth" ? 9 : 3, depth: 3 })).toBe(bound);
  });
});

describe("the limit of a line", () => {
  /** Passes `chunks` through a `LineLimit`. Returns the bytes of the output, and the reason of an early end. */
  async function pass(chunks: Iterable<string>): Promise<{ bytes: number; why: string | undefined }> {
    let why: string | undefined;
    let bytes = 0;
    const limit = new LineLimit((reason) => (why ??= reason));
    limit.on("data", (chunk: Buffer) => (bytes += chunk.length));
    const ended = new Promise((resolve) => limit.once("end", resolve));
    for (const chunk of chunks) limit.write(chunk);
    limit.end();
    await ended;
    return { bytes, why };
  }

  const many = (text: string, times: number): string[] => Array.from({ length: times }, () => text);
  const megabyte = "x".repeat(1_048_576);

  it("lines below the limit pass in any number, with the rest after the last line break", async () => {
    const lines = [...many(megabyte, 40), "\n", ...many(megabyte, 40), "\r\n", "[1,2]".repeat(10), "\n", "rest"];
    expect(await pass(lines)).toEqual({ bytes: lines.join("").length, why: undefined });
  });

  it("members are counted anew in each line", async () => {
    expect((await pass(many(`[${"0,".repeat(100_000)}0]\n`, 10))).why).toBeUndefined();
  });

  it.each([
    ["bytes without a line break", many(megabyte, 70), "more than 67108864 bytes"],
    ["values in one line", many("0,".repeat(100_000), 6), "more than 500000 values"],
    ["depth in one line", many("[".repeat(100), 20), "more than 1000 deep"],
  ])("output ends at excessive %s, with one message", async (_, chunks, why) => {
    const passed = await pass([...chunks, "\n", "more\n"]);
    expect(passed.why).toContain(why);
    expect(passed.bytes).toBeLessThan(chunks.join("").length);
  });
});
