import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Order of projects: a worker keeps its modules for all files of a project. Short files come last and fill all workers. */
const PROJECTS = ["slow", "machines", "claude", "browser", "server", "unit"] as const;

/** Longest files: first in their projects. All others follow in the order of `BaseSequencer`. */
const LONGEST = [
  "load/daemon-churn",
  "load/http-load",
  "faults/handover",
  "faults/handover-start",
  "faults/thin",
  "faults/servers",
  "faults/kills",
  "faults/api",
  "faults/handover-random",
  "faults/shim-faults",
  "attacks/daemons",
  "attacks/sandbox",
  "attacks/command-rules",
  "page/people",
  "page/views",
  "machines/postgres-store",
  "machines/postgres-faults",
  "matrices/long-turn",
  "matrices/http-restart",
  "matrices/real-clients",
  "claude/options-agents",
  "server/spares",
  "server/daemon-automatic",
  "server/sessions",
];

function rankOf({ moduleId, project }: TestSpecification): number {
  const file = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  const place = PROJECTS.findIndex((name) => name === project.name);
  return place * (LONGEST.length + 1) + (file === -1 ? LONGEST.length : file);
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- it is vitest's method, not an array's
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}
