import { describe, expect, it } from "vitest";

import type { JsonObject } from "../../src/domain/json.ts";
import type { PermissionRequest } from "../../src/domain/permission.ts";
import { readForm, buildForm } from "../../src/tools/elicitation/form.ts";

const session = { cwd: "/repo", title: undefined };
const request = (toolName: string, input: JsonObject): PermissionRequest => ({
  requestId: "r",
  toolUseId: "t",
  kind: toolName === "AskUserQuestion" ? "question" : "permission",
  toolName,
  input,
});

const BASH = request("Bash", { command: "ls" });
const PLAN = request("ExitPlanMode", { plan: "1. Read." });
const option = (label: string) => ({ label, description: "" });
const ONE = { question: "Which?", header: "H", multiSelect: false, options: [option("a"), option("b")] };
const SEVERAL = { question: "Which ones?", header: "", multiSelect: true, options: [option("x"), option("y")] };
const FREE = { question: "What name?" };
const ask = (...questions: JsonObject[]) => request("AskUserQuestion", { questions });

const OWN = "In my own words";
const DENIED = "The user does not allow this.";
const TELL_WHY = "Write a message to Claude Code, or close this form to send none.";
const PLANNING = "The user does not agree with the plan. Keep planning.";

interface Given {
  readonly filled?: JsonObject;
  readonly last?: boolean;
}

function verdict(asked: PermissionRequest, content: JsonObject, { filled, last = false }: Given = {}) {
  return readForm(asked, { action: "accept", content }, { filled, last });
}

describe("a form that is closed or declined", () => {
  it.each([BASH, PLAN, ask(ONE)])(
    "a form for $toolName decides nothing if cancelled, and denies if declined",
    (asked) => {
      const none = { filled: undefined, last: false };
      expect(readForm(asked, { action: "cancel" }, none)).toBe("dismissed");
      expect(readForm(asked, { action: "decline" }, none)).toMatchObject({ decision: "deny" });
    },
  );

  it("a second form that is cancelled leaves the decision of the first form", () => {
    const filled = { decision: "deny" };
    expect(readForm(BASH, { action: "cancel" }, { filled, last: true })).toEqual({
      decision: "deny",
      denyMessage: DENIED,
    });
    const words = { filled: { answer1: OWN }, last: true };
    expect(readForm(ask(ONE), { action: "cancel" }, words)).toBe("dismissed");
  });
});

describe("a permission", () => {
  it.each<[JsonObject, unknown]>([
    [{ decision: "allow" }, { decision: "allow" }],
    [{ decision: "allow_for_session" }, { decision: "allow_for_session" }],
    [{ decision: "deny" }, { first: { filled: { decision: "deny" }, denial: DENIED } }],
    [
      { decision: "deny", message: " no " },
      { decision: "deny", denyMessage: "no" },
    ],
    [{ decision: "maybe" }, "unclear"],
    [{}, "unclear"],
  ])("the form of a permission with %j gives its verdict", (content, expected) => {
    expect(verdict(BASH, content)).toEqual(expected);
  });

  it("a denial without a reason is final if no second form can be shown", () => {
    expect(verdict(BASH, { decision: "deny" }, { last: true })).toEqual({ decision: "deny", denyMessage: DENIED });
  });

  it("a denial without a reason opens a second form that asks for the reason", () => {
    const second = buildForm(BASH, session, { filled: { decision: "deny" } });
    expect(second.message).toBe(`Denied. Claude Code asked:\nRun: ls\nSession in /repo\n${TELL_WHY}`);
    expect(Object.keys(second.schema.properties)).toEqual(["message"]);
    expect(verdict(BASH, { message: "too broad" }, { filled: { decision: "deny" } })).toEqual({
      decision: "deny",
      denyMessage: "too broad",
    });
  });
});

describe("a plan", () => {
  it.each<[JsonObject, unknown]>([
    [{ decision: "approve" }, { decision: "allow" }],
    [{ decision: "keep_planning" }, { first: { filled: { decision: "keep_planning" }, denial: PLANNING } }],
    [
      { decision: "keep_planning", feedback: "shorter" },
      { decision: "deny", denyMessage: "shorter" },
    ],
    [{ decision: "later" }, "unclear"],
  ])("the form of a plan with %j gives its verdict", (content, expected) => {
    expect(verdict(PLAN, content)).toEqual(expected);
  });

  it("a refused plan opens a second form that asks what should be different", () => {
    const filled = { decision: "keep_planning" };
    expect(buildForm(PLAN, session, { filled }).message).toBe(
      `The plan is not carried out.\nSession in /repo\n${TELL_WHY}`,
    );
    expect(verdict(PLAN, { feedback: null }, { filled })).toEqual({ decision: "deny", denyMessage: PLANNING });
  });

  it.each([{}, { plan: "" }, { plan: 7 }])("a plan with the input %j is shown as not written", (input) => {
    expect(buildForm(request("ExitPlanMode", input), session).message).toContain("(no plan was written)");
  });

  it("a plan of several lines is shown whole below its beginning", () => {
    const plan = Array.from({ length: 30 }, (_, at) => `${String(at)}. Step`).join("\n");
    expect(buildForm(request("ExitPlanMode", { plan }), session).message).toContain("\n    29. Step\n");
  });
});

describe("questions", () => {
  it.each<[string, PermissionRequest, JsonObject, JsonObject]>([
    ["a choice", ask(ONE), { answer1: "a" }, { "Which?": "a" }],
    ["several choices", ask(SEVERAL), { answer1: ["x", "y"] }, { "Which ones?": ["x", "y"] }],
    ["choices and words", ask(SEVERAL), { answer1: ["x"], other1: "z" }, { "Which ones?": ["x", "z"] }],
    ["words before a choice", ask(ONE), { answer1: "a", other1: " c " }, { "Which?": "c" }],
    ["words for a question without choices", ask(FREE), { other1: "Ann" }, { "What name?": "Ann" }],
    [
      "an answer to each question",
      ask(ONE, FREE),
      { answer1: "b", other2: "Ann" },
      { "Which?": "b", "What name?": "Ann" },
    ],
  ])("a form with %s answers its questions", (_, asked, content, answers) => {
    expect(verdict(asked, content)).toMatchObject({ decision: "allow", updatedInput: { answers } });
  });

  it.each<[string, PermissionRequest, JsonObject]>([
    ["a choice that was not offered", ask(ONE), { answer1: "q" }],
    ["no choice", ask(ONE), {}],
    ["only one of two answers", ask(ONE, FREE), { answer1: "a" }],
    ["blank words", ask(FREE), { other1: " " }],
    ["more than 4,000 characters", ask(FREE), { other1: "a".repeat(4_001) }],
  ])("a form with %s is unclear", (_, asked, content) => {
    expect(verdict(asked, content)).toBe("unclear");
  });

  it("a question answered in the user's own words opens a second form, which keeps the other answers", () => {
    const asked = ask(ONE, SEVERAL);
    const filled = { answer1: OWN, answer2: ["x", OWN] };
    expect(verdict(asked, { ...filled, answer2: ["x", OWN, "of no option"] })).toEqual({ first: { filled } });
    const first = { filled: { answer1: OWN } };
    expect(verdict(asked, { answer1: OWN, answer2: ["of no option"] })).toEqual({ first });
    expect(verdict(asked, { answer1: OWN })).toEqual({ first });
    const second = buildForm(asked, session, { filled });
    expect(second.message).toBe(`${OWN}: Which?\n${OWN}: Which ones?\nSession in /repo`);
    expect(second.schema.required).toEqual(["other1", "other2"]);
    expect(verdict(asked, { other1: "c", other2: "z" }, { filled })).toMatchObject({
      updatedInput: { answers: { "Which?": "c", "Which ones?": ["x", "z"] } },
    });
  });

  it('a question with the option "In my own words" opens no second form', () => {
    expect(verdict(ask({ ...ONE, options: [option(OWN)] }), { answer1: OWN })).toMatchObject({
      updatedInput: { answers: { "Which?": OWN } },
    });
  });

  it("a form shows its questions as far as they can be read", () => {
    const form = buildForm(request("AskUserQuestion", { questions: "none" }), session);
    expect([form.message, form.schema.properties]).toEqual(["Session in /repo", {}]);
    const long = buildForm(ask({ question: "Why? ".repeat(60) }), session);
    expect(long.message).toContain(`    ${"Why? ".repeat(60)}`.trimEnd());
  });
});

it("a form that is shown again says that the answer was not complete", () => {
  expect(buildForm(BASH, session, { again: true }).message).toMatch(/^The answer was not complete\. /);
});

it("a form with more fields than it can show says how many are cut", () => {
  const input = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`field${String(at)}`, "x".repeat(200)]));
  expect(buildForm(request("mcp__a__b", input), session).message).toContain("[cut: 8 more fields are not shown]");
});
