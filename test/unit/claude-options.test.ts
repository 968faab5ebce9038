import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { childEnvironment, configFolder, stateFile } from "../../src/claude/child-environment.ts";
import { checkModels, checkSkills, toSdkOptions } from "../../src/claude/sdk-options.ts";
import { SessionOptions } from "../../src/domain/options.ts";
import { OUTER_SESSION_VARIABLES } from "../../src/domain/outer-session.ts";
import { PERMISSION_MODES } from "../../src/domain/permission.ts";
import { EVERY_OPTION } from "../kit/sessions/every-option.ts";

const preset = { type: "preset", preset: "claude_code" } as const;
const bare: Options = {
  cwd: "/repo",
  systemPrompt: preset,
  settingSources: ["user", "project", "local"],
  permissionMode: "default",
  mcpServersDelivery: "initialize",
};

/** Options that `toSdkOptions` leaves out: limits are the engine's, and `env` is built by `childEnvironment`. */
const ELSEWHERE = new Set([
  ..."callerApproves env labels maxBudgetUsd node onLimit onLost permissionRequestTimeoutMs priority profile".split(
    " ",
  ),
  ..."sessionInitTimeoutMs timeout verify".split(" "),
]);

/**
 * SDK options without a counterpart for callers: callbacks and objects, decisions of the engine or the operator, and synonyms.
 * A new option of the SDK does not compile until listed here or in `SessionOptions`.
 */
type NotOffered =
  | "abortController"
  | "allowDangerouslySkipPermissions"
  | "canUseTool"
  | "continue"
  | "executable"
  | "executableArgs"
  | "extraArgs"
  | "hooks"
  | "loadTimeoutMs"
  | "managedSettings"
  | "maxThinkingTokens"
  | "mcpServersDelivery"
  | "onElicitation"
  | "onUserDialog"
  | "perTaskStopAffordance"
  | "permissionPromptToolName"
  | "pluginDelivery"
  | "plugins"
  | "projectConfigRoot"
  | "resume"
  | "resumeDropsTurn"
  | "sessionId"
  | "sessionStore"
  | "sessionStoreFlush"
  | "settings"
  | "spawnClaudeCodeProcess"
  | "stderr"
  | "supportedDialogKinds"
  | "toolAliases"
  | "toolConfig";
/** SDK options that belong to a feature: limits and ends of a turn, forks, streaming. */
type Others = "maxBudgetUsd" | "persistSession" | "includePartialMessages" | "resumeSessionAt" | "forkSession";
const NEW: Exclude<keyof Options, keyof SessionOptions | NotOffered | Others>[] = [];

const keys = SessionOptions.keyof().options;

describe("the options of a session", () => {
  it("sessions have all options of the SDK except the listed ones", () => {
    const nothing: never[] = NEW;
    expect(nothing).toEqual([]);
  });

  it("`EVERY_OPTION` has a valid value for each option", () => {
    expect(Object.keys(EVERY_OPTION).toSorted()).toEqual([...keys].toSorted());
    expect(SessionOptions.parse(EVERY_OPTION)).toEqual(EVERY_OPTION);
  });

  it.each(keys.map((key) => [key, ELSEWHERE.has(key) ? {} : { [key]: EVERY_OPTION[key] }] as const))(
    "an option reaches Claude Code without side effects: %s",
    (key, expected) => {
      expect(toSdkOptions({ cwd: "/repo", [key]: EVERY_OPTION[key] })).toEqual({ ...bare, ...expected });
    },
  );

  it("all options together reach Claude Code", () => {
    const known = Object.entries(EVERY_OPTION).filter(([key]) => !ELSEWHERE.has(key));
    expect(toSdkOptions(EVERY_OPTION)).toEqual({ mcpServersDelivery: "initialize", ...Object.fromEntries(known) });
  });

  it("Claude Code's own prompt and all its settings are the default", () => {
    expect(toSdkOptions({ cwd: "/repo" })).toEqual(bare);
  });

  it.each([
    ["replaces Claude Code's prompt", "Be a parrot.", "Be a parrot."],
    [
      "with `append` is added to Claude Code's prompt",
      { ...preset, append: "And rhyme." },
      { ...preset, append: "And rhyme." },
    ],
    ["of the bare preset is Claude Code's prompt", preset, preset],
  ] as const)("a system prompt %s", (_, systemPrompt, expected) => {
    expect(toSdkOptions({ cwd: "/repo", systemPrompt }).systemPrompt).toEqual(expected);
  });

  it.each(PERMISSION_MODES)("the permission mode %s is passed by its name", (permissionMode) => {
    expect(toSdkOptions({ cwd: "/repo", permissionMode }).permissionMode).toBe(permissionMode);
  });

  it("options can turn off all tools and all settings", () => {
    expect(toSdkOptions({ cwd: "/repo", tools: [], settingSources: [] })).toMatchObject({
      tools: [],
      settingSources: [],
    });
  });
});

describe("the environment of Claude Code", () => {
  const own = { PATH: "/bin", HOME: "/home/ann", ANTHROPIC_API_KEY: "key", EMPTY: "", GONE: undefined };
  const child = { depth: 0 };
  const always = {
    MCP_TIMEOUT: "10000",
    CLAUDE_CODE_MCP_DEPTH: "1",
    CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "1",
    CLAUDE_AGENT_SDK_CLIENT_APP: "claude-agents-mcp",
  };

  it("the environment is the server's own plus the variables of every session", () => {
    const { GONE: _, ...kept } = own;
    expect(childEnvironment(own, child)).toEqual({ ...kept, ...always });
  });

  it.each([
    ...OUTER_SESSION_VARIABLES,
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_HOST_AUTH_ENV_VAR",
    "CLAUDE_CODE_HOST_CREDS_FILE",
    "CLAUDE_CODE_SDK_HAS_HOST_AUTH_REFRESH",
    "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
    "CLAUDE_CODE_MCP_HTTP_TOKEN",
    "CLAUDE_CODE_MCP_ALLOW_BYPASS",
    "CLAUDE_CODE_ENABLE",
    "CLAUDE_CODE_DEFAULT_CWD",
    "CLAUDE_CODE_DEFAULT_MODEL",
    "CLAUDE_CODE_DEFAULT_PERMISSION_MODE",
    "CLAUDE_CODE_MAX_TURNS",
    "CLAUDE_CODE_MAX_MESSAGES",
    "CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES",
    "CLAUDE_CODE_ALLOWED_TOOLS",
    "CLAUDE_CODE_MAX_EXECUTION_TIME",
  ])("a variable of an outer session or of the server itself is removed: %s", (name) => {
    expect(childEnvironment({ ...own, [name]: "secret" }, child)).toEqual(childEnvironment(own, child));
  });

  it("settings of Claude Code are kept", () => {
    const settings = {
      CLAUDE_CODE_OAUTH_TOKEN: "the user's",
      CLAUDE_CODE_SUBAGENT_MODEL: "sonnet",
      CLAUDE_CODE_MAX_RETRIES: "1",
      CLAUDE_CODE_USE_BEDROCK: "1",
      CLAUDE_CONFIG_DIR: "/c",
      MCP_TIMEOUT: "5",
    };
    expect(childEnvironment(settings, child)).toMatchObject(settings);
  });

  it("additions of a session override the server's variables", () => {
    expect(childEnvironment(own, { ...child, added: { PATH: "/opt", NEW: "1" } })).toMatchObject({
      PATH: "/opt",
      NEW: "1",
    });
  });

  it("the depth is true, whatever a caller or the server adds", () => {
    const lie = { CLAUDE_CODE_MCP_DEPTH: "0", CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "0" };
    const environment = childEnvironment({ ...own, ...lie }, { depth: 2, added: lie });
    expect(environment).toMatchObject({ ...always, CLAUDE_CODE_MCP_DEPTH: "3" });
  });

  it("`HOME` and `CLAUDE_CONFIG_DIR` determine where Claude Code stores its files", () => {
    expect([configFolder({ HOME: "/h" }), stateFile({ HOME: "/h" })]).toEqual(["/h/.claude", "/h/.claude.json"]);
    const moved = { HOME: "/h", CLAUDE_CONFIG_DIR: "/c" };
    expect([configFolder(moved), stateFile(moved)]).toEqual(["/c", "/c/.claude.json"]);
  });
});

describe("an option that the Agent SDK would refuse", () => {
  it.each(["", " ", "a ", "a,b", "a(b)", "a\nb", "*", "plugin:*", "a *", "a__*", "/a", "a\\\\b", "\ud800"])(
    "an invalid skill name is refused at the call: %j",
    (name) => {
      expect(() => checkSkills({ skills: ["good", name] })).toThrow(/^skills: .* cannot name a skill\. Name/);
    },
  );

  it.each<{ skills?: string[] | "all" }>([
    {},
    { skills: "all" },
    { skills: [] },
    { skills: ["a", "p:b", "a b", "é*x"] },
  ])("valid skills are accepted: %j", (options) => {
    expect(() => checkSkills(options)).not.toThrow();
  });

  it("a fallback equal to the model is refused at the call, and left out after a switch to it", () => {
    const same = { cwd: "/repo", model: "sonnet", fallbackModel: "sonnet" };
    expect(() => checkModels(same)).toThrow("fallbackModel: is the model itself, sonnet.");
    expect(() => checkModels({ model: "opus", fallbackModel: "sonnet" })).not.toThrow();
    expect(() => checkModels({})).not.toThrow();
    expect(toSdkOptions(same)).toEqual({ ...bare, model: "sonnet" });
    expect(toSdkOptions({ ...same, model: "opus" })).toMatchObject({ model: "opus", fallbackModel: "sonnet" });
  });
});
