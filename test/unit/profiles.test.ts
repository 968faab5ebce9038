import { describe, expect, it } from "vitest";
import { childEnvironment, identify, withUnread } from "../../src/claude/child-environment.ts";
import { loadConfig } from "../../src/config/load.ts";
import { profilesOf } from "../../src/config/profiles.ts";
import { Profile } from "../../src/domain/profile.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { withinBound } from "../../src/engine/policy/bounded-options.ts";
import { checkSameProfile, optionsOfProfile, withProfile, withProfileRules } from "../../src/engine/session/profile.ts";
import { runtimeFor } from "../kit/sessions/confined-runtime.ts";
import { OPEN_POLICY } from "../kit/sessions/open-gate.ts";

function load(profiles: unknown, principals: object = {}) {
  return loadConfig({
    argv: ["--profiles", JSON.stringify(profiles), "--principals", JSON.stringify(principals)],
    env: {},
  });
}

describe("the setting `profiles`", () => {
  it("a profile has options, account, rules and limits", () => {
    const night = {
      description: "Cheap work at night.",
      model: "haiku",
      options: { priority: "background", onLimit: "wait", env: { WHO: "night" }, allowedTools: ["Bash(ls:*)"] },
      claudeConfigDir: "/home/night/.claude",
      environment: { CLAUDE_CODE_OAUTH_TOKEN: "/home/night/token" },
      rules: { ask: ["WebFetch"], deny: ["Read(~/private/**)"] },
      planReserve: { fiveHour: 50 },
      budgetUsdPerDay: 2.5,
    };
    const { profiles } = load({ night, "v1.0_empty": {} });
    expect(profiles["night"]).toEqual(night);
    expect(profiles["v1.0_empty"]).toEqual({ options: {}, environment: {}, rules: { ask: [], deny: [] } });
  });

  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`N${String(index)}`, {}]));
  const file = (name: string) => ({ a: { environment: { [name]: "/token" } } });
  it.each<[string, unknown, string]>([
    ["an unknown key", { a: { modell: "x" } }, 'at a: Unrecognized key: "modell"'],
    ["a folder among the options", { a: { options: { cwd: "/x" } } }, 'at a.options: Unrecognized key: "cwd"'],
    ["a profile in a profile", { a: { options: { profile: "b" } } }, 'at a.options: Unrecognized key: "profile"'],
    ["a relative folder", { a: { claudeConfigDir: "x" } }, "at a.claudeConfigDir: must be an absolute path."],
    ["a value in place of a file", { a: { environment: { A_TOKEN: "sk-ant" } } }, "must be an absolute path."],
    ["a reserved variable", file("claude_code_mcp_depth"), "is set by the server: it counts how deep"],
    ["a reserved variable in the options", { a: { options: { env: { CLAUDE_CODE_HARBOR_KITE: "1" } } } }, "is set by"],
    ["a folder as a variable", { a: { options: { env: { CLAUDE_CONFIG_DIR: "/x" } } } }, "Set claudeConfigDir of the"],
    ["a home folder in a file", file("HOME"), "at a.environment.HOME: decides the configuration folder."],
    [
      "a switch in a file",
      file("CLAUDE_CODE_USE_BEDROCK"),
      "chooses the payer and is no secret. Set it in options.env",
    ],
    ["a word that is no variable", file("A=B"), "is not the name of a variable. Write one such as API_TOKEN."],
    ["an allow rule without a bracket", { a: { options: { allowedTools: ["Bash(ls"] } } }, "has a bracket without its"],
    [
      "a deny rule that never matches",
      { a: { rules: { deny: ["Bash()"] } } },
      "at a.rules.deny.0: the rule Bash() has",
    ],
    ["allow rules", { a: { rules: { allow: ["Read"] } } }, 'at a.rules: Unrecognized key: "allow"'],
    ["a budget of 0", { a: { budgetUsdPerDay: 0 } }, "at a.budgetUsdPerDay: must be an amount of USD per day above 0"],
    ["a reserve above 100", { a: { planReserve: { fiveHour: 101 } } }, "must be a percentage from 0 to 100"],
    ["a name with a slash", { "a/b": {} }, "must be a name of letters, digits"],
    ["more than 50 profiles", many(51), "must have at most 50 profiles"],
    [
      "more than 50 files",
      { a: { environment: Object.fromEntries(Object.keys(many(51)).map((name) => [name, "/t"])) } },
      "at most 50",
    ],
  ])("%s is refused in `profiles`, with its place", (_, profiles, message) => {
    expect(() => load(profiles)).toThrow(message);
    expect(() => load(profiles)).toThrow("--profiles cannot be used");
  });

  it("the local user may use all profiles, a principal those of its entry, anyone else none", () => {
    const of = profilesOf(load({ day: {}, night: {} }, { ada: { profiles: ["night"] }, bob: {} }));
    const names = ["local", "ada", "bob", "eve", "constructor"].map((principal) => Object.keys(of(principal)));
    expect(names).toEqual([["day", "night"], ["night"], [], [], []]);
    const misspelt = () => load({ night: {} }, { ada: { profiles: ["nihgt"] } });
    expect(misspelt).toThrow(
      'ada may use the profile nihgt, which does not exist. Add it to "profiles", or leave it out.',
    );
    expect(misspelt).toThrow("Did you mean night?");
  });
});

describe("the environment under a profile", () => {
  const client = {
    HOME: "/home/ann",
    PATH: "/bin",
    CLAUDE_CONFIG_DIR: "/of-the-client",
    ANTHROPIC_API_KEY: "k",
    ANTHROPIC_AUTH_TOKEN: "t",
    ANTHROPIC_BASE_URL: "https://gateway",
    ANTHROPIC_MODEL: "arn:model",
    CLAUDE_CODE_OAUTH_TOKEN: "o",
    CLAUDE_CODE_USE_BEDROCK: "1",
    CLAUDE_CODE_USE_MANTLE: "1",
    AWS_REGION: "eu",
  };
  const under = (profile: object) => {
    const parsed = Profile.parse(profile);
    const added = { WHO: "caller", ANTHROPIC_CUSTOM_HEADERS: "x: y", ANTHROPIC_AUTH_TOKEN: "of the caller" };
    const environment = childEnvironment(client, { depth: 0, configDir: "/of-the-principal", added, profile: parsed });
    return { environment, identity: identify(withUnread(environment, parsed)) };
  };
  const accountOf = (environment: object) =>
    Object.keys(environment).filter((name) => /^(?:ANTHROPIC|CLAUDE_CODE_(?:OAUTH|USE))/.test(name));

  it("a profile without an account keeps the account of the client, and its variables win", () => {
    const { environment, identity } = under({ options: { env: { WHO: "night" } }, environment: { A_TOKEN: "/t" } });
    expect(identity).toEqual({ configFolder: "/of-the-principal", paidBy: "Amazon Bedrock" });
    expect(environment).toMatchObject({ WHO: "night", ANTHROPIC_AUTH_TOKEN: "of the caller", AWS_REGION: "eu" });
    expect(environment["A_TOKEN"]).toBeUndefined();
  });

  it.each<[string, object, { configFolder: string; paidBy: string }, string[]]>([
    [
      "a folder",
      { claudeConfigDir: "/night" },
      { configFolder: "/night", paidBy: "the Claude login of the configuration folder" },
      [],
    ],
    [
      "a token in a file",
      { environment: { CLAUDE_CODE_OAUTH_TOKEN: "/t" } },
      { configFolder: "/of-the-principal", paidBy: "CLAUDE_CODE_OAUTH_TOKEN" },
      [],
    ],
    [
      "a cloud with its address",
      { options: { env: { CLAUDE_CODE_USE_VERTEX: "1", ANTHROPIC_VERTEX_BASE_URL: "https://v" } } },
      { configFolder: "/of-the-principal", paidBy: "Google Vertex" },
      ["CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_VERTEX_BASE_URL"],
    ],
  ])("a profile with %s removes every other account, of the client and of the caller", (_, profile, identity, kept) => {
    const found = under(profile);
    expect(found.identity).toEqual(identity);
    expect(accountOf(found.environment)).toEqual(kept);
    expect(found.environment).toMatchObject({ HOME: "/home/ann", PATH: "/bin", AWS_REGION: "eu", WHO: "caller" });
  });
});

describe("the options under a profile", () => {
  const night = Profile.parse({
    model: "haiku",
    options: { env: { WHO: "night" }, maxTurns: 5, allowedTools: ["Bash"], permissionMode: "acceptEdits" },
    rules: { ask: ["WebFetch"], deny: ["Bash(rm *)"] },
  });
  const terms = { profilesOf: (principal: string) => (principal === "ada" ? { night } : {}) };
  const given = (more: Partial<SessionOptions> = {}): SessionOptions => ({ cwd: "/w", profile: "night", ...more });

  it("options of a profile are defaults under the caller's own, without its variables", () => {
    const { options, model } = night;
    const { env: _, ...defaults } = options;
    expect(withProfile(terms, "ada", given({ maxTurns: 1 }))).toEqual({
      ...defaults,
      model,
      ...given({ maxTurns: 1 }),
    });
    expect(withProfile<Partial<SessionOptions>>(terms, "ada", { cwd: "/w" })).toEqual({ cwd: "/w" });
    expect(() => withProfile(terms, "bob", given())).toThrow(
      'profile: there is no profile "night". There is none for you',
    );
    expect(() => withProfile({}, "ada", given())).toThrow("There is none for you");
  });

  it("a bound of callers leaves options of the profile, and removes what a caller adds", () => {
    const within = (options: SessionOptions) => withinBound(options, "none", optionsOfProfile(terms, "ada", options));
    const own = withProfile(terms, "ada", given());
    expect(within(own)).toEqual({ options: own, withheld: [] });
    const more = within(withProfile(terms, "ada", given({ allowedTools: ["Bash", "Write"], skills: "all" })));
    expect(more.options).toMatchObject({ allowedTools: [], permissionMode: "acceptEdits" });
    expect(more.withheld).toHaveLength(2);
    // A principal that may no longer use the profile forks a session that has its options.
    expect(withinBound(own, "none", optionsOfProfile(terms, "bob", own)).withheld).toHaveLength(2);
  });

  it("rules of a profile are added to the policy once, and no request changes the profile of a session", () => {
    const session = { principal: "ada", spec: given() };
    const policy = { ...OPEN_POLICY, rules: { allow: ["Read"], ask: [], deny: ["Bash(rm *)"] } };
    const { rules } = withProfileRules(terms, session, policy);
    expect(rules).toEqual({ allow: ["Read"], ask: ["WebFetch"], deny: ["Bash(rm *)"] });
    expect(withProfileRules(terms, { ...session, principal: "bob" }, policy).rules).toEqual(policy.rules);
    checkSameProfile("night", "night");
    expect(() => checkSameProfile("night", "day")).toThrow(
      "started with the profile night, and a session never changes",
    );
    expect(() => checkSameProfile(undefined, "day")).toThrow("started without a profile");
    expect(() => checkSameProfile("night", undefined)).toThrow("Name night, or start a new session.");
  });
});

describe("the account of a profile, at the runtime", () => {
  const night = Profile.parse({ claudeConfigDir: "/night", environment: { CLAUDE_CODE_OAUTH_TOKEN: "/token" } });
  const environmentsWith = (readSecret: (file: string) => Promise<string>) =>
    runtimeFor({}, { profiles: { of: () => ({ night }), readSecret } }).environments;

  it("identity needs no file, the account depends on the token, and a profile that is gone has neither", async () => {
    const own = environmentsWith(async () => Promise.resolve(" the-token\n"));
    const identity = { configFolder: "/night", paidBy: "CLAUDE_CODE_OAUTH_TOKEN" };
    expect(own.identityOf("", "ann", { profile: "night" })).toEqual(identity);
    const account = await own.accountOf("", "ann", { profile: "night" });
    expect(account).toMatchObject({ ...identity, hasWindows: true });
    const other = environmentsWith(async () => Promise.resolve("another-token"));
    expect((await other.accountOf("", "ann", { profile: "night" }))?.id).not.toBe(account?.id);
    expect(own.identityOf("", "ann", { profile: "gone" })).toBeUndefined();
    expect(await own.accountOf("", "ann", { profile: "gone" })).toBeUndefined();
    const unreadable = environmentsWith(async () => Promise.reject(new Error("no such file")));
    expect(unreadable.identityOf("", "ann", { profile: "night" })).toEqual(identity);
    expect(await unreadable.accountOf("", "ann", { profile: "night" })).toBeUndefined();
  });
});
