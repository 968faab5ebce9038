import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that take longest, mostly by waiting, in the order in which they start. One that started last would be waited for alone.
 * All others follow in vitest's order.
 */
const MAX_LENGTH = [
  "attacks/sandbox",
  "attacks/daemons",
  "attacks/command-rules",
  "faults/servers",
  "faults/daemon-idle",
  "load/daemon-churn",
  "matrices/http-random",
  "matrices/long-turn",
  "matrices/http-restart",
  "attacks/leftovers",
  "load/http-load",
];

function rankOf({ moduleId }: TestSpecification): number {
  const at = MAX_LENGTH.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  return at === -1 ? MAX_LENGTH.length : at;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- it is vitest's method, not an array's
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
