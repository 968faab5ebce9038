import { describe, expect, test } from "vitest";
import { NOT_OURS, notOurs, REVISIONS, scenariosOf } from "../conformance/listed.ts";
import type { Check } from "../conformance/suite.ts";
import { faultsIn } from "../conformance/verdict.ts";

const good: Check = { id: "good", status: "SUCCESS" };
const bad: Check = { id: "bad", status: "FAILURE", errorMessage: "it is not there" };
const form: Check = { id: "wire-schema-valid", status: "SUCCESS" };

describe("the verdict on a scenario", () => {
  test.each<[string, Check[], { checks?: string[] } | undefined, string[]]>([
    ["passes", [good, form], undefined, []],
    ["fails", [good, bad], undefined, ["bad: it is not there"]],
    ["warns", [good, { ...bad, status: "WARNING" }], undefined, ["bad: it is not there"]],
    ["did not run", [], undefined, ["nothing-checked: failed"]],
    ["checked nothing but the form", [form, { ...good, status: "SKIPPED" }], undefined, ["nothing-checked: failed"]],
    ["fails as listed", [good, bad], {}, []],
    ["is listed and passes", [good], {}, ["the scenario passes: take it out of not-ours.json"]],
    ["fails in the listed check", [good, bad], { checks: ["bad"] }, []],
    ["fails in another check", [good, bad, { ...bad, id: "worse" }], { checks: ["bad"] }, ["worse: it is not there"]],
    ["passes the listed check", [good], { checks: ["bad"] }, ["bad passes: take it out of not-ours.json"]],
    ["is listed and malformed", [bad, { ...bad, id: "wire-schema-valid" }], {}, ["wire-schema-valid: it is not there"]],
  ])("a scenario that %s has the expected faults", (_, checks, listed, faults) =>
    expect(faultsIn(checks, listed)).toEqual(faults),
  );
});

describe("the list of expected failures", () => {
  test("each listed scenario exists and is listed once", () => {
    for (const { on, revision, scenarios } of NOT_OURS) {
      expect(scenariosOf(revision)).toEqual(expect.arrayContaining(scenarios));
      const entries = NOT_OURS.filter((each) => each.on === on && each.revision === revision);
      const named = entries.flatMap((each) => each.scenarios);
      expect(new Set(named).size).toBe(named.length);
    }
  });

  test("an expected failure is looked up by subject, revision and scenario", () => {
    const [entry] = NOT_OURS;
    expect(notOurs(entry!.on, entry!.revision, entry!.scenarios[0]!)).toBe(entry);
    expect(notOurs("fixtures", "2025-11-25", "ping")).toBeUndefined();
  });

  test("the fixtures run 33 scenarios of the first revision and 40 of the second", () => {
    const left = REVISIONS.map((revision) => {
      const entries = NOT_OURS.filter((each) => each.on === "fixtures" && each.revision === revision);
      return scenariosOf(revision).length - entries.flatMap(({ scenarios }) => scenarios).length;
    });
    expect(left).toEqual([33, 40]);
  });
});
