import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { notOurs, REVISIONS, scenariosOf, type Revision, type Subject } from "./listed.ts";
import { runScenario, runSuite, type Outcomes } from "./suite.ts";
import { failuresOf, faultsIn, isBad } from "./verdict.ts";

/**
 * Defines a test for each scenario, which passes or fails as not-ours.json says. A listed scenario that passes fails the test,
 * so that the list stays true.
 */

/** Time limit of the suite in both revisions, ms. */
const SUITE_MS = 300_000;

export interface Served {
  /** URL of the endpoint. */
  readonly url: string;
  close(): Promise<void>;
}

interface Run {
  readonly outcomes: Outcomes;
  /** Scenarios that were run twice. */
  readonly again: readonly string[];
}

/** `start` starts the server under test. */
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
    test("the suite runs all scenarios of the revision", () => {
      expect([...(runs.get(revision)?.outcomes.keys() ?? [])].toSorted()).toEqual(scenarios.toSorted());
    });
    test.each(scenarios)("scenario %s passes, or fails as listed", (scenario) => {
      const checks = runs.get(revision)?.outcomes.get(scenario) ?? [];
      expect(faultsIn(checks, notOurs(on, revision, scenario))).toEqual([]);
    });
    afterAll(() => printFigures(on, revision, runs.get(revision)));
  });
}

/**
 * Runs the suite, and failed scenarios once more (`again`): the suite waits only half a second for some messages, too short on
 * a busy machine.
 */
async function run(on: Subject, revision: Revision, url: string): Promise<Run> {
  const outcomes = new Map(await runSuite(url, revision));
  const again = [...outcomes].filter(([name, checks]) => faultsIn(checks, notOurs(on, revision, name)).length > 0);
  for (const [scenario] of again) outcomes.set(scenario, await runScenario(url, revision, scenario));
  return { outcomes, again: again.map(([scenario]) => scenario) };
}

/** Prints the figures of docs/conformance.md as one line of the tests' output. */
function printFigures(on: Subject, revision: Revision, done: Run | undefined): void {
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
