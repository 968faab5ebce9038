import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import { invalidArgument } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { Principal } from "../../domain/principal.ts";
import { findProfile, profileGone, type Profile } from "../../domain/profile.ts";
import type { ServerTerms } from "../policy/operator.ts";
import type { SessionRecord } from "../ports.ts";

/** Applies profiles: the options of the operator for a session, under the caller's own, and the operator's rules. */

type Terms = Pick<ServerTerms, "profilesOf">;
type Given = Pick<Partial<SessionOptions>, "profile">;

/**
 * Adds the options of the profile in `given`. Throws INVALID_ARGUMENT for a profile that does not exist or that the principal
 * may not use, without telling which.
 */
export function withProfile<T extends Given>({ profilesOf }: Terms, principal: Principal, given: T): T {
  const { profile: name } = given;
  if (name === undefined) return given;
  const profiles = profilesOf?.(principal) ?? {};
  const profile = findProfile(profiles, name);
  if (profile) return { ...defaultsOf(profile), ...given };
  const names = Object.keys(profiles);
  const advice = names.length === 0 ? "There is none for you: leave it out" : `Name one of ${names.join(", ")}`;
  throw invalidArgument(
    "profile",
    `there is no profile ${JSON.stringify(name)}. ${advice}. See claude-code://profiles.`,
  );
}

/** Leaves out `env`, whose variables hold for each process (`claude/child-environment.ts`). */
function defaultsOf(profile: Profile): Partial<SessionOptions> {
  const { model } = profile;
  const { env: _, ...options } = profile.options;
  return { ...(model !== undefined && { model }), ...options };
}

/** Returns the names of the options that a session has as its profile gives them: the operator's word. */
export function optionsOfProfile(terms: Terms, principal: Principal, spec: SessionOptions): ReadonlySet<string> {
  const profile = profileOf(terms, { principal, spec });
  const given = new Map(Object.entries(spec).map(([name, value]) => [name, JSON.stringify(value)]));
  const own = Object.entries(profile ? defaultsOf(profile) : {});
  return new Set(own.filter(([name, value]) => given.get(name) === JSON.stringify(value)).map(([name]) => name));
}

/** Adds the rules of the session's profile to the policy of a session that begins. */
export function withProfileRules(
  terms: Terms,
  session: Pick<SessionRecord, "principal" | "spec">,
  policy: SessionPolicy,
): SessionPolicy {
  const { ask = [], deny = [] } = profileOf(terms, session)?.rules ?? {};
  const { rules } = policy;
  const all = { ask: [...new Set([...rules.ask, ...ask])], deny: [...new Set([...rules.deny, ...deny])] };
  return { ...policy, rules: { ...rules, ...all } };
}

function profileOf(
  { profilesOf }: Terms,
  { principal, spec }: Pick<SessionRecord, "principal" | "spec">,
): Profile | undefined {
  return spec.profile === undefined ? undefined : findProfile(profilesOf?.(principal) ?? {}, spec.profile);
}

/** Throws PERMISSION_DENIED if the session's profile is gone, or its principal may no longer use it. */
export function requireProfile(terms: Terms, session: Pick<SessionRecord, "principal" | "spec">): void {
  const { profile: name } = session.spec;
  if (name !== undefined && !profileOf(terms, session)) throw profileGone(name);
}

/** Throws INVALID_ARGUMENT if a request names another profile than `own`, the session's. */
export function checkSameProfile(own: string | undefined, named: string | undefined): void {
  if (named === own) return;
  const [start, advice] =
    own === undefined ? ["without a profile", "Leave it out"] : [`with the profile ${own}`, `Name ${own}`];
  const problem = `the session was started ${start}, and a session never changes its account`;
  throw invalidArgument("profile", `${problem}. ${advice}, or start a new session.`);
}
