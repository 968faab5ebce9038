import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { notOurs, REVISIONS, scenariosOf, type Revision, type Subject } from "./listed.ts";
import { runScenario, runSuite, type Outcomes } from "./suite.ts";
import { failuresOf, faultsIn, isBad } from "./verdict.ts";

/**
 * One test for each scenario: it passes, or fails as not-ours.json says. A scenario that is listed and passes fails the
 * test, so that the list stays true.
 */

/** Time limit of the suite in both revisions, ms. */
const SUITE_MS = 300_000;

export interface Served {
  /** Of the endpoint. */
  readonly url: string;
  close(): Promise<void>;
}

interface Run {
  readonly outcomes: Outcomes;
  /** The scenarios that were run twice. */
  readonly again: readonly string[];
}

/** `start` serves the subject until it is closed. */
export function judge(on: Subject, start: () => Promise<Served>): void {
  const runs = new Map<Revision, Run>();
  beforeAll(async () => {
    const served = await start();
    try {
      for (const revision of REVISIONS) runs.set(revision, await run(on, revision, served.url));
    } finally {
      await served.close();
    }
  }, SUITE_MS);
  describe.each(REVISIONS)("%s", (revision) => {
    const scenarios = scenariosOf(revision);
    test("runs all scenarios that the revision names", () => {
      expect([...(runs.get(revision)?.outcomes.keys() ?? [])].toSorted()).toEqual(scenarios.toSorted());
    });
    test.each(scenarios)("%s", (scenario) => {
      const checks = runs.get(revision)?.outcomes.get(scenario) ?? [];
      expect(faultsIn(checks, notOurs(on, revision, scenario))).toEqual([]);
    });
    afterAll(() => note(on, revision, runs.get(revision)));
  });
}

/** The suite waits for some messages for half a second only: what a busy machine was late with is run once more. */
async function run(on: Subject, revision: Revision, url: string): Promise<Run> {
  const outcomes = new Map(await runSuite(url, revision));
  const again = [...outcomes].filter(([name, checks]) => faultsIn(checks, notOurs(on, revision, name)).length > 0);
  for (const [scenario] of again) outcomes.set(scenario, await runScenario(url, revision, scenario));
  return { outcomes, again: again.map(([scenario]) => scenario) };
}

/** Prints the figures of docs/conformance.md as one line of the output of the tests. */
function note(on: Subject, revision: Revision, done: Run | undefined): void {
  if (!done) return;
  const { again, outcomes } = done;
  const checks = [...outcomes.values()].flat();
  const notPassed = [...outcomes].filter(([, each]) => failuresOf(each).length > 0);
  const figures = {
    on,
    revision,
    scenarios: outcomes.size,
    again,
    passed: outcomes.size - notPassed.length,
    checks: checks.filter(({ status }) => status === "SUCCESS").length,
    checksFailed: checks.filter((check) => isBad(check)).length,
  };
  process.stdout.write(`CONFORMANCE ${JSON.stringify(figures)}\n`);
}
