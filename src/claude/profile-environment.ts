import { AppError } from "../domain/error.ts";
import type { SessionOptions } from "../domain/options.ts";
import { LOCAL_PRINCIPAL, type Principal } from "../domain/principal.ts";
import { findProfile, profileGone, type Profile, type Profiles } from "../domain/profile.ts";
import type { Variables } from "./environment-records.ts";

/** Finds the profile of a session, and reads its variables from their files. */

export interface ProfileSource {
  /** Returns the profiles that a principal may use, by name. */
  of: (principal: Principal) => Profiles;
  /** Returns the content of a file with a secret. Rejects with a sentence if another user could have read or written it. */
  readSecret: (file: string) => Promise<string>;
}

interface Session {
  readonly principal: Principal;
  readonly options: Pick<SessionOptions, "profile">;
}

interface WithProfiles {
  readonly profiles: ProfileSource;
}

/** Throws PERMISSION_DENIED if the session has a profile that is gone, or that its principal may no longer use. */
export function profileOf(
  { profiles }: WithProfiles,
  { options: { profile: name }, principal }: Session,
): Profile | undefined {
  if (name === undefined) return undefined;
  const profile = findProfile(profiles.of(principal), name);
  if (profile) return profile;
  throw profileGone(name);
}

/** False if `profileOf` would throw. */
export function hasProfile({ profiles }: WithProfiles, { options: { profile: name }, principal }: Session): boolean {
  return name === undefined || findProfile(profiles.of(principal), name) !== undefined;
}

/** Returns the variables that the session's profile takes from files. Rejects with PERMISSION_DENIED for an unusable file. */
export async function readSecrets(config: WithProfiles, session: Session): Promise<Variables> {
  const files = Object.entries(profileOf(config, session)?.environment ?? {});
  const read = async ([name, file]: readonly [string, string]) => {
    try {
      return [name, valueIn(await config.profiles.readSecret(file), file)] as const;
    } catch (error) {
      throw unusable({ name, profile: session.options.profile ?? "", why: error }, session.principal);
    }
  };
  return Object.fromEntries(await Promise.all(files.map(read)));
}

function valueIn(content: string, file: string): string {
  const value = content.trim();
  if (value !== "" && !value.includes("\0")) return value;
  throw new Error(`${file} ${value === "" ? "is empty" : "has a NUL character"}.`);
}

interface Unusable {
  readonly name: string;
  readonly profile: string;
  readonly why: unknown;
}

/** Names the file to the operator only. */
function unusable({ name, profile, why }: Unusable, principal: Principal): AppError {
  const problem = `profile: ${profile} cannot be used, because its file with ${name} cannot be read`;
  const reason = why instanceof Error ? why.message : String(why);
  const advice =
    principal === LOCAL_PRINCIPAL ? reason : "Ask the operator to mend it, or start a session with another profile.";
  return new AppError("PERMISSION_DENIED", `${problem}. ${advice}`, { cause: why });
}

/** Names all secrets of a profile so that they are masked, whatever their own names. */
export function maskedNames(secrets: Variables): Variables {
  return Object.fromEntries(Object.entries(secrets).map(([name, value]) => [`${name}_SECRET`, value]));
}

/** Returns the secrets of a profile in the record of a process of a former server, whose files may have changed since. */
export function secretsIn(record: Variables, profile: Profile | undefined): Variables {
  const names = Object.keys(profile?.environment ?? {});
  return Object.fromEntries(Object.entries(record).filter(([name]) => names.includes(name)));
}
