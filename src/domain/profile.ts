import { z } from "zod";
import { malformedRules } from "./approvals/malformed-rule.ts";
import { parseRule, type RuleBehavior } from "./approvals/rule.ts";
import { UsdPerDay } from "./budget.ts";
import { AppError } from "./error.ts";
import { SessionOptions } from "./options.ts";
import { PlanReserve } from "./plan.ts";
import { whyReserved } from "./reserved-variables.ts";

/** Profiles: named bundles of options, account, rules and limits, from the operator's settings. */

const unlikeName = 'must be a name of letters, digits, ".", "_" and "-", such as night';
export const ProfileName = z.string().regex(/^\w[\w.-]{0,99}$/, unlikeName);

const AbsolutePath = z
  .string()
  .max(4_096)
  .regex(/^(?:[/\\]|[A-Za-z]:[/\\])/, "must be an absolute path");

const { cwd: _, model, profile: _profile, ...flat } = SessionOptions.shape;

const Options = z.strictObject(flat).superRefine((given, context) => {
  for (const { path, problem } of malformedRules(given)) {
    context.addIssue({ code: "custom", path: [...path], message: problem });
  }
  refuseVariables(given.env ?? {}, whyNotInProfile, (name, message) => {
    context.addIssue({ code: "custom", path: ["env", name], message });
  });
});

const Files = z.record(z.string(), AbsolutePath).superRefine((files, context) => {
  refuseVariables(files, whyNotInFile, (name, message) => {
    context.addIssue({ code: "custom", path: [name], message });
  });
  if (Object.keys(files).length <= MAX_VARIABLES) return;
  context.addIssue({ code: "custom", message: `must have at most ${String(MAX_VARIABLES)} variables` });
});

const [MAX_PROFILES, MAX_RULES, MAX_VARIABLES] = [50, 500, 50];

function refuseVariables(
  variables: object,
  objectionTo: (name: string) => string | undefined,
  refuse: (name: string, problem: string) => void,
): void {
  for (const name of Object.keys(variables)) {
    const problem = objectionTo(name);
    if (problem !== undefined) refuse(name, problem);
  }
}

function whyNotInProfile(name: string): string | undefined {
  if (!/^[A-Za-z_]\w{0,199}$/.test(name)) return "is not the name of a variable. Write one such as API_TOKEN.";
  if (/^(?:CLAUDE_CONFIG_DIR|HOME|USERPROFILE)$/i.test(name)) {
    return "decides the configuration folder. Set claudeConfigDir of the profile instead.";
  }
  return whyReserved(name);
}

/** Refuses switches as well: the payer must be known before any file is read. */
function whyNotInFile(name: string): string | undefined {
  if (/^CLAUDE_CODE_USE_/i.test(name)) return "chooses the payer and is no secret. Set it in options.env instead.";
  return whyNotInProfile(name);
}

function rules(behavior: RuleBehavior) {
  const rule = z.string().superRefine((text, context) => {
    const parsed = parseRule(text, behavior);
    if (!parsed.ok) context.addIssue({ code: "custom", message: parsed.problem });
  });
  return z.array(rule).max(MAX_RULES).default([]);
}

export const Profile = z
  .strictObject({
    description: z.string().min(1).max(500).exactOptional(),
    model,
    /** Defaults of sessions. `env` is not copied to the session: its variables hold for each process, over the caller's. */
    options: Options.default({}),
    /** Configuration folder of Claude Code, with its own login, settings and transcripts. */
    claudeConfigDir: AbsolutePath.exactOptional(),
    /** Files with the values of variables, read at each start of a process. */
    environment: Files.default({}),
    /** Added to the operator's rules. Allow rules are `allowedTools` in `options`. */
    rules: z.strictObject({ ask: rules("ask"), deny: rules("deny") }).default({ ask: [], deny: [] }),
    /** Replaces the server's. */
    planReserve: PlanReserve.exactOptional(),
    /** Budget of all sessions with the profile together. */
    budgetUsdPerDay: UsdPerDay.exactOptional(),
  })
  .readonly();
export type Profile = z.output<typeof Profile>;

export const Profiles = z
  .record(ProfileName, Profile, { error: ({ code }) => (code === "invalid_key" ? unlikeName : undefined) })
  .refine((all) => Object.keys(all).length <= MAX_PROFILES, `must have at most ${String(MAX_PROFILES)} profiles`)
  .readonly();
export type Profiles = z.output<typeof Profiles>;

/** Returns the profile `name` of those that a principal may use; `undefined` if there is none. */
export function findProfile(profiles: Profiles, name: string): Profile | undefined {
  return Object.hasOwn(profiles, name) ? profiles[name] : undefined;
}

/** Returns the error for a session whose profile is gone, or that its principal may no longer use. */
export function profileGone(name: string): AppError {
  const problem = `profile: the session was started with the profile ${name}, which this server does not have for its user`;
  const advice = `The operator can set "profiles" again, or the user's own; otherwise start a new session`;
  return new AppError("PERMISSION_DENIED", `${problem}. ${advice}.`);
}
