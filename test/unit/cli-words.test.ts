import { homedir } from "node:os";
import { expect, it } from "vitest";

import { count, duration, folder, oneLine, span, subject, usd } from "../../src/cli/sessions/words.ts";

it.each([
  [usd(1.234), "$1.23"],
  [usd(0.01234), "$0.0123"],
  [usd(0.00002), "<$0.0001"],
  [usd(0), "$0.0000"],
  [count(1, "child", "children"), "1 child"],
  [count(2, "child", "children"), "2 children"],
  [span(-5), "0s"],
  [span(90_000), "1m"],
  [span(49 * 3_600_000), "2d"],
  [duration(9_940), "9.9s"],
  [duration(61_000), "1m"],
  [oneLine(" a\n\tb \u0007", 9), "a b"],
  [oneLine("🙂🙂🙂", 2), "🙂…"],
  [folder(homedir(), 30), "~"],
  [folder(`${homedir()}/src`, 30), "~/src"],
  [folder(`${homedir()}2`, 60), `${homedir()}2`],
  [folder("/a/very/long/path", 8), "…ng/path"],
  [subject({ description: "d", command: "ls  -l" }), "ls -l"],
  [subject({}), ""],
  [subject({ x: 1 }), '{"x":1}'],
])("the text for people is %s", (written, expected) => {
  expect(written).toBe(expected);
});
