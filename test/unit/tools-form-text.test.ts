import { expect, it } from "vitest";
import { indentedBlock } from "../../src/tools/elicitation/form-text.ts";

it.each([
  ["as many characters as fit", "12345678", { characters: 8, lines: 4 }],
  ["as many lines as fit", "a\nb\nc\nd", { characters: 80, lines: 4 }],
])("a block of %s is shown whole, and a longer block is cut", (_, text, room) => {
  expect(indentedBlock(text, room)).toBe(text.replaceAll(/^/gm, "    "));
  expect(indentedBlock(`${text}\nx`, room)).toContain("[cut: ");
});
