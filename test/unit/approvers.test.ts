import { describe, expect, it } from "vitest";
import { APPROVERS } from "../../src/approvers/approvers.ts";
import { approverFields } from "../../src/config/approvals/approver-fields.ts";
import { CALLER, CONSOLE, isService, ApproverName, UNASKED, USER } from "../../src/domain/approvals/answer-source.ts";

const NAMES = APPROVERS.map(({ name }) => name);

/**
 * Names reserved in records of answers: denials without an approver (`UNASKED`), and `decide`, a holder of remembered answers.
 */
const TAKEN: readonly string[] = [...UNASKED, "decide"];

describe("the table of approvers", () => {
  it("names of approvers are unique, can be stored, and are not reserved words", () => {
    expect(NAMES.map((name) => ApproverName.safeParse(name).success)).toEqual(NAMES.map(() => true));
    expect(new Set(NAMES).size).toBe(NAMES.length);
    expect(NAMES.filter((name) => TAKEN.includes(name))).toEqual([]);
  });

  it("`user`, `console` and `caller` fetch requests themselves; every other approver has a `start`", () => {
    expect(NAMES).toEqual(expect.arrayContaining([USER, CONSOLE, CALLER]));
    const kinds = APPROVERS.map(({ name, start }) => [name, start !== undefined]);
    expect(kinds).toEqual(NAMES.map((name) => [name, isService(name)]));
  });

  it("no two approvers share a setting", () => {
    const keys = APPROVERS.flatMap(({ settings }) => Object.keys(settings ?? {}));
    expect(keys.toSorted()).toEqual(Object.keys(approverFields).toSorted());
  });
});
