import { expect, it } from "vitest";

import { endBeforeReady } from "../../src/claude/supervise/process-handle.ts";

it.each([
  [{ code: 1, signal: null }, "did not start: it exited with code 1"],
  [{ code: null, signal: "SIGKILL" as const }, "did not start: it was killed by SIGKILL"],
  [{ code: 0, signal: null }, "ended before it could answer"],
  [undefined, "ended before it could answer"],
])("a Claude Code with the exit %o %s", (exit, text) => {
  expect(endBeforeReady(exit)).toBe(text);
});
