import { describe, expect, it } from "vitest";

import { ConfigError } from "../../src/config/error.ts";
import { readDepth } from "../../src/config/load.ts";

describe("the nesting depth in `CLAUDE_CODE_MCP_DEPTH`", () => {
  it.each<[string | undefined, number]>([
    [undefined, 0],
    ["", 0],
    ["0", 0],
    ["3", 3],
  ])("the depth of %j is %j", (value, depth) => {
    expect(readDepth({ CLAUDE_CODE_MCP_DEPTH: value })).toBe(depth);
  });

  it.each(["-1", "one", "1.5", "1e3"])("a depth of %j is refused, because the true depth is unknown", (value) => {
    expect(() => readDepth({ CLAUDE_CODE_MCP_DEPTH: value })).toThrow(ConfigError);
  });
});
