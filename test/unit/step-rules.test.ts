import { describe, expect, it } from "vitest";
import { parseRule, type RuleBehavior } from "../../src/domain/approvals/rule.ts";
import { handedOver } from "../../src/claude/rules.ts";
import { askOf, POLICY, Walk } from "./step-walk.ts";

function rule(text: string, behavior: RuleBehavior) {
  const parsed = parseRule(text, behavior);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.rule;
}

describe("a request of which a rule says something", () => {
  const rules = {
    ...POLICY.rules,
    allow: [rule("Bash(make:*)", "allow")],
    ask: [rule("Bash(make deploy)", "ask")],
    deny: [rule("Bash(make clean:*)", "deny")],
  };
  function asked(command: string): Walk {
    const walk = new Walk({ rules });
    walk.prompt("p1");
    walk.hear({ type: "asked", ask: askOf("a1", { input: { command } }) });
    return walk;
  }
  const answers = (walk: Walk) => walk.last.effects.filter(({ type }) => type === "answer");

  it("is allowed at once, and told in the log with the rule", () => {
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
    expect(walk.state).toMatchObject({ asks: [], answered: [{ requestId: "a1", by: "rule", behavior: "allow" }] });
  });

  it("is denied at once, for a reason that Claude Code can act upon", () => {
    const walk = asked("true && make clean");
    const message = expect.stringContaining("denies it: Bash(make clean:*)");
    expect(answers(walk)).toEqual([{ type: "answer", requestId: "a1", decision: { behavior: "deny", message } }]);
    expect(walk.last.events[1]?.data).toMatchObject({ behavior: "deny", by: "rule", rule: "Bash(make clean:*)" });
  });

  it.each(["make deploy", "ls", "make all && ls"])("is put to somebody: %s", (command) => {
    const walk = asked(command);
    expect(answers(walk)).toEqual([]);
    expect(walk.state.asks).toMatchObject([{ requestId: "a1" }]);
  });
});

describe("the rules that Claude Code is given", () => {
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
  ])("%s, in whatever folder the process was started", (text, expected) => {
    expect(handedOver([rule(text, "deny")], "/home/ann/a[1]")).toEqual(expected);
  });
});
