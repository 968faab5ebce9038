import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { describe, expect, it } from "vitest";
import { checkFenced } from "../../src/claude/fence/options.ts";
import { toSdkOptions } from "../../src/claude/options.ts";
import { recipeOf } from "../../src/claude/spares/recipe.ts";
import { SessionOptions } from "../../src/domain/options.ts";
import { type OptionsWith, TRAITS, traitsOf } from "../../src/domain/options/traits.ts";
import { withinBound } from "../../src/engine/bounds/options.ts";
import { checkGiven } from "../../src/engine/gate.ts";
import { EVERY_OPTION } from "../support/every-option.ts";
import { OPEN_GATE } from "../support/open-gate.ts";
import { FakeEngine } from "../support/tools/fake-engine.ts";
import { type Listed, run, runOpen } from "../support/tools/run.ts";

/** The gate, the bounds, the sandbox, the view and the key of a spare follow the table, for each option and for an unknown one. */

const NEW = "notYetKnown";
const NAMES: readonly string[] = [...SessionOptions.keyof().options, NEW];
const VALUES: Readonly<Record<string, unknown>> = { ...EVERY_OPTION, [NEW]: "some value" };

const ALWAYS_ALLOWED = { name: "t", permission_policy: "always_allow" };

/** A value that lets something run unasked; an option that the bounds judge by its value does not compile until it stands here. */
const APPROVING = {
  permissionMode: "acceptEdits",
  allowedTools: ["Bash"],
  agents: { a: { description: "d", prompt: "p", permissionMode: "acceptEdits" } },
  sandbox: { enabled: true },
  skills: ["pdf"],
  mcpServers: { x: { type: "http", url: "https://x.org", tools: [ALWAYS_ALLOWED] } },
} satisfies Record<OptionsWith<"approves", "by value">, unknown>;

/** As a session would have it; no type knows a new one. */
function only(name: string): Partial<SessionOptions> {
  return { [name]: VALUES[name] };
}

it("the table has a row for each option, and no other", () => {
  expect(Object.keys(TRAITS).toSorted()).toEqual(SessionOptions.keyof().options.toSorted());
});

it("an option without a row is closed in every respect", () => {
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

  it("is open to any caller, or to the operator only", () => {
    const give = () => checkGiven(OPEN_GATE, { principal: "ann", scopes: ["read", "run", "approve"] }, only(name));
    if (access === "any caller") expect(give).not.toThrow();
    else if (access === "by value") expect(give).toThrow(`${name}.`);
    else expect(give).toThrow(`${name}: is for the operator of this server, since ${access.operatorOnly}.`);
    expect(() => checkGiven(OPEN_GATE, { principal: "ann", scopes: ["admin"] }, only(name))).not.toThrow();
  });

  it("is taken with --sandbox required, or refused", () => {
    const take = () => checkFenced(only(name));
    if (sandbox === "allowed") expect(take).not.toThrow();
    else if (sandbox === "by value") expect(take).toThrow(`${name}.`);
    else expect(take).toThrow(`${name}: is not taken by this server, since ${sandbox.refused}.`);
  });

  it("stays as it is for a caller who may approve nothing, unless it approves something", () => {
    const approving: Readonly<Record<string, unknown>> = APPROVING;
    const given = approves === "by value" ? { [name]: approving[name] } : only(name);
    const { options, withheld } = withinBound(given, "none");
    if (approves === "nothing") expect({ options, withheld }).toEqual({ options: given, withheld: [] });
    else expect(withheld).toEqual([expect.stringContaining(`${name}`)]);
    if (approves === "by value") expect(options).not.toEqual(given);
    if (approves === "everything") expect(options).toEqual({});
    expect(withinBound(given, "all")).toEqual({ options: given, withheld: [] });
  });

  it("is shown in the tiers that the table names, and in no other", async () => {
    const engine = new FakeEngine();
    engine.add("s1", { cwd: "/elsewhere", ...only(name) });
    const args = { action: "get", sessionId: "s1" };
    const sessionOf = (reply: { structured: object }) => (reply.structured as Listed).sessions[0] ?? {};
    const tierless = sessionOf(await run(engine, "_session", args));
    const sensitive = sessionOf(await runOpen(engine, { ...args, includeSensitive: true }));
    const { requested, ...rest } = tierless;
    if (shown === "public") expect(requested).toHaveProperty(name, VALUES[name]);
    else expect({ ...rest, ...(requested as object) }).not.toHaveProperty(name);
    if (shown === "sensitive") expect(sensitive).toHaveProperty(name, VALUES[name]);
    if (shown === "by value") expect(sensitive[name]).not.toEqual(VALUES[name]);
    if (shown === "by name") expect(sensitive["leftOut"]).toEqual([name]);
    if (shown === "by name" || shown === "never") expect(sensitive).not.toHaveProperty(name);
    if (shown === "never") expect(JSON.stringify(sensitive)).not.toContain(name);
  });

  it("is part of a spare's key, set by the claim, or keeps the session from having a spare", async () => {
    const base = toSdkOptions({ cwd: "/repo" });
    const whose = { principal: "ann", wrapper: [] };
    const plain = await recipeOf(whose, base);
    // What is for Claude Code keeps its name in the options of the SDK.
    const given: Options =
      spare === undefined ? toSdkOptions({ cwd: "/repo", ...only(name) }) : { ...base, ...only(name) };
    const split = await recipeOf(whose, given);
    if (spare === "unfit") expect(split).toBeUndefined();
    else expect(split?.recipe.key === plain?.recipe.key).toBe(spare !== "key");
    if (spare === "claim") expect(split?.claim).toHaveProperty(name, VALUES[name]);
    else if (spare !== "unfit") expect(split?.claim).toEqual(plain?.claim);
  });
});
