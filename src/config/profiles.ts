import { ConfigError } from "./error.ts";
import type { Principals } from "./principals.ts";
import { json } from "./setting.ts";
import { LOCAL_PRINCIPAL, type Principal } from "../domain/principal.ts";
import { findProfile, Profiles } from "../domain/profile.ts";
import { didYouMean } from "../domain/suggest.ts";

/** Profiles of the operator, and the principals that may use them. */

export const profilesField = json(Profiles.default({}), {
  flag: "profiles",
  variable: "CLAUDE_CODE_MCP_PROFILES",
  meaning:
    "Bundles of options that sessions can start with, by name. A profile has options, an account, rules and limits; a session starts with it by advanced.profile. You may use all of them, a user over HTTP those in profiles of its entry in --principals. See docs/configuration.md#profiles.",
});

interface Settings {
  readonly principals: Principals;
  readonly profiles: Profiles;
}

/** Returns a function that returns the profiles that a principal may use, by name. */
export function profilesOf({ principals, profiles }: Settings) {
  return (principal: Principal): Profiles => {
    if (principal === LOCAL_PRINCIPAL) return profiles;
    const terms = Object.hasOwn(principals, principal) ? principals[principal] : undefined;
    const names = terms?.profiles ?? [];
    return Object.fromEntries(Object.entries(profiles).filter(([name]) => names.includes(name)));
  };
}

/** Throws ConfigError if a principal may use a profile that does not exist, because the name may be misspelt. */
export function checkProfileNames({ principals, profiles }: Settings): void {
  for (const [principal, terms] of Object.entries(principals)) {
    const name = terms.profiles?.find((each) => !findProfile(profiles, each));
    if (name === undefined) continue;
    const advice = `Add it to "profiles", or leave it out.${didYouMean(name, Object.keys(profiles))}`;
    throw new ConfigError(`principals: ${principal} may use the profile ${name}, which does not exist. ${advice}`);
  }
}
