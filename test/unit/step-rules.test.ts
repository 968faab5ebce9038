import { describe, expect, it } from "vitest";
import type { Remember } from "../../src/domain/approvals/remembered.ts";
import { parseRule, type RuleBehavior } from "../../src/domain/approvals/rule.ts";
import { toClaudeRules } from "../../src/claude/rules.ts";
import type { PermissionRequest } from "../../src/domain/permission.ts";
import type { Policy } from "../../src/engine/policy/policy.ts";
import { requestOf, POLICY, Walk } from "../kit/step/walk.ts";

function rule(text: string, behavior: RuleBehavior) {
  const parsed = parseRule(text, behavior);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.rule;
}

describe("a request that a rule matches", () => {
  const rules = {
    ...POLICY.rules,
    allow: [rule("Bash(make:*)", "allow")],
    ask: [rule("Bash(make deploy)", "ask")],
    deny: [rule("Bash(make clean:*)", "deny")],
  };
  function asked(command: string): Walk {
    const walk = new Walk({ rules });
    walk.prompt("p1");
    walk.hear({ type: "asked", request: requestOf("a1", { input: { command } }) });
    return walk;
  }
  const answers = (walk: Walk) => walk.last.effects.filter(({ type }) => type === "answer");

  it("a request that an allow rule matches is allowed at once, and logged with the rule", () => {
    const walk = asked("make all");
    expect(answers(walk)).toEqual([{ type: "answer", requestId: "a1", decision: { behavior: "allow" } }]);
    expect(walk.last.events.map(({ type }) => type)).toEqual(["permission.asked", "permission.answered"]);
    expect(walk.last.events[1]?.data).toEqual({
      requestId: "a1",
      toolName: "Bash",
      behavior: "allow",
      by: "rule",
      rule: "Bash(make:*)",
    });
    expect(walk.state).toMatchObject({ requests: [], answered: [{ requestId: "a1", by: "rule", behavior: "allow" }] });
  });

  it("a request that a deny rule matches is denied at once, with a reason that Claude Code can act upon", () => {
    const walk = asked("true && make clean");
    const message = expect.stringContaining("denies it: Bash(make clean:*)");
    expect(answers(walk)).toEqual([{ type: "answer", requestId: "a1", decision: { behavior: "deny", message } }]);
    expect(walk.last.events[1]?.data).toMatchObject({ behavior: "deny", by: "rule", rule: "Bash(make clean:*)" });
  });

  it("a request that no one may allow is denied at once, and no approver is asked", () => {
    const walk = new Walk({ rules }).prompt("p1");
    walk.hear({ type: "asked", request: requestOf("a1", { input: { command: "make all" }, refused: "No." }) });
    expect(answers(walk)).toEqual([
      { type: "answer", requestId: "a1", decision: { behavior: "deny", message: "No." } },
    ]);
    expect(walk.state.requests).toEqual([]);
  });

  it.each(["make deploy", "ls", "make all && ls"])(
    "a request with an ask rule, or without a rule for all its commands, goes to an approver: %s",
    (command) => {
      const walk = asked(command);
      expect(answers(walk)).toEqual([]);
      expect(walk.state.requests).toMatchObject([{ requestId: "a1" }]);
    },
  );
});

describe("a remembered answer", () => {
  const make = { rules: ["Bash(make:*)"], level: "all" as const, eventId: 3 };
  function answered(by: "caller" | "user", policy: Partial<Policy> = {}, remember: Remember = make): Walk {
    const walk = new Walk(policy).prompt("p1").hear({ type: "asked", request: requestOf("a1") });
    const decision = { behavior: "allow" as const };
    return walk.command("answer", { requestId: "a1", by, decision, forSession: true, remember });
  }
  function isAskedAgain(walk: Walk, over: Partial<PermissionRequest> = {}): boolean {
    walk.hear({ type: "asked", request: requestOf("a2", over) });
    return walk.state.requests.length > 0;
  }

  it("a remembered answer settles later requests of its rule, which is logged", () => {
    const walk = answered("user");
    expect(walk.last.events).toMatchObject([{ data: { forSession: true, remembered: ["Bash(make:*)"] } }]);
    expect(isAskedAgain(walk)).toBe(false);
    expect(walk.last.events[1]?.data).toMatchObject({ behavior: "allow", by: "rule", rule: "Bash(make:*)" });
  });

  it("a remembered answer does not apply outside its rule, nor to a greater risk than it was given for", () => {
    expect(isAskedAgain(answered("user"), { input: { command: "make && rm x" } })).toBe(true);
    const edits = { rules: ["Write"], level: "edits" as const, eventId: 3 };
    const write = (level: "edits" | "all") => ({ toolName: "Write", input: {}, risk: { level, why: [] } });
    expect(isAskedAgain(answered("user", {}, edits), write("edits"))).toBe(false);
    expect(isAskedAgain(answered("user", {}, edits), write("all"))).toBe(true);
  });

  it("a remembered answer yields to rules that deny or ask, and a caller's also to a bound that became stricter", () => {
    const deny = { ...POLICY.rules, deny: [rule("Bash(make:*)", "deny")] };
    const ask = { ...POLICY.rules, ask: [rule("Bash(make:*)", "ask")] };
    const denied = answered("user", { rules: deny });
    expect(isAskedAgain(denied)).toBe(false);
    expect(denied.last.events.at(-1)?.data).toMatchObject({ behavior: "deny", by: "rule" });
    expect(isAskedAgain(answered("user", { rules: ask }))).toBe(true);
    expect(isAskedAgain(answered("caller", { callerApproves: "edits", approvalChain: ["webhook", "caller"] }))).toBe(
      true,
    );
    expect(isAskedAgain(answered("user", { callerApproves: "edits" }))).toBe(false);
  });

  it("remembered answers are revoked by rule, or all together, from the next request on", () => {
    const walk = answered("user").command("revoke", { rule: "Bash(make:*)", by: "caller" });
    expect(walk.last.events).toMatchObject([{ type: "notice", data: { kind: "revoked" } }]);
    expect(walk.last.effects).toMatchObject([{ reply: { ok: true, data: { revoked: ["Bash(make:*)"] } } }]);
    expect(isAskedAgain(walk)).toBe(true);
    const unknown = answered("user").command("revoke", { rule: "Bash(ls)", by: "caller" });
    expect(unknown.last.effects).toMatchObject([{ reply: { ok: false, refusal: { code: "INVALID_ARGUMENT" } } }]);
    expect(isAskedAgain(answered("user").command("revoke", { by: "caller" }))).toBe(true);
  });

  it("at most the newest 50 remembered rules are stored, each once", () => {
    const walk = answered("user");
    for (let index = 0; index < 60; index += 1) {
      const id = `b${String(index)}`;
      walk.hear({ type: "asked", request: requestOf(id, { toolName: "WebFetch", input: {} }) });
      const rules = [`Bash(x${String(index)})`, "Bash(same)"];
      const decision = { behavior: "allow" as const };
      const remember = { ...make, rules };
      walk.command("answer", { requestId: id, by: "user", decision, forSession: true, remember });
    }
    const { remembered = [] } = walk.state;
    expect(remembered).toHaveLength(50);
    expect(remembered[0]).toMatchObject({ rule: "Bash(x59)", by: "user", level: "all" });
    expect(remembered.filter(({ rule: text }) => text === "Bash(same)")).toHaveLength(1);
  });
});

describe("the rules that Claude Code receives", () => {
  it.each([
    ["Bash(rm:*)", ["Bash(rm:*)"]],
    ["Edit", ["Edit", "Write", "MultiEdit", "NotebookEdit"]],
    ["Task", ["Agent", "Task"]],
    ["mcp__git", ["mcp__git"]],
    ["Read(.env)", ["Read(//home/ann/a\\[1\\]/**/.env)"]],
    ["Read(/src/**)", ["Read(//home/ann/a\\[1\\]/src/**)"]],
    ["Edit(./src/x)", ["Edit(//home/ann/a\\[1\\]/src/x)"]],
    ["Edit(src/x)", ["Edit(//home/ann/a\\[1\\]/src/x)"]],
    ["Read(//etc/**)", ["Read(//etc/**)"]],
    ["Read(~/.ssh)", ["Read(~/.ssh)"]],
  ])("the rule %s is passed so that it holds in whatever folder the process was started", (text, expected) => {
    expect(toClaudeRules([rule(text, "deny")], "/home/ann/a[1]")).toEqual(expected);
  });
});
