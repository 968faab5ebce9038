import { appendFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { notOurs, REVISIONS, scenariosOf, type Revision, type Subject } from "./listed.ts";
import { runSuite, type Outcomes } from "./suite.ts";
import { failuresOf, faultsIn, isBad } from "./verdict.ts";

/**
 * One test for each scenario: it passes, or fails as not-ours.json says. A scenario that is listed and passes fails the
 * test, so that the list stays true.
 */

export interface Served {
  /** Of the endpoint. */
  readonly url: string;
  close(): Promise<void>;
}

/** `start` serves the subject until it is closed; the suite runs on it in both revisions at once. */
export function judge(on: Subject, start: () => Promise<Served>): void {
  let outcomes: ReadonlyMap<Revision, Outcomes> = new Map();
  beforeAll(async () => {
    const served = await start();
    try {
      outcomes = new Map(await Promise.all(REVISIONS.map(async (each) => runOn(served.url, each))));
    } finally {
      await served.close();
    }
  });
  describe.each(REVISIONS)("%s", (revision) => {
    const scenarios = scenariosOf(revision);
    test("runs all scenarios that the revision names", () => {
      expect([...(outcomes.get(revision) ?? [])].map(([name]) => name).toSorted()).toEqual(scenarios.toSorted());
    });
    test.each(scenarios)("%s", (scenario) => {
      const checks = outcomes.get(revision)?.get(scenario) ?? [];
      expect(faultsIn(checks, notOurs(on, revision, scenario))).toEqual([]);
    });
    afterAll(() => note(on, revision, outcomes.get(revision) ?? new Map()));
  });
}

async function runOn(url: string, revision: Revision): Promise<[Revision, Outcomes]> {
  return [revision, await runSuite(url, revision)];
}

/** For the table of scripts/test-conformance.mjs. */
function note(on: Subject, revision: Revision, outcomes: Outcomes): void {
  const file = process.env["CONFORMANCE_FILE"];
  if (file === undefined) return;
  const checks = [...outcomes.values()].flat();
  const notPassed = [...outcomes].filter(([, each]) => failuresOf(each).length > 0);
  const figures = {
    on,
    revision,
    scenarios: outcomes.size,
    passed: outcomes.size - notPassed.length,
    checks: checks.filter(({ status }) => status === "SUCCESS").length,
    checksFailed: checks.filter((check) => isBad(check)).length,
  };
  appendFileSync(file, `${JSON.stringify(figures)}\n`);
}
