import { homedir } from "node:os";
import { expect, it } from "vitest";

import {
  count,
  duration,
  shortPath,
  oneLine,
  roughDuration,
  callSubject,
  usd,
} from "../../src/cli/sessions/text-format.ts";

it.each([
  [usd(1.234), "$1.23"],
  [usd(0.01234), "$0.0123"],
  [usd(0.00002), "<$0.0001"],
  [usd(0), "$0.0000"],
  [count(1, "child", "children"), "1 child"],
  [count(2, "child", "children"), "2 children"],
  [roughDuration(-5), "0s"],
  [roughDuration(90_000), "1m"],
  [roughDuration(49 * 3_600_000), "2d"],
  [duration(9_940), "9.9s"],
  [duration(61_000), "1m"],
  [oneLine(" a\n\tb \u0007", 9), "a b"],
  [oneLine("🙂🙂🙂", 2), "🙂…"],
  [shortPath(homedir(), 30), "~"],
  [shortPath(`${homedir()}/src`, 30), "~/src"],
  [shortPath(`${homedir()}2`, 60), `${homedir()}2`],
  [shortPath("/a/very/long/path", 8), "…ng/path"],
  [callSubject({ description: "d", command: "ls  -l" }), "ls -l"],
  [callSubject({}), ""],
  [callSubject({ x: 1 }), '{"x":1}'],
])("a value is formatted for people as %s", (written, expected) => {
  expect(written).toBe(expected);
});
