import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { checkSandboxedOptions } from "../../src/claude/sandbox/sandboxed-options.ts";
import { toSdkOptions } from "../../src/claude/sdk-options.ts";
import { type Claim, splitForSpare } from "../../src/claude/spares/spec.ts";
import { SessionOptions } from "../../src/domain/options.ts";
import { type OptionsWith, TRAITS, traitsOf } from "../../src/domain/options/traits.ts";
import type { Scope } from "../../src/domain/principal.ts";
import { withinBound } from "../../src/engine/policy/bounded-options.ts";
import { checkGiven } from "../../src/engine/policy/gate.ts";
import { EVERY_OPTION } from "../kit/sessions/every-option.ts";
import { OPEN_GATE } from "../kit/sessions/open-gate.ts";
import { FakeEngine } from "../kit/tools/fake-engine.ts";
import { type SessionList, run, runWithSensitiveDetails } from "../kit/tools/run.ts";

/** Checks that access, bounds, sandbox, view and spare key follow `TRAITS`, for each option and an unknown one. */

const NEW = "notYetKnown";
const NAMES: readonly string[] = [...SessionOptions.keyof().options, NEW];
const VALUES: Readonly<Record<string, unknown>> = { ...EVERY_OPTION, [NEW]: "some value" };

const ALWAYS_ALLOWED = { name: "t", permission_policy: "always_allow" };

/**
 * Values that allow a tool use without approval. A new option with `approves: "by value"` does not compile until listed here.
 */
const APPROVING = {
  permissionMode: "acceptEdits",
  allowedTools: ["Bash"],
  agents: { a: { description: "d", prompt: "p", permissionMode: "acceptEdits" } },
  sandbox: { enabled: true },
  skills: ["pdf"],
  mcpServers: { x: { type: "http", url: "https://x.org", tools: [ALWAYS_ALLOWED] } },
} satisfies Record<OptionsWith<"approves", "by value">, unknown>;

const WHERE_SHOWN = {
  public: { public: true, sensitive: "whole", named: false },
  sensitive: { public: false, sensitive: "whole", named: false },
  "by value": { public: false, sensitive: "part", named: false },
  "by name": { public: false, sensitive: "not", named: true },
  never: { public: false, sensitive: "not", named: false },
};

/** Options of a session with only `name`. Untyped, because no type has `NEW`. */
function only(name: string): Partial<SessionOptions> {
  return { [name]: VALUES[name] };
}

it("the table has a row for each option, and no other", () => {
  expect(Object.keys(TRAITS).toSorted()).toEqual(SessionOptions.keyof().options.toSorted());
});

it("an option without a row has every restriction", () => {
  const closed = {
    usedBy: "claude",
    access: { operatorOnly: expect.any(String) as string },
    sandbox: { refused: expect.any(String) as string },
    approves: "everything",
    shown: "never",
    spare: "key",
  };
  expect(traitsOf(NEW)).toEqual(closed);
  expect(traitsOf("constructor")).toEqual(closed);
});

describe.each(NAMES)("the option %s", (name) => {
  const { access, approves, sandbox, shown, spare } = traitsOf(name);

  it("an option is open to any caller, or to the operator only", () => {
    const give = (scopes: Scope[]) => refusalOf(() => checkGiven(OPEN_GATE, { principal: "ann", scopes }, only(name)));
    const because =
      typeof access === "object" && `${name}: only the operator may set it, because ${access.operatorOnly}.`;
    expect(give(["read", "run", "approve"])).toMatch(beginning(access === "any caller" ? "" : because || `${name}.`));
    expect(give(["admin"])).toBe("");
  });

  it("an option is accepted with --sandbox required, or refused", () => {
    const because =
      typeof sandbox === "object" && `${name}: is not allowed on this server, because ${sandbox.refused}.`;
    const expected = beginning(sandbox === "allowed" ? "" : because || `${name}.`);
    expect(refusalOf(() => checkSandboxedOptions(only(name)))).toMatch(expected);
  });

  it("an option is unchanged for a caller who may approve nothing, unless it approves something", () => {
    const approving: Readonly<Record<string, unknown>> = APPROVING;
    const given = approves === "by value" ? { [name]: approving[name] } : only(name);
    const withheld = [expect.stringContaining(name) as string];
    const expected = {
      nothing: { options: given, withheld: [] },
      "by value": { options: expect.not.objectContaining(given) as unknown, withheld },
      everything: { options: {}, withheld },
    };
    expect(withinBound(given, "none")).toEqual(expected[approves]);
    expect(withinBound(given, "all")).toEqual({ options: given, withheld: [] });
  });

  it("an option is shown in the tiers that the table names, and in no other", async () => {
    const engine = new FakeEngine();
    engine.add("s1", { cwd: "/elsewhere", ...only(name) }).title = "renamed";
    const args = { action: "get", sessionId: "s1" };
    const { requested, ...rest } = sessionOf(await run(engine, "_session", args));
    const sensitive = sessionOf(await runWithSensitiveDetails(engine, { ...args, includeSensitive: true }));
    const { leftOut = [] } = sensitive;
    expect({
      public: name in rest || isDeepStrictEqual(requested?.[name], VALUES[name]),
      sensitive: howShown(sensitive, name),
      named: leftOut.includes(name),
    }).toEqual(WHERE_SHOWN[shown]);
  });

  it("an option is part of a spare's key, set by the claim, or excludes the session from spares", async () => {
    const base = toSdkOptions({ cwd: "/repo" });
    // An option of Claude Code has one name in `SessionOptions` and in `Options`.
    const given: Options =
      spare === undefined ? toSdkOptions({ cwd: "/repo", ...only(name) }) : { ...base, ...only(name) };
    const whose = { principal: "ann", wrapper: [], record: {} };
    const [plain, split] = [await splitForSpare(whose, base), await splitForSpare(whose, given)];
    const outcomes = {
      unfit: split === undefined,
      key: split !== undefined && split.spec.key !== plain?.spec.key && isDeepStrictEqual(split.claim, plain?.claim),
      claim: split?.spec.key === plain?.spec.key && isDeepStrictEqual(split?.claim[name as keyof Claim], VALUES[name]),
      nothing: isDeepStrictEqual(split, plain),
    };
    const seen = Object.entries(outcomes).flatMap(([outcome, isSo]) => (isSo ? [outcome] : []));
    expect(seen).toEqual([spare ?? "nothing"]);
  });
});

/** Returns the reason for the refusal, or "" if `act` succeeds. */
function refusalOf(act: () => void): string {
  try {
    act();
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Matches texts that begin with `text`; "" matches only an empty text. */
function beginning(text: string): RegExp {
  return text === "" ? /^$/ : new RegExp(`^${text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}`);
}

interface Shown extends Record<string, unknown> {
  readonly requested?: Readonly<Record<string, unknown>>;
  readonly leftOut?: readonly string[];
}

function sessionOf({ structured }: { readonly structured: object }): Shown {
  const [session = {}] = (structured as SessionList).sessions;
  return session;
}

function howShown(session: Shown, name: string): "whole" | "part" | "not" {
  if (!(name in session)) return "not";
  return isDeepStrictEqual(session[name], VALUES[name]) ? "whole" : "part";
}
