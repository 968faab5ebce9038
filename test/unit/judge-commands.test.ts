import { expect, it } from "vitest";
import { CAN_RUN } from "../../src/domain/approvals/risk.ts";
import { parseRule, type RuleBehavior } from "../../src/domain/approvals/rule.ts";
import type { PermissionMode } from "../../src/domain/permission.ts";
import { judgeCommands } from "../../src/engine/policy/judge-commands.ts";
import type { JudgedCommand } from "../../src/engine/ports.ts";

/** Verdicts of rules and permission mode on the commands of a verification. */

interface Case {
  readonly commands?: readonly string[];
  /** Facts about every command. */
  readonly judged?: JudgedCommand;
  readonly operator?: Partial<Record<RuleBehavior, readonly string[]>>;
  readonly allowed?: string[];
  readonly disallowed?: string[];
  readonly mode?: PermissionMode;
  readonly remembered?: Parameters<typeof judgeCommands>[0]["remembered"];
}

const RISK = { level: "all" as const, why: ["command"] };

const rulesOf = (texts: readonly string[] = [], behavior: RuleBehavior) =>
  texts.map((text) => {
    const parsed = parseRule(text, behavior);
    if (!parsed.ok) throw new Error(parsed.problem);
    return parsed.rule;
  });

function verdictOn({
  allowed,
  commands = ["npm test"],
  disallowed,
  judged,
  operator,
  mode = "default",
  ...rest
}: Case) {
  return judgeCommands({
    commands: commands.map((command) => ({ command, judged: { risk: RISK, ...judged } })),
    rules: {
      allow: rulesOf(operator?.allow, "allow"),
      ask: rulesOf(operator?.ask, "ask"),
      deny: rulesOf(operator?.deny, "deny"),
      home: "/home/ann",
    },
    own: { ...(allowed && { allowedTools: allowed }), ...(disallowed && { disallowedTools: disallowed }) },
    mode,
    cwd: "/project",
    ...rest,
  });
}

const ALLOW = (rule?: string) => ({ behavior: "allow", ...(rule !== undefined && { rule }), risk: RISK });
const ASK = { behavior: "ask", risk: RISK };
const ASK_BY = (rule: string) => ({ ...ASK, rule });
const DENY = (message: string, rule?: string) => ({
  behavior: "deny",
  message: expect.stringContaining(message) as string,
  ...(rule !== undefined && { rule }),
  risk: RISK,
});
const ENV = { mentions: ["/project/.env"] };

it.each<[string, Case, object]>([
  ["no rule", {}, ASK],
  ["an allow rule of the operator", { operator: { allow: ["Bash(npm:*)"] } }, ALLOW("Bash(npm:*)")],
  ["an allow rule of the session", { allowed: ["Bash(npm test)"] }, ALLOW("Bash(npm test)")],
  ["an allow rule for every command", { allowed: ["Bash"], commands: ["a; b | c"] }, ALLOW("Bash")],
  ["an allow rule for a part of a command", { allowed: ["Bash(npm:*)"], commands: ["npm test; rm -rf x"] }, ASK],
  ["an allow rule for one of two commands", { allowed: ["Bash(npm:*)"], commands: ["npm test", "make"] }, ASK],
  ["an allow rule for another tool", { allowed: ["Edit", "PowerShell"] }, ASK],
  ["an unreadable allow rule", { allowed: ["Bash(npm:*", "bash"] }, ASK],
  ["a file that can run commands", { allowed: ["Bash"], judged: { risk: { level: "all", why: [CAN_RUN] } } }, ASK],
  [
    "an ask rule beside an allow rule",
    { operator: { ask: ["Bash(npm test)"] }, allowed: ["Bash"], commands: ["make", "npm test"] },
    ASK_BY("Bash(npm test)"),
  ],
  [
    "a deny rule of the operator beside an allow rule of the session",
    { operator: { deny: ["Bash(rm:*)"] }, allowed: ["Bash"], commands: ["npm test", "sh -c 'rm x'"] },
    DENY("A rule of this server's operator denies sh -c 'rm x'", "Bash(rm:*)"),
  ],
  [
    "a deny rule of the session beside an allow rule of the operator",
    { operator: { allow: ["Bash"] }, disallowed: ["Bash(npm:*)"], mode: "bypassPermissions" },
    DENY("A rule of the session (disallowedTools) denies npm test", "Bash(npm:*)"),
  ],
  ["an unreadable deny rule", { allowed: ["Bash"], disallowed: ["bash(npm"] }, DENY("disallowedTools", "bash(npm")],
  [
    "a deny rule for a file that the command names",
    { operator: { deny: ["Read(.env)"] }, allowed: ["Bash"], commands: ["cat .env"], judged: ENV },
    DENY("operator denies cat .env", "Read(.env)"),
  ],
  [
    "a deny rule for another file",
    { operator: { deny: ["Read(.key)"] }, allowed: ["Bash"], judged: ENV },
    ALLOW("Bash"),
  ],
  ...["cat .e?v", 'cat "$PWD/.env"', "cat $(ls -a | grep env)", "cd .. && cat x"].map(
    (command): [string, Case, object] => [
      `a deny rule for a file, and ${command}, which can hide that file`,
      { operator: { deny: ["Read(.env)"] }, allowed: ["Bash"], mode: "bypassPermissions", commands: [command] },
      { ...ASK_BY("Read(.env)"), unclear: expect.stringContaining("hides which files it means") as string },
    ],
  ),
  [
    "a deny rule for a file, and an allow rule for just the command that can hide that file",
    { operator: { deny: ["Read(.env)"] }, allowed: ['Bash(cat "$PWD/a")'], commands: ['cat "$PWD/a"'] },
    ALLOW('Bash(cat "$PWD/a")'),
  ],
  [
    "a deny rule for a file, and a command that can hide that file, in dontAsk",
    { operator: { deny: ["Read(.env)"] }, allowed: ["Bash"], mode: "dontAsk", commands: ["eslint *.ts"] },
    DENY("In permissionMode dontAsk"),
  ],
  [
    "a glob, without a rule for files",
    { allowed: ["Bash(eslint:*)"], commands: ["eslint *.ts"] },
    ALLOW("Bash(eslint:*)"),
  ],
  [
    "an ask rule for a file that the command names",
    { operator: { ask: ["Read(.env)"] }, allowed: ["Bash"], commands: ["cat .env"], judged: ENV },
    ASK_BY("Read(.env)"),
  ],
  [
    "a protected path",
    { allowed: ["Bash"], mode: "bypassPermissions", judged: { refused: "No session may reach it." } },
    DENY("No session may reach it."),
  ],
  [
    "a deny rule, and a command that hides its program",
    { operator: { deny: ["Bash(rm:*)"] }, allowed: ["Bash"], commands: ['sh -c "$X"'] },
    { ...ASK_BY("Bash(rm:*)"), unclear: expect.stringContaining("sh can run another command") as string },
  ],
  ["bypassPermissions", { mode: "bypassPermissions" }, ALLOW()],
  [
    "bypassPermissions and an ask rule",
    { mode: "bypassPermissions", operator: { ask: ["Bash(npm:*)"] } },
    ASK_BY("Bash(npm:*)"),
  ],
  ["acceptEdits", { mode: "acceptEdits", commands: ["touch x"] }, ASK],
  ["auto", { mode: "auto" }, ASK],
  ["plan", { mode: "plan" }, DENY("In permissionMode plan only a rule allows a command, and none allows npm test.")],
  ["dontAsk", { mode: "dontAsk" }, DENY("In permissionMode dontAsk")],
  ["dontAsk and an allow rule", { mode: "dontAsk", allowed: ["Bash(npm test)"] }, ALLOW("Bash(npm test)")],
  ["plan and an ask rule", { mode: "plan", operator: { ask: ["Bash(npm:*)"] } }, DENY("In permissionMode plan")],
  ["a remembered answer", { remembered: () => "Bash(npm test)" }, ALLOW("Bash(npm test)")],
  [
    "a remembered answer and an ask rule",
    { remembered: () => "Bash(npm test)", operator: { ask: ["Bash(npm:*)"] } },
    ASK_BY("Bash(npm:*)"),
  ],
  [
    "a remembered answer for just this command, which hides its program",
    {
      remembered: (_, exactly) => (exactly ? "exact" : "wide"),
      operator: { deny: ["Bash(rm:*)"] },
      commands: ['sh -c "$X"'],
    },
    ALLOW("exact"),
  ],
])("the verdict with %s", (_, given, verdict) => {
  expect(verdictOn(given)).toEqual({ ...verdict, risk: { ...RISK, why: given.judged?.risk?.why ?? RISK.why } });
});

it("the risk is the greatest of all commands, and the reasons are those of all", () => {
  const commands = [
    { command: "ls", judged: { risk: { level: "reads" as const, why: ["a"] } } },
    { command: "touch", judged: { risk: { level: "edits" as const, why: ["a", "b"] } } },
  ];
  const rules = { allow: [], ask: [], deny: [], home: "/" };
  const verdict = (each: typeof commands) =>
    judgeCommands({ commands: each, rules, own: {}, mode: "default", cwd: "/" });
  expect(verdict(commands).risk).toEqual({ level: "edits", why: ["a", "b"] });
  expect(verdict([...commands, { command: "x", judged: {} as never }]).risk.level).toBe("all");
});
