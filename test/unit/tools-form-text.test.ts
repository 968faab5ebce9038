import { expect, it } from "vitest";
import { block } from "../../src/tools/elicitation/words.ts";

it.each([
  ["as many characters as fit", "12345678", { characters: 8, lines: 4 }],
  ["as many lines as fit", "a\nb\nc\nd", { characters: 80, lines: 4 }],
])("a block of %s is shown whole, and a longer block is cut", (_, text, room) => {
  expect(block(text, room)).toBe(text.replaceAll(/^/gm, "    "));
  expect(block(`${text}\nx`, room)).toContain("[cut: ");
});
