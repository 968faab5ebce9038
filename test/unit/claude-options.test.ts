import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { childEnvironment, configFolder, stateFile } from "../../src/claude/environment.ts";
import { checkModels, checkSkills, toSdkOptions } from "../../src/claude/sdk-options.ts";
import { SessionOptions } from "../../src/domain/options.ts";
import { OF_THE_OUTER_SESSION } from "../../src/domain/outer-session.ts";
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

/** Not options of the SDK: bounds belong to the engine, the environment is built elsewhere. */
const ELSEWHERE = new Set(
  "callerApproves env maxBudgetUsd onLost permissionRequestTimeoutMs sessionInitTimeoutMs timeout".split(" "),
);

/**
 * Options of the SDK that callers do not have: callbacks and objects, those that the engine or the operator decides, and synonyms
 * of another option. A new option of the SDK does not compile until it is listed here or in our schema.
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
/** Offered with their feature: limits and ends of a turn, forks, streaming. */
type Others = "maxBudgetUsd" | "persistSession" | "includePartialMessages" | "resumeSessionAt" | "forkSession";
const NEW: Exclude<keyof Options, keyof SessionOptions | NotOffered | Others>[] = [];

const keys = SessionOptions.keyof().options;

describe("the options of a session", () => {
  it("are all that the SDK has, except for those that callers do not have", () => {
    const nothing: never[] = NEW;
    expect(nothing).toEqual([]);
  });

  it("are those of this test, with valid values", () => {
    expect(Object.keys(EVERY_OPTION).toSorted()).toEqual([...keys].toSorted());
    expect(SessionOptions.parse(EVERY_OPTION)).toEqual(EVERY_OPTION);
  });

  it.each(keys.map((key) => [key, ELSEWHERE.has(key) ? {} : { [key]: EVERY_OPTION[key] }] as const))(
    "reach Claude Code one by one without side effects: %s",
    (key, expected) => {
      expect(toSdkOptions({ cwd: "/repo", [key]: EVERY_OPTION[key] })).toEqual({ ...bare, ...expected });
    },
  );

  it("reach Claude Code all together", () => {
    const known = Object.entries(EVERY_OPTION).filter(([key]) => !ELSEWHERE.has(key));
    expect(toSdkOptions(EVERY_OPTION)).toEqual({ mcpServersDelivery: "initialize", ...Object.fromEntries(known) });
  });

  it("keep Claude Code's own prompt and all its settings by default", () => {
    expect(toSdkOptions({ cwd: "/repo" })).toEqual(bare);
  });

  it.each([
    ["replaces Claude Code's prompt", "Be a parrot.", "Be a parrot."],
    ["is added to it", { ...preset, append: "And rhyme." }, { ...preset, append: "And rhyme." }],
    ["is it when nothing is added", preset, preset],
  ] as const)("with a system prompt: %s", (_, systemPrompt, expected) => {
    expect(toSdkOptions({ cwd: "/repo", systemPrompt }).systemPrompt).toEqual(expected);
  });

  it.each(PERMISSION_MODES)("pass each permission mode by its name: %s", (permissionMode) => {
    expect(toSdkOptions({ cwd: "/repo", permissionMode }).permissionMode).toBe(permissionMode);
  });

  it("can turn off all tools and all settings", () => {
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

  it("is the server's own plus the variables of every session", () => {
    const { GONE: _, ...kept } = own;
    expect(childEnvironment(own, child)).toEqual({ ...kept, ...always });
  });

  it.each([
    ...OF_THE_OUTER_SESSION,
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
  ])("has nothing of an outer session or of the server itself: %s", (name) => {
    expect(childEnvironment({ ...own, [name]: "secret" }, child)).toEqual(childEnvironment(own, child));
  });

  it("keeps settings of Claude Code", () => {
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

  it("has the session's additions, which override the server's own", () => {
    expect(childEnvironment(own, { ...child, added: { PATH: "/opt", NEW: "1" } })).toMatchObject({
      PATH: "/opt",
      NEW: "1",
    });
  });

  it("has the true depth, whatever a caller or the server adds", () => {
    const lie = { CLAUDE_CODE_MCP_DEPTH: "0", CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "0" };
    const environment = childEnvironment({ ...own, ...lie }, { depth: 2, added: lie });
    expect(environment).toMatchObject({ ...always, CLAUDE_CODE_MCP_DEPTH: "3" });
  });

  it("determines where Claude Code stores its files", () => {
    expect([configFolder({ HOME: "/h" }), stateFile({ HOME: "/h" })]).toEqual(["/h/.claude", "/h/.claude.json"]);
    const moved = { HOME: "/h", CLAUDE_CONFIG_DIR: "/c" };
    expect([configFolder(moved), stateFile(moved)]).toEqual(["/c", "/c/.claude.json"]);
  });
});

describe("an option that the Agent SDK would refuse", () => {
  it.each(["", " ", "a ", "a,b", "a(b)", "a\nb", "*", "plugin:*", "a *", "a__*", "/a", "a\\\\b", "\ud800"])(
    "is refused at the call: the skill %j",
    (name) => {
      expect(() => checkSkills({ skills: ["good", name] })).toThrow(/^skills: .* cannot name a skill\. Name/);
    },
  );

  it.each<{ skills?: string[] | "all" }>([
    {},
    { skills: "all" },
    { skills: [] },
    { skills: ["a", "p:b", "a b", "é*x"] },
  ])("is not refused: %j", (options) => {
    expect(() => checkSkills(options)).not.toThrow();
  });

  it("is refused at the call: a model that is its own fallback, which a switched session goes on without", () => {
    const same = { cwd: "/repo", model: "sonnet", fallbackModel: "sonnet" };
    expect(() => checkModels(same)).toThrow("fallbackModel: is the model itself, sonnet.");
    expect(() => checkModels({ model: "opus", fallbackModel: "sonnet" })).not.toThrow();
    expect(() => checkModels({})).not.toThrow();
    expect(toSdkOptions(same)).toEqual({ ...bare, model: "sonnet" });
    expect(toSdkOptions({ ...same, model: "opus" })).toMatchObject({ model: "opus", fallbackModel: "sonnet" });
  });
});
