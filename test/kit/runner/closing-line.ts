import { writeSync } from "node:fs";

import type { Reporter, TestModule } from "vitest/node";

/** Ends a run with one plain line, "N passed, N failed, N skipped", for any CI to parse. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: errors.length, skipped: 0 };
    for (const module of modules) {
      const before = count.failed;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== "pending") count[state]++;
      }
      // A failed hook or import leaves its tests skipped: count a failure.
      if (module.state() === "failed" && count.failed === before) count.failed++;
    }
    const line = `\n${String(count.passed)} passed, ${String(count.failed)} failed, ${String(count.skipped)} skipped\n`;
    process.once("exit", () => writeSync(1, line));
  }
}
