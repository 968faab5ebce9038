import { describe, expect, it } from "vitest";
import { callerApprovesOf } from "../../src/config/approvals/settings.ts";
import { loadConfig } from "../../src/config/load.ts";
import { BOUNDS, type Bound } from "../../src/domain/approvals/risk.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { PERMISSION_MODES, PermissionUpdate } from "../../src/domain/permission.ts";
import { SCOPES } from "../../src/domain/principal.ts";
import { boundOf, checkModeWithin, leftOutText, mayUseMode, decisionWithin } from "../../src/engine/policy/bound.ts";
import { withinBound } from "../../src/engine/policy/bounded-options.ts";
describe("the setting `--caller-approves`", () => {
  it.each([
    [[], "all"],
    [["--http"], "edits"],
    [["--http", "--caller-approves", "reads"], "reads"],
    [["--caller-approves", "none"], "none"],
  ])("with the arguments %j, callers may approve %s", (argv, expected) => {
    expect(callerApprovesOf(loadConfig({ argv, env: {} }))).toBe(expected);
  });
});

describe("the approval level of a caller", () => {
  it.each<[Bound, Bound | undefined, boolean, Bound]>([
    ["all", undefined, true, "all"],
    ["all", "reads", true, "reads"],
    ["reads", "all", true, "reads"],
    ["edits", "none", true, "none"],
    ["all", "all", false, "none"],
  ])(
    "with operator bound %s, session bound %s and scope approve %s, a caller may approve %s",
    (most, own, approves, expected) => {
      const scopes = SCOPES.filter((scope) => scope !== "decide" && (approves || scope !== "approve"));
      expect(boundOf(most, { scopes }, own)).toBe(expected);
    },
  );

  it("a caller with the scope decide has the session's bound, whatever the operator's; without approve, none", () => {
    expect(boundOf("none", { scopes: ["approve", "decide"] }, "all")).toBe("all");
    expect(boundOf("all", { scopes: ["approve", "decide"] }, "reads")).toBe("reads");
    expect(boundOf("all", { scopes: ["decide"] }, "all")).toBe("none");
  });

  it("the bound determines the permission modes that a caller may set", () => {
    const usable = (bound: Bound) => PERMISSION_MODES.filter((mode) => mayUseMode(mode, bound));
    const harmless = ["default", "plan", "dontAsk"];
    expect(usable("none").toSorted()).toEqual(harmless.toSorted());
    expect(usable("reads")).toEqual(usable("none"));
    expect(usable("edits").toSorted()).toEqual([...harmless, "acceptEdits"].toSorted());
    expect(usable("all")).toEqual(PERMISSION_MODES);
    expect(() => checkModeWithin("auto", "edits")).toThrow("than callers may approve here (edits)");
    expect(() => checkModeWithin("acceptEdits", "none")).toThrow("this caller may approve (nothing)");
    expect(() => checkModeWithin(undefined, "none")).not.toThrow();
  });
});

describe("options that would approve on the caller's behalf", () => {
  const agent = { description: "d", prompt: "p" };
  const remote = { type: "http" as const, url: "https://x.org" };
  const tool = (permission_policy: "always_allow" | "always_ask") => ({ name: "t", permission_policy });
  type Row = [given: Partial<SessionOptions>, needs: Bound, left: Partial<SessionOptions>, told: string];
  const ROWS: Row[] = [
    [{ permissionMode: "acceptEdits" }, "edits", { permissionMode: "default" }, "permissionMode acceptEdits"],
    [{ permissionMode: "auto" }, "all", { permissionMode: "default" }, "permissionMode auto"],
    [{ permissionMode: "bypassPermissions" }, "all", { permissionMode: "default" }, "permissionMode bypassPermissions"],
    [{ permissionMode: "dontAsk" }, "none", {}, ""],
    [{ allowedTools: ["Read", "ToolSearch"] }, "all", { allowedTools: ["ToolSearch"] }, "allowedTools Read"],
    [{ allowedTools: ["Bash(npm test:*)"] }, "all", { allowedTools: [] }, "allowedTools Bash(npm test:*)"],
    [{ disallowedTools: ["Bash"], tools: ["Read"] }, "none", {}, ""],
    [
      { agents: { a: { ...agent, permissionMode: "acceptEdits" }, b: agent } },
      "edits",
      { agents: { a: agent, b: agent } },
      "agents.a.permissionMode acceptEdits",
    ],
    [{ agents: { a: { ...agent, permissionMode: "plan", tools: ["Bash"] } } }, "none", {}, ""],
    [
      { sandbox: { enabled: true } },
      "all",
      { sandbox: { enabled: true, autoAllowBashIfSandboxed: false } },
      "sandbox.autoAllowBashIfSandboxed",
    ],
    [{ sandbox: { enabled: true, autoAllowBashIfSandboxed: false } }, "none", {}, ""],
    [
      { sandbox: { autoAllowBashIfSandboxed: true } },
      "all",
      { sandbox: { autoAllowBashIfSandboxed: false } },
      "sandbox.autoAllowBashIfSandboxed",
    ],
    [{ sandbox: { failIfUnavailable: true } }, "none", {}, ""],
    [{ skills: ["pdf"] }, "all", { skills: undefined as never }, "skills pdf"],
    [{ skills: "all" }, "all", { skills: undefined as never }, "skills all"],
    [{ skills: [] }, "none", {}, ""],
    [{ mcpServers: { x: remote, y: { command: "server" } } }, "none", {}, ""],
    [
      { mcpServers: { x: { ...remote, tools: [tool("always_allow"), tool("always_ask")] } } },
      "all",
      { mcpServers: { x: { ...remote, tools: [tool("always_ask")] } } },
      "mcpServers.x.tools",
    ],
    [{ mcpServers: { x: { ...remote, tools: [tool("always_ask")] } } }, "none", {}, ""],
    [
      { agents: { a: { ...agent, mcpServers: ["git", { x: { ...remote, tools: [tool("always_allow")] } }] } } },
      "all",
      { agents: { a: { ...agent, mcpServers: ["git", { x: { ...remote, tools: [] } }] } } },
      "agents.a.mcpServers",
    ],
  ];
  it.each(ROWS)(
    "the options %j need the bound %s; under a lower one they are withheld and named",
    (given, needs, left, told) => {
      const suffices = (bound: Bound) => BOUNDS.indexOf(bound) >= BOUNDS.indexOf(needs);
      for (const bound of BOUNDS.filter(suffices)) {
        expect(withinBound(given, bound)).toEqual({ options: given, withheld: [] });
      }
      for (const bound of BOUNDS.filter((each) => !suffices(each))) {
        const { options, withheld } = withinBound(given, bound);
        expect(options).toEqual({ ...given, ...left });
        expect(withheld).toEqual([expect.stringContaining(told)]);
        expect(withheld[0]).toContain("need approval instead");
      }
    },
  );
});

describe("the notice about omitted options", () => {
  it("a notice about an omitted option quotes at most 300 characters of the option", () => {
    expect(leftOutText("x".repeat(300), "edits")).toContain(
      `${"x".repeat(300)}: left out, because it lets more run without asking`,
    );
    expect(leftOutText("x".repeat(301), "edits")).toContain(`${"x".repeat(300)}...: left out`);
  });
});

describe("changes of permissions in a caller's answer", () => {
  const rules = [{ toolName: "Bash", ruleContent: "ls:*" }];
  it.each<[object, Bound]>([
    [{ type: "setMode", mode: "acceptEdits" }, "edits"],
    [{ type: "setMode", mode: "bypassPermissions" }, "all"],
    [{ type: "setMode", mode: "plan" }, "none"],
    [{ type: "addRules", behavior: "allow", rules }, "all"],
    [{ type: "addRules", behavior: "deny", rules }, "none"],
    [{ type: "replaceRules", behavior: "deny", rules }, "all"],
    [{ type: "removeRules", behavior: "deny", rules }, "all"],
    [{ type: "removeRules", behavior: "allow", rules }, "none"],
    [{ type: "addDirectories", directories: ["/x"] }, "all"],
    [{ type: "removeDirectories", directories: ["/x"] }, "none"],
  ])("the permission change %j needs the bound %s; under a lower one it is withheld", (given, needs) => {
    const update = PermissionUpdate.parse(given);
    for (const bound of BOUNDS) {
      const meant = { behavior: "allow" as const, updatedPermissions: [update] };
      const { decision, withheld } = decisionWithin(meant, bound);
      const isKept = BOUNDS.indexOf(bound) >= BOUNDS.indexOf(needs);
      expect(decision).toEqual(isKept ? meant : { behavior: "allow" });
      expect(withheld).toHaveLength(isKept ? 0 : 1);
    }
  });
});
