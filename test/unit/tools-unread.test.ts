import { expect, it } from "vitest";
import { isDeclinedByProgram } from "../../src/tools/elicitation/user.ts";

it.each([
  ["decline", 0, false, true],
  ["decline", 299, false, true],
  ["decline", 300, false, false],
  // The clock was set back while the form was open.
  ["decline", -1, false, false],
  // A client that has filled in the first form is attended.
  ["decline", 0, true, false],
  ["cancel", 0, false, false],
  ["accept", 0, false, false],
] as const)(
  "a form that comes back as %s after %d ms (second form: %j) was unread: %j",
  (action, tookMs, second, expected) => {
    expect(isDeclinedByProgram({ action, content: {} }, { second, tookMs })).toBe(expected);
  },
);
