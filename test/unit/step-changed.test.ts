import { describe, expect, it } from "vitest";
import { parseRule } from "../../src/domain/approvals/rule.ts";
import type { Bound } from "../../src/domain/approvals/risk.ts";
import type { AnsweredBy, PermissionRequest } from "../../src/domain/permission.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Policy } from "../../src/engine/policy/policy.ts";
import type { Judgement } from "../../src/engine/ports.ts";
import { requestOf, commandInput, POLICY, Walk } from "../kit/step/walk.ts";

/** Every check of a request also applies to an answer with changed input, from every approver. */

interface Case {
  readonly request?: Partial<PermissionRequest>;
  readonly input: JsonObject;
  readonly judgement?: Judgement | undefined;
  readonly policy?: Partial<Policy>;
  readonly by?: AnsweredBy;
  readonly bound?: Bound;
  readonly asCaller?: true;
}

/** Returns the refusal, or `undefined` if Claude Code receives the answer. */
function findRefusal({
  asCaller,
  request,
  bound,
  by = "caller",
  input,
  judgement,
  policy = {},
}: Case): string | undefined {
  const walk = new Walk({ ...policy, approvalChain: ["user", "console", "webhook", "caller"] }).promptWith("p1", {});
  walk.hear({ type: "asked", request: requestOf("a1", request) });
  const whole = { requestId: "a1", whole: true, approver: "caller" } as const;
  walk.command("pass", { requestId: "a1", from: "user", why: "unreachable" });
  walk.command("pass", { requestId: "a1", from: "console", why: "unreachable" });
  walk.command("pass", { requestId: "a1", from: "webhook", why: "unreachable" });
  walk.command("delivered", { requests: [whole] });
  const decision = { behavior: "allow" as const, updatedInput: input };
  const data = {
    requestId: "a1",
    decision,
    by,
    forSession: false,
    ...(bound && { bound }),
    ...(asCaller && { asCaller }),
  };
  const { judgement: _, ...command } = commandInput(walk.at, "answer", data, "x");
  walk.take({ ...command, ...(judgement && { judgement }) });
  const isOpen = walk.state.requests.length > 0;
  const [reply] = walk.last.effects.flatMap((effect) => (effect.type === "reply" ? [effect.reply] : []));
  expect(reply?.ok).toBe(!isOpen);
  return reply?.ok === false ? reply.refusal.message : undefined;
}

const touch = { command: "touch sneaked" };
const NOTHING: Judgement = { denying: [] };
const deny = (...texts: string[]) => {
  const rules = texts.map((text) => {
    const parsed = parseRule(text, "deny");
    if (!parsed.ok) throw new Error(parsed.problem);
    return parsed.rule;
  });
  return { rules: { ...POLICY.rules, deny: rules } };
};

const ANSWERERS = ["caller", "user", "console", "webhook"] as const;

describe.each(ANSWERERS)("an answer with changed input, of the %s", (by) => {
  it("an answer with changed input is accepted if no check fails", () => {
    expect(findRefusal({ by, input: touch, judgement: NOTHING })).toBeUndefined();
  });

  it.each([
    ["cannot be judged", { judgement: undefined }, "cannot be determined"],
    ["names a path that no one may allow", { judgement: { ...NOTHING, refused: "No." } }, "No."],
    [
      "meets a rule of the operator",
      { judgement: NOTHING, policy: deny("Bash(touch:*)") },
      "rule of the operator denies it: Bash(touch:*)",
    ],
    [
      "meets a rule of the session",
      { judgement: { denying: ["Bash(touch *)"] } },
      "session or of its settings denies it",
    ],
    ["meets a rule that cannot be read", { judgement: { denying: ["bash(touch *)"] } }, "denies it: bash(touch *)"],
    [
      "mentions a file that a rule denies",
      { judgement: { denying: ["Read(secret/**)"], mentions: ["/project/secret/a"] } },
      "may touch what a rule denies: Read(secret/**)",
    ],
    [
      "mentions a denied file among words that cannot be read",
      { judgement: { denying: ["Read(secret/**)"], mentions: ["/project/secret/a"] } },
      "may touch what a rule denies: Read(secret/**)",
    ],
    ["is more than the approver may approve", { judgement: NOTHING, bound: "edits" as const }, "(edits)"],
  ])("an answer with changed input is refused, and the request stays open, if the input %s", (_, about, problem) => {
    expect(findRefusal({ by, input: touch, ...about })).toContain(problem);
  });

  it.each([
    ["Read(./secret/**)", "/project/secret/a", "/project/secret/a"],
    ["Read(./secret/**)", "/project/SECRET/A", "/project/SECRET/A"],
    ["Read(./secret/**)", "/project/x", "/project/secret/a"],
    ["Write(src/**)", "/project/other", "/project/other"],
  ])("an answer with changed input is refused if a path meets %s: %s, really %s", (rule, named, real) => {
    const paths = [named, real];
    const toolName = rule.startsWith("Read") ? "Read" : "Write";
    const judgement = { denying: [rule], paths, risk: { level: "reads" as const, why: [] } };
    expect(findRefusal({ by, request: { toolName }, input: { file_path: named }, judgement })).toContain(rule);
  });
});

/** Commands that cannot be read, each with the reason given in the refusal. */
const UNREAD: readonly (readonly [Pick<Case, "input" | "judgement" | "policy">, says: string])[] = [
  [
    { input: { command: "cd x && ls" }, judgement: { denying: ["Edit(secret/**)"], mentions: [] } },
    "against the rule Edit(secret/**): `cd` hides which files it means. Write it as one plain command",
  ],
  [
    { input: { command: "cat $x" }, judgement: { denying: [], mentions: [] }, policy: deny("Read(secret/**)") },
    "against the rule Read(secret/**): `$` hides which files it means",
  ],
  [
    { input: { command: "bash -c x" }, judgement: { denying: ["Bash(rm *)"], mentions: [] } },
    "against the rule Bash(rm *): bash can run another command",
  ],
  [
    { input: { command: "$x a" }, judgement: NOTHING, policy: deny("Bash(rm:*)") },
    "against the rule Bash(rm:*): the name of a program in it is not written out",
  ],
];

describe("a changed command that cannot be read", () => {
  it.each(UNREAD)(
    "%j is refused to a caller, and to a program that answers as a caller, with the reason: %s",
    (about, says) => {
      expect(findRefusal({ ...about, by: "caller" })).toContain(says);
      expect(findRefusal({ ...about, by: "webhook", asCaller: true })).toContain(says);
    },
  );

  it.each(UNREAD)("%j is accepted from a person", (about) => {
    for (const by of ["user", "console", "webhook"] as const) expect(findRefusal({ ...about, by })).toBeUndefined();
  });

  it("a changed command that cannot be read is accepted if no rule depends on its content", () => {
    const judgement = { denying: ["WebFetch", "Edit", "mcp__git"], mentions: [] };
    expect(findRefusal({ by: "caller", input: { command: "echo $x" }, judgement })).toBeUndefined();
  });
});

it("changed input is not refused for rules of another tool, another command or another file", () => {
  const judgement = {
    denying: ["Bash(rm *)", "WebFetch", "Read(secret/**)", "mcp__git"],
    mentions: ["/project/touch", "/project/sneaked"],
  };
  expect(findRefusal({ input: touch, judgement })).toBeUndefined();
});

it("changed input from a caller is also limited by the bound of the session's owner", () => {
  const judgement: Judgement = { denying: [], risk: { level: "all", why: [] } };
  const request = { toolName: "Write", risk: { level: "edits" as const, why: [] } };
  const about = { request, input: { file_path: "/etc/x" }, judgement, policy: { callerApproves: "edits" as const } };
  expect(findRefusal({ ...about, by: "caller", bound: "all" })).toContain(
    "more than a caller may approve here (edits)",
  );
  expect(findRefusal({ ...about, by: "user", bound: "all" })).toBeUndefined();
});
