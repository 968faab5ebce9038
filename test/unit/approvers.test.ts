import { describe, expect, it } from "vitest";
import { APPROVERS } from "../../src/approvers/approvers.ts";
import { approverFields } from "../../src/config/approvals/approvers.ts";
import { CALLER, CONSOLE, isService, ApproverName, UNASKED, USER } from "../../src/domain/approvals/approver-name.ts";

const NAMES = APPROVERS.map(({ name }) => name);

/** Taken: what ends a request that nobody answers, and who else holds a remembered answer. */
const TAKEN: readonly string[] = [...UNASKED, "decide"];

describe("the table of approvers", () => {
  it("has names that can be stored, each once, and none that means something else there", () => {
    expect(NAMES.map((name) => ApproverName.safeParse(name).success)).toEqual(NAMES.map(() => true));
    expect(new Set(NAMES).size).toBe(NAMES.length);
    expect(NAMES.filter((name) => TAKEN.includes(name))).toEqual([]);
  });

  it("has the three who come for requests by themselves, and nobody else without a way to take requests to them", () => {
    expect(NAMES).toEqual(expect.arrayContaining([USER, CONSOLE, CALLER]));
    const kinds = APPROVERS.map(({ name, start }) => [name, start !== undefined]);
    expect(kinds).toEqual(NAMES.map((name) => [name, isService(name)]));
  });

  it("has settings of which no two approvers have the same", () => {
    const keys = APPROVERS.flatMap(({ settings }) => Object.keys(settings ?? {}));
    expect(keys.toSorted()).toEqual(Object.keys(approverFields).toSorted());
  });
});
