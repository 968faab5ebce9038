import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rulesToRemember } from "../../src/domain/approvals/remembered.ts";
import { parseRule, type RuleBehavior } from "../../src/domain/approvals/rule.ts";
import type { PermissionRequest } from "../../src/domain/permission.ts";
import { judge } from "../../src/engine/policy/rules.ts";
import { judgeCommand } from "../../src/security/shell/rules.ts";
import { amount } from "../kit/runner/amount.ts";
import { SPELLINGS } from "../kit/attacks/bash-spellings.ts";

/** Everyday commands of a model, unaffected by a rule for `touch`. */
const EVERYDAY: readonly string[] = [
  "ls -la",
  "cat package.json | head -20",
  "cd src && ls",
  "npm test",
  "npm run build -- --watch",
  "npm test -- --grep 'a b' $X",
  "git status --short",
  "git diff HEAD~1 -- src",
  "git log --oneline -5",
  'git add -A && git commit -m "$(cat <<\'EOF\'\nMend it\n\nIt\'s "touched".\nEOF\n)"',
  "git -C sub status",
  "grep -rn 'foo(bar)' src | sort | uniq -c",
  'rg -n "foo|bar" src',
  "find . -name '*.ts' -not -path './node_modules/*'",
  "find . -name '*.ts' -exec grep -l foo {} +",
  "find . -name a | xargs grep foo",
  "sed -n '1,20p' a.ts",
  "sed -i 's/foo/bar/g' a.ts",
  "awk '{print $1}' a",
  "python3 -m pytest -q",
  "python3 scripts/x.py --all",
  "node scripts/x.mjs a",
  "cargo test --release",
  "go test ./...",
  "make -j4 test",
  "timeout 60 npm test",
  "NODE_ENV=test npm test 2>&1 | tail -5",
  'for f in *.ts; do wc -l "$f"; done',
  "if [ -f a ]; then echo yes; else echo no; fi",
  "mkdir -p a/b && cp x a/b/",
  'echo "$HOME" > out.txt',
  "curl -s http://localhost:3000/health",
  "tar xzf a.tgz",
  "docker ps",
  "cat > a.txt <<'EOF'\n$(x) `y`\nEOF",
  "n=$(git rev-parse HEAD); echo $n",
  "tsc --noEmit",
  "command -v node",
  "install -m 644 -D x y/x",
  "g++ -O2 -o a a.cc",
  "gcc-12 -c a.c",
  "ssh-keygen -l -f key.pub",
];

const SIGNS = "$(){}[]`'\"\\<>|&;! \n#*?~=:@,-+";
const DENIED = { ask: [], deny: ["touch *"] };

function verdictOn(content: string, command: string, isBash = true) {
  return judgeCommand({ ask: [], deny: [content] }, command, isBash)?.behavior;
}

describe("a command with a deny rule for `touch`", () => {
  it("the list of spellings has at least 145 entries", () => {
    expect(SPELLINGS.length).toBeGreaterThanOrEqual(145);
  });

  it.each(SPELLINGS.map(({ command, means }) => [means, command.slice(0, 80), command] as const))(
    "a spelling of `touch` is recognised or unreadable: %s: %j",
    (_, __, command) => {
      expect(["deny", "unreadable"]).toContain(judgeCommand(DENIED, command, true)?.behavior);
    },
  );

  it.each(EVERYDAY)("a rule for `touch` does not affect %j", (command) => {
    expect(judgeCommand(DENIED, command, true)).toBeUndefined();
  });

  it("no text makes the parser throw", () => {
    const piece = fc.constantFrom(...SIGNS.split(""), "touch", "M", "<<E\n", "if ", "do ", "$((");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        judgeCommand(DENIED, pieces.join(""), true);
      }),
      { numRuns: amount(1_000, 30_000) },
    );
  });
});

describe("words that a rule depends on", () => {
  it.each([
    ["git push *", "git push origin", "deny"],
    ["git push *", "git -C sub push origin", "deny"],
    ["git push *", "git 'push' origin", "deny"],
    ["git push *", 'git "$x" origin', "unreadable"],
    ["git push *", "git -c a.b=c push", "unreadable"],
    ["git push *", "git p origin", "unreadable"],
    ["git push *", "git pull origin", undefined],
    ["curl *evil.org*", 'curl "$url"', "unreadable"],
    ["curl *evil.org*", 'echo "$url"', undefined],
    ["rm *", 'rm "$x"', "deny"],
    ["rm *", "RM x", "deny"],
    ["* --force", 'anything "$x"', "unreadable"],
    ["* --force", "anything -f", undefined],
  ] as const)("the rule %s and the command %j give the verdict %s", (content, command, behavior) => {
    expect(verdictOn(content, command)).toBe(behavior);
  });
});

describe("a command for PowerShell", () => {
  it.each([
    ["touch M", "deny"],
    ["TOUCH.EXE M", "deny"],
    ["Get-ChildItem -Recurse src", undefined],
    ["Get-Content 'a b.txt'", undefined],
    ["& 'touch' M", "deny"],
    ["'touch' M", "deny"],
    ["& ('to'+'uch') M", "unreadable"],
    ["to`uch M", "unreadable"],
    ["$x = 'touch'; & $x M", "unreadable"],
    ["iex 'tou' + 'ch M'", "unreadable"],
    ["Invoke-Expression $x", "unreadable"],
    ["Start-Process t M", "unreadable"],
    ["cmd /c t", "unreadable"],
    ["sal t x", "unreadable"],
    ["% { t }", "unreadable"],
    ["Get-Item \u2018x\u2019", "unreadable"],
  ] as const)("the PowerShell command %j gets the verdict %s", (command, behavior) => {
    expect(verdictOn("touch *", command, false)).toBe(behavior);
  });
});

it.each(["Remove-Item a", "remove-item a", "del a", "rm -Recurse a", "ri a"])(
  "PowerShell(Remove-Item *) matches %s",
  (command) => {
    expect(verdictOn("Remove-Item *", command, false)).toBe("deny");
  },
);

describe("approval of unreadable commands", () => {
  function verdict(texts: Partial<Record<RuleBehavior, string[]>>, command: string, toolName = "Bash") {
    const of = (behavior: RuleBehavior) =>
      (texts[behavior] ?? []).map((text) => {
        const parsed = parseRule(text, behavior);
        if (!parsed.ok) throw new Error(parsed.problem);
        return parsed.rule;
      });
    const rules = { allow: of("allow"), ask: of("ask"), deny: of("deny"), home: "/home/ann" };
    const ask: PermissionRequest = { requestId: "r", kind: "permission", toolName, toolUseId: "t", input: { command } };
    return judge(ask, rules, "/home/ann/p")?.behavior;
  }
  const deny = ["Bash(touch:*)"];
  it.each([
    ["whatever a prefix allows", { deny, allow: ["Bash(npm:*)"] }, "npm exec -c x", "ask"],
    ["whatever the tool allows", { deny, allow: ["Bash"] }, "bash x.sh", "ask"],
    ["if a rule asks", { ask: deny, allow: ["Bash"] }, "$x M", "ask"],
    ["but not if a rule allows exactly this command", { deny, allow: ["Bash(bash x.sh)"] }, "bash x.sh", "allow"],
    ["but not if no rule covers commands", { deny: ["Read(.env)"], allow: ["Bash"] }, "bash x.sh", "allow"],
    ["but a readable command is allowed", { deny, allow: ["Bash(npm test:*)"] }, "npm test -- -x", "allow"],
  ] as const)("an unreadable command needs approval in Bash, %s", (_, texts, command, behavior) => {
    expect(verdict(texts as never, command)).toBe(behavior);
  });

  it("deny rules for Bash also judge commands of Monitor", () => {
    expect(verdict({ deny }, "touch M", "Monitor")).toBe("deny");
    expect(verdict({ deny }, "$x M", "Monitor")).toBe("ask");
  });
});

describe("a remembered answer", () => {
  function remembered(command: string, ...suggested: { toolName: string; ruleContent: string }[]): string[] {
    const suggestions = [{ type: "addRules", behavior: "allow", destination: "session", rules: suggested }];
    return rulesToRemember({
      requestId: "r",
      kind: "permission",
      toolName: "Bash",
      toolUseId: "t",
      input: { command },
      suggestions,
    });
  }
  const bash = (ruleContent: string) => ({ toolName: "Bash", ruleContent });

  it.each([
    ["npm test -- a", ["npm test *"], ["npm test -- a"]],
    ["npm test -- a", ["npm test:*"], ["npm test -- a"]],
    ["tar cf a.tar b", ["tar cf *"], ["tar cf a.tar b"]],
    ["git log -1", ["git log *"], ["git log -1"]],
    ["cat a", ["cat *"], ["cat a"]],
    ["ls src", ["ls *"], ["ls *"]],
    ["ls src", ["ls:*"], ["ls:*"]],
    ["ls a && npm test", ["ls *", "npm test *"], ["ls a && npm test"]],
    ["ls a", ["ls *sh"], ["ls a"]],
    ["du -s a", ["du *"], ["du -s a"]],
    ["rm *.o", ["rm *"], []],
  ])("the answer to %j with the suggestion %j is remembered as %j", (command, suggested, rules) => {
    expect(remembered(command, ...suggested.map(bash))).toEqual(rules.map((content) => `Bash(${content})`));
  });

  it("the answer to a verification is not remembered", () => {
    const asked = { requestId: "r", kind: "permission", toolUseId: "v", input: { commands: ["ls"] } } as const;
    expect(rulesToRemember({ ...asked, toolName: "Verification" })).toEqual([]);
  });

  it("a rule for another tool, suggested for the files that a command reads, is not remembered", () => {
    const suggested = { toolName: "Read", ruleContent: "//etc/**" };
    expect(remembered("grep x /etc/hosts", suggested)).toEqual(["Bash(grep x /etc/hosts)"]);
  });
});
