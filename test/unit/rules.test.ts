import { describe, expect, it } from "vitest";
import { CAN_RUN } from "../../src/domain/approvals/risk.ts";
import { parseRule, type Rule, type RuleBehavior } from "../../src/domain/approvals/rule.ts";
import type { PermissionRequest } from "../../src/domain/permission.ts";
import { judge, type Rules } from "../../src/engine/policy/rules.ts";

const CWD = "/home/ann/project";

function rule(text: string, behavior: RuleBehavior): Rule {
  const parsed = parseRule(text, behavior);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.rule;
}

function rules(texts: Partial<Record<RuleBehavior, string[]>>): Rules {
  const of = (behavior: RuleBehavior) => (texts[behavior] ?? []).map((text) => rule(text, behavior));
  return { allow: of("allow"), ask: of("ask"), deny: of("deny"), home: "/home/ann" };
}

function ask(toolName: string, about: Partial<PermissionRequest> = {}): PermissionRequest {
  return { requestId: "r", kind: "permission", toolName, toolUseId: "t", input: {}, ...about };
}

const bash = (command: string) => ask("Bash", { input: { command } });
const file = (toolName: string, ...paths: string[]) => ask(toolName, { paths });

function verdict(text: string, behavior: RuleBehavior, asked: PermissionRequest) {
  return judge(asked, rules({ [behavior]: [text] }), CWD)?.behavior;
}

/** Title, rule, request, and the match of the rule as an allow rule and as a deny rule. */
const CASES: readonly [string, string, PermissionRequest, { allow: boolean; deny: boolean }][] = [
  ["the tool", "Bash", bash("rm -rf / && x"), { allow: true, deny: true }],
  ["a star", "Bash(*)", bash("a; b"), { allow: true, deny: true }],
  ["another tool", "Bash", file("Read", "/x"), { allow: false, deny: false }],
  ["the command", "Bash(ls src)", bash("ls src"), { allow: true, deny: true }],
  ["the command and more", "Bash(ls src)", bash("ls src -x"), { allow: false, deny: false }],
  ["a prefix", "Bash(ls src:*)", bash("ls src -- a b"), { allow: true, deny: true }],
  ["blanks around it", "Bash(ls src)", bash("\n\tls src \n"), { allow: true, deny: true }],
  ...["\u00A0", "\uFEFF", "\u2003"].flatMap((space): (typeof CASES)[number][] => [
    [`${JSON.stringify(space)} before it`, "Bash(/bin/ls)", bash(`${space}/bin/ls`), { allow: false, deny: true }],
    ["such a space and a prefix", "Bash(/bin/ls:*)", bash(`${space}/bin/ls x`), { allow: false, deny: true }],
  ]),
  ["a prefix alone", "Bash(ls src:*)", bash("ls src"), { allow: true, deny: true }],
  ["a longer word", "Bash(ls src:*)", bash("ls srcs"), { allow: false, deny: false }],
  ["a glob", "Bash(git * main)", bash("git push origin main"), { allow: true, deny: true }],
  ["a glob without its end", "Bash(git * main)", bash("git push origin"), { allow: false, deny: false }],
  ["a last star", "Bash(ls *)", bash("ls"), { allow: true, deny: true }],
  ["a last star and a longer word", "Bash(ls *)", bash("lsof"), { allow: false, deny: false }],
  ["a star at once", "Bash(ls*)", bash("lsof"), { allow: true, deny: true }],
  ...[
    "&& rm x",
    "; rm x",
    "| rm x",
    "& rm x",
    "\nrm x",
    "$(rm x)",
    "`rm x`",
    "> <(rm x)",
    '"$(rm x)"',
    "# '\nrm x\n# '",
  ].map((more): (typeof CASES)[number] => [
    `the command with ${JSON.stringify(more)} behind it`,
    "Bash(ls src:*)",
    bash(`ls src ${more}`),
    { allow: false, deny: true },
  ]),
  ["a redirection", "Bash(echo:*)", bash("echo x > ~/.bashrc"), { allow: false, deny: true }],
  ["${ }", "Bash(echo:*)", bash("echo ${x@P}"), { allow: false, deny: true }],
  ["$' '", "Bash(echo:*)", bash("echo $'a\\'; rm x'"), { allow: false, deny: true }],
  ["an open quote", "Bash(echo:*)", bash("echo 'a"), { allow: false, deny: true }],
  ["a quoted operator", "Bash(git commit:*)", bash("git commit -m 'a; b' -m \"c & d\""), { allow: true, deny: true }],
  ["a variable", "Bash(echo:*)", bash('echo "$HOME" $x'), { allow: true, deny: true }],
  ["part of the command", "Bash(rm:*)", bash("cd x && rm -rf y"), { allow: false, deny: true }],
  ["a substitution", "Bash(rm:*)", bash("echo $(rm y)"), { allow: false, deny: true }],
  ["another spelling", "Bash(rm:*)", bash("r\\m y"), { allow: false, deny: true }],
  ["the path of the command", "Bash(rm:*)", bash("/bin/rm y"), { allow: false, deny: true }],
  ["a program before it", "Bash(rm:*)", bash("sudo -u bob rm y"), { allow: false, deny: true }],
  ["a shell before it", "Bash(rm:*)", bash('bash -c "true; rm y"'), { allow: false, deny: true }],
  ["an assignment before it", "Bash(rm:*)", bash("X=1 rm y"), { allow: false, deny: true }],
  ["a word of another command", "Bash(rm:*)", bash("git rm y"), { allow: false, deny: false }],
  [
    "PowerShell, quoted",
    "PowerShell(echo:*)",
    ask("PowerShell", { input: { command: "echo 'a; b'" } }),
    { allow: false, deny: true },
  ],
  ["a file below", "Edit(src/**)", file("Write", `${CWD}/src/a/b.ts`), { allow: true, deny: true }],
  ["a file beside", "Edit(src/**)", file("Write", `${CWD}/srcs/b.ts`), { allow: false, deny: false }],
  ["a folder", "Edit(src)", file("Edit", `${CWD}/src/a/b.ts`), { allow: true, deny: true }],
  ["a tool of another kind", "Read(src/**)", file("Edit", `${CWD}/src/b.ts`), { allow: false, deny: false }],
  ["all of a kind", "Edit", file("NotebookEdit", `${CWD}/a.ipynb`), { allow: true, deny: true }],
  ["a search", "Read(src/**)", file("Grep", `${CWD}/src/a`), { allow: true, deny: true }],
  ["a name at any depth", "Read(.env)", file("Read", `${CWD}/a/b/.env`), { allow: true, deny: true }],
  ["a name outside the folder", "Read(.env)", file("Read", `/srv/.env`), { allow: false, deny: false }],
  ["a file one folder deep", "Read(/a/*.ts)", file("Read", `${CWD}/a/x.ts`), { allow: true, deny: true }],
  ["a file two folders deep", "Read(/a/*.ts)", file("Read", `${CWD}/a/b/x.ts`), { allow: false, deny: false }],
  ["any folders between", "Read(a/**/x.ts)", file("Read", `${CWD}/a/x.ts`), { allow: true, deny: true }],
  ["folders between, twice", "Read(**/a/b/**/x.ts)", file("Read", `${CWD}/1/a/b/2/x.ts`), { allow: true, deny: true }],
  ["an absolute path", "Read(//etc/**)", file("Read", "/etc/passwd"), { allow: true, deny: true }],
  ["a path in the home folder", "Read(~/notes/*)", file("Read", "/home/ann/notes/x"), { allow: true, deny: true }],
  ["a name in the set", "Read(x[!0-9].ts)", file("Read", `${CWD}/xa.ts`), { allow: true, deny: true }],
  ["a name outside the set", "Read(x[!0-9].ts)", file("Read", `${CWD}/x1.ts`), { allow: false, deny: false }],
  ["a dot is a dot", "Read(a.ts)", file("Read", `${CWD}/abts`), { allow: false, deny: false }],
  ["another case", "Read(.ENV)", file("Read", `${CWD}/.env`), { allow: false, deny: true }],
  ["an invisible character", "Read(.env)", file("Read", `${CWD}/.e\u200Bnv`), { allow: false, deny: true }],
  ["another Unicode form", "Read(caf\u00E9)", file("Read", `${CWD}/cafe\u0301`), { allow: false, deny: true }],
  ["another space", "Read(a b)", file("Read", `${CWD}/a\u202Fb`), { allow: false, deny: true }],
  ["a dot at the end", "Read(.env)", file("Read", `${CWD}/.env.`), { allow: false, deny: true }],
  ["an NTFS stream", "Read(.env)", file("Read", `${CWD}/.env::$DATA`), { allow: false, deny: true }],
  ["the folder in another case", "Read(.env)", file("Read", `${CWD.toUpperCase()}/.env`), { allow: false, deny: true }],
  ["one of two paths", "Edit(src/**)", file("Edit", `${CWD}/src/link`, "/etc/x"), { allow: false, deny: true }],
  ["no path known", "Edit(src/**)", ask("Edit"), { allow: false, deny: true }],
  [
    "a file that can run commands",
    "Edit",
    ask("Write", { paths: [`${CWD}/.git/config`], risk: { level: "all", why: [CAN_RUN] } }),
    { allow: false, deny: true },
  ],
  [
    "the folder's other name",
    "Edit(src/**)",
    ask("Edit", { cwd: "/data/p", paths: ["/data/p/src/a", `${CWD}/src/a`] }),
    { allow: true, deny: true },
  ],
  [
    "a host",
    "WebFetch(domain:example.com)",
    ask("WebFetch", { input: { url: "https://EXAMPLE.com/x" } }),
    { allow: true, deny: true },
  ],
  [
    "a subdomain",
    "WebFetch(domain:example.com)",
    ask("WebFetch", { input: { url: "https://a.example.com" } }),
    { allow: false, deny: true },
  ],
  [
    "a host before @",
    "WebFetch(domain:example.com)",
    ask("WebFetch", { input: { url: "https://example.com@evil.org" } }),
    { allow: false, deny: false },
  ],
  [
    "a subdomain of a wildcard",
    "WebFetch(domain:*.example.com)",
    ask("WebFetch", { input: { url: "https://a.example.com" } }),
    { allow: true, deny: true },
  ],
  ["a server", "mcp__git", ask("mcp__git__push"), { allow: true, deny: true }],
  ["a longer server name", "mcp__git", ask("mcp__github__push"), { allow: false, deny: false }],
  ["a server's tools", "mcp__git__*", ask("mcp__git__push"), { allow: true, deny: true }],
  ["a tool outside the pattern", "mcp__git__get_*", ask("mcp__git__push"), { allow: false, deny: false }],
  ["a longer tool name", "mcp__git__push", ask("mcp__git__push_all"), { allow: false, deny: false }],
  ["an agent", "Agent(Explore)", ask("Agent", { input: { subagent_type: "Explore" } }), { allow: true, deny: true }],
  [
    "an agent by its old name",
    "Agent(Explore)",
    ask("Task", { input: { subagent_type: "Explore" } }),
    { allow: true, deny: true },
  ],
  [
    "another agent",
    "Agent(Explore)",
    ask("Agent", { input: { subagent_type: "Plan" } }),
    { allow: false, deny: false },
  ],
  ["an agent without a name", "Agent(Explore)", ask("Agent"), { allow: false, deny: false }],
  ["the home folder", "Read(~)", file("Read", "/home/ann/x/y"), { allow: true, deny: true }],
  ["the folder itself", "Read(./**)", file("Read", CWD), { allow: true, deny: true }],
  ["a drive", "Read(//c/work/**)", file("Read", "C:\\work\\x"), { allow: true, deny: true }],
  ["another drive", "Read(//c/work/**)", file("Read", "D:\\work\\x"), { allow: false, deny: false }],
  [
    "a URL that cannot be read",
    "WebFetch(domain:x.org)",
    ask("WebFetch", { input: { url: "x" } }),
    { allow: false, deny: true },
  ],
  [
    "another subdomain",
    "WebFetch(domain:x.org)",
    ask("WebFetch", { input: { url: "https://a.x.org/" } }),
    { allow: false, deny: true },
  ],
  ["a skill", "Skill(pdf:*)", ask("Skill", { input: { skill: "pdf:fill" } }), { allow: true, deny: true }],
  ["a question", "AskUserQuestion", ask("AskUserQuestion", { kind: "question" }), { allow: false, deny: true }],
];

describe("the match of a rule with a request", () => {
  it.each(CASES)("a rule is matched against %s: %s", (_, text, asked, expected) => {
    const allow = verdict(text, "allow", asked) === "allow";
    expect({ allow, deny: verdict(text, "deny", asked) === "deny" }).toEqual(expected);
    expect(verdict(text, "ask", asked)).toBe(expected.deny ? "ask" : undefined);
  });
});

describe("several rules", () => {
  const each = { allow: ["Bash"], ask: ["Bash(git:*)"], deny: ["Bash(git push:*)"] };
  it.each([
    ["git push x", { behavior: "deny", rule: "Bash(git push:*)" }],
    ["git status", { behavior: "ask", rule: "Bash(git:*)" }],
    ["ls", { behavior: "allow", rule: "Bash" }],
  ])("deny applies before ask, and ask before allow: %s", (command, expected) => {
    expect(judge(bash(command), rules(each), CWD)).toEqual(expected);
  });

  it("rules decide nothing about a request that none of them matches", () => {
    expect(judge(file("Read", "/x"), rules(each), CWD)).toBeUndefined();
  });
});

describe("an invalid rule", () => {
  it.each([
    ["", "deny", "Write Tool or Tool\\(content\\)"],
    ["Bash(x", "deny", "Write Tool or Tool\\(content\\)"],
    ["Read()", "deny", "nothing in its brackets"],
    ["Write(src/**)", "allow", "Write Edit\\(src/\\*\\*\\)"],
    ["Glob(src/**)", "deny", "Write Read\\(src/\\*\\*\\)"],
    ["mcp__git__push(x)", "deny", "Write mcp__git__push alone"],
    ["mcp__*", "allow", "Name the server"],
    ["B*", "deny", "only tools of MCP servers"],
    ["Bash(npm:* test)", "deny", "anywhere else write \\*"],
    ["Bash(a\nb)", "deny", "line break"],
    ["WebFetch(https://x.org)", "deny", "WebFetch\\(domain:example.com\\)"],
    ["Read(!x)", "deny", "a deny rule beats all others"],
    ["Read(../x)", "deny", "//absolute/path"],
    ["Read(a\\b)", "deny", "Write paths with /"],
    ["Read([z-a])", "deny", "\\[a-z\\]"],
    ["TodoWrite(x)", "deny", "Write TodoWrite alone"],
    ["webfetch", "deny", "the tool is called WebFetch. Use that name"],
    ["bash(rm:*)", "deny", "the tool is called Bash. Use that name"],
  ] as const)("an invalid rule is refused: %s", (text, behavior, problem) => {
    expect(parseRule(text, behavior)).toEqual({ ok: false, problem: expect.stringMatching(problem) });
  });

  it("a rule may deny the tools of all servers", () => {
    expect(verdict("mcp__*", "deny", ask("mcp__git__push"))).toBe("deny");
  });
});
