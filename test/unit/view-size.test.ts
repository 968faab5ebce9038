import { describe, expect, it } from "vitest";
import { beginningWithin, cutText, fit, fitList, jsonBytes, oneLine, waterLevel } from "../../src/view/size.ts";

describe("the beginning of a text", () => {
  it.each([
    ["abc", 2, "ab"],
    ["äöü", 4, "äö"],
    ["äöü", 3, "ä"],
    ["a\nb", 2, "a"],
    ["a\nb", 3, "a\n"],
    ["\u0001x", 5, ""],
    ["\u0001x", 6, "\u0001"],
    ['""', 3, '"'],
    ["€€", 5, "€"],
    ["😀😀", 7, "😀"],
    ["😀", 3, ""],
    ["\uD800x", 6, "\uD800"],
    ["\uD800x", 5, ""],
  ])("the beginning of %j within %i bytes of JSON is %j", (text, most, beginning) => {
    expect(beginningWithin(text, most)).toBe(beginning);
  });

  it.each(["x".repeat(500), "ü\n".repeat(200), '"😀\u0001'.repeat(60)])(
    "a cut text says how many bytes are cut: %#",
    (text) => {
      const cut = cutText(text, 100);
      const [, bytes] = /… \[cut, (\d+) bytes\]$/.exec(cut) ?? [];
      const shown = cut.slice(0, cut.indexOf("… [cut"));
      expect(text.startsWith(shown)).toBe(true);
      expect(Number(bytes)).toBe(Buffer.byteLength(text) - Buffer.byteLength(shown));
      expect(jsonBytes(cut)).toBeLessThanOrEqual(100);
    },
  );
});

describe("a list that is too long", () => {
  const entry = { id: 1, note: "long" };
  const bare = { id: 1 };
  it.each([
    ["that fits is kept", 3, jsonBytes([entry, entry, entry]), [entry, entry, entry]],
    [
      "that is too long loses the expendable field of all entries",
      3,
      jsonBytes([entry, entry, entry]) - 1,
      [bare, bare, bare],
    ],
    ["that is still too long loses its last entries", 4, 30, [bare, bare, bare]],
    ["is empty if nothing fits", 3, 5, []],
  ])("a list %s", (_, count, most, kept) => {
    const list = Array.from({ length: count }, () => entry);
    const fitted = fitList(list, most, "note");
    expect(fitted).toEqual(kept);
    expect(jsonBytes(fitted)).toBeLessThanOrEqual(most);
  });
});

it.each([
  [[], 10, Number.POSITIVE_INFINITY],
  [[], -1, -1],
  [[5, 5], 10, Number.POSITIVE_INFINITY],
  [[5, 20], 15, 10],
  [[10, 10, 10], 15, 5],
])("sizes %j in the room %i are lowered to %d", (sizes, room, level) => {
  expect(waterLevel(sizes, room)).toBe(level);
});

it.each([
  [{ text: "x".repeat(900) }, []],
  [{ text: "x".repeat(900), list: Array.from({ length: 100 }, (_, index) => index) }, ["list"]],
  [{ list: Array.from({ length: 400 }, (_, index) => index), id: "kept" }, []],
  [Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`key${String(index)}`, index])), []],
])("an object that is too large is cut to 400 bytes: %#", (value, expendable) => {
  const { cut, value: fitted } = fit(value, 400, expendable);
  expect(cut).toBe(true);
  expect(jsonBytes(fitted)).toBeLessThanOrEqual(400);
  expect(Object.keys(fitted).length).toBeGreaterThan(0);
  for (const name of expendable) expect(fitted).not.toHaveProperty(name);
});

it.each([
  [" a\n\tb ", 10, "a b"],
  ["abcdef", 4, "abc…"],
  ["😀😀😀", 2, "😀…"],
  ["a" + " ".repeat(100), 5, "a…"],
])("%j on one line of %i characters is %j", (text, most, line) => {
  expect(oneLine(text, most)).toBe(line);
});
