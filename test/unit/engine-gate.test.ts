import { describe, expect, it } from "vitest";
import type { Command } from "../../src/domain/command.ts";
import { withAnswers } from "../../src/domain/approvals/questions.ts";
import { parseRule, parseDenyRule, readRule } from "../../src/domain/approvals/rule.ts";
import type { Scope } from "../../src/domain/principal.ts";
import { checkAnswers, checkOptions, isNested } from "../../src/engine/policy/gate.ts";
import { objectionTo } from "../../src/engine/policy/operator.ts";
import { OPEN_GATE } from "../kit/sessions/open-gate.ts";
import { POLICY } from "../kit/step/walk.ts";

describe("an answer of a caller", () => {
  it.each<[Scope[], string]>([
    [[], "no scope"],
    [["read", "run"], "read, run"],
  ])("a caller with the scopes %j may deny a request, but not allow it", (scopes, had) => {
    const caller = { principal: "local", scopes };
    expect(() => checkAnswers(caller, { decision: "deny" })).not.toThrow();
    const message = `Allowing a request needs the scope approve; this caller has ${had}.`;
    for (const decision of ["allow", "allow_for_session"] as const) {
      expect(() => checkAnswers(caller, { decision })).toThrow(message);
    }
  });

  it.each<[Scope[]]>([[["approve"]], [["read", "approve"]]])(
    "a caller with the scopes %j may allow a request",
    (scopes) => {
      expect(() => checkAnswers({ principal: "local", scopes }, { decision: "allow" })).not.toThrow();
    },
  );
});

it.each([
  [0, "starts no sessions (--max-depth 0)"],
  [1, "runs inside a session of claude-agents-mcp already (depth 1)"],
])("a server at its maximum depth, %i, starts no session", (depth, why) => {
  expect(() => checkOptions({ ...OPEN_GATE, depth, maxDepth: depth }, { cwd: "/repo" })).toThrow(why);
});

it.each([
  [0, 0, false],
  [1, 1, true],
  [1, 2, false],
])("`isNested` at depth %i with `--max-depth` %i: %s", (depth, maxDepth, nested) => {
  expect(isNested({ depth, maxDepth })).toBe(nested);
});

it("a refusal of bypassPermissions suggests another mode, or a session without the agent that has the mode", () => {
  const scout = { description: "Looks.", prompt: "Look.", permissionMode: "bypassPermissions" } as const;
  const own = () => checkOptions(OPEN_GATE, { cwd: "/repo", permissionMode: "bypassPermissions" });
  expect(own).toThrow(
    /To continue a session in this mode, change its mode: claude_code_session, set_permission_mode\.$/,
  );
  const ofAgent = () => checkOptions(OPEN_GATE, { cwd: "/repo", agents: { scout } });
  expect(ofAgent).toThrow(/Start a session without it \(agents\.scout\.permissionMode\)\.$/);
});

describe("a command that another server has approved", () => {
  type Data = Extract<Command, { kind: "answer" }>["data"];
  const mode = (permissionMode: string) => ({ type: "setMode", mode: permissionMode, destination: "session" }) as const;
  const answering = (permissionMode: "acceptEdits" | "bypassPermissions", over: Partial<Data> = {}): Command => ({
    id: "c",
    principal: "local",
    kind: "answer",
    data: {
      requestId: "r",
      by: "caller",
      forSession: false,
      decision: { behavior: "allow", updatedPermissions: [mode(permissionMode) as never] },
      ...over,
    },
  });
  const configuring = (permissionMode: "acceptEdits" | "bypassPermissions", decides = false): Command => ({
    id: "c",
    principal: "local",
    kind: "control",
    data: { by: "ann", request: { do: "configure", permissionMode }, ...(decides && { decides: true }) },
  });
  const bounded = { ...POLICY, callerApproves: "reads", sessionApproves: "edits" } as const;
  const objection = (command: Command) => objectionTo(command, { gate: OPEN_GATE, policy: bounded });
  const denied = (message: string) => ({
    code: "PERMISSION_DENIED",
    message: expect.stringContaining(message) as string,
  });

  it.each<[string, Command, string]>([
    ["an answer with bypassPermissions", answering("bypassPermissions", { by: "user" }), "not allowed on this server"],
    ["a switch to bypassPermissions", configuring("bypassPermissions", true), "not allowed on this server"],
    ["a mode that its caller may not approve", configuring("acceptEdits"), "permissionMode acceptEdits"],
    ["an answer beyond the caller's bound", answering("acceptEdits"), "acceptEdits"],
    [
      "a program's answer in the name of the user",
      answering("acceptEdits", { by: "user", asCaller: true }),
      "acceptEdits",
    ],
  ])("the owner refuses %s", (_, command, message) => {
    expect(objection(command)).toMatchObject(denied(message));
  });

  it.each<[string, Command]>([
    ["a person's answer", answering("acceptEdits", { by: "user" })],
    ["an answer with the scope decide", answering("acceptEdits", { decides: true })],
    ["a mode with the scope decide", configuring("acceptEdits", true)],
    ["a prompt", { id: "c", principal: "local", kind: "prompt", data: { promptId: "p", text: "x" } }],
  ])("the owner accepts %s", (_, command) => {
    expect(objection(command)).toBeUndefined();
  });
});

describe("the text of a rule", () => {
  it.each([
    ["Bash(ls:*)", { toolName: "Bash", content: "ls:*" }],
    ["Bash(:*)", { toolName: "Bash", content: undefined }],
    ["Read(*)", { toolName: "Read", content: undefined }],
    ["WebFetch", { toolName: "WebFetch", content: undefined }],
    ["(ls)", undefined],
    ["", undefined],
    ["Bash(ls", undefined],
  ])("`readRule` reads the tool and the content of %j, and does not check the rule", (text, read) => {
    expect(readRule(text)).toEqual(read);
  });

  it("an unreadable rule is quoted up to 100 characters; a rule may have 2000", () => {
    const long = `Bash(${"x".repeat(1995)})`;
    expect(long).toHaveLength(2001);
    const shown = `the rule ${long.slice(0, 100)}... cannot be read.`;
    expect(parseRule(long, "deny")).toEqual({ ok: false, problem: expect.stringContaining(shown) as string });
    expect(parseRule(long.replace("x", ""), "deny")).toMatchObject({ ok: true });
  });

  it.each([
    ["Bash(rm:*)", "Bash", "rm:*"],
    ["Bash(rm", "Bash", undefined],
    ["bash(rm:*)", "Bash", undefined],
    ["Unheard(x)", "Unheard", undefined],
    ["(x)", "", undefined],
  ])("a deny rule that cannot be read covers the whole tool, any other its content: %s", (text, toolName, content) => {
    expect(parseDenyRule(text)).toEqual({ text, toolName, content });
  });
});

describe("answers to questions", () => {
  const question = "Which one?";
  it.each([
    [
      { questions: [{ question }] },
      undefined,
      `is required: {question text: answer}. The questions are: "Which one?".`,
    ],
    [{ questions: "none" }, { [question]: "a" }, `"Which one?" is not one of the questions. The questions are: .`],
    [{ questions: [{ question }] }, {}, `"Which one?" has no answer.`],
    [{ questions: [{ question }] }, { [question]: ["a", "b"] }, "takes one answer, not 2."],
    [{ questions: [{ question: "x".repeat(400) }] }, {}, `"${"x".repeat(299)}…" has no answer.`],
  ])("for the questions %j, the answers %j are refused", (input, answers, problem) => {
    expect(() => withAnswers(input, answers)).toThrow(problem);
  });

  it("answers are put into the input unchanged, several where a question allows several", () => {
    const input = { questions: [{ question, multiSelect: true }, { question: "And?" }] };
    const answers = { [question]: ["a", "b"], "And?": ["c"] };
    expect(withAnswers(input, answers)).toEqual({ ...input, answers });
  });
});
