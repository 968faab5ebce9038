import { LOCAL_PRINCIPAL, type Confine, type Confinement } from "../domain/principal.ts";
import type { PrincipalTerms } from "./principals.ts";
import type { Config } from "./schema.ts";
import { ANYWHERE } from "./setting.ts";

type Terms = Pick<Config, "allowDirs" | "http" | "oauth" | "principals" | "trustDirs">;

/**
 * The folders that each principal's sessions may use: for the operator all that the server may use, for a named user those of
 * their entry, for any other principal those of the server if an authorization server vouches for them, else none.
 */
export function confinements({ allowDirs, http, oauth, principals, trustDirs }: Terms): Confine {
  const server = { allowDirs, trustDirs, spawnWrapper: [] };
  // Claude Code records what its user has trusted, for themselves: a server for others does not take that for their trust.
  const local = { ...server, trustsRecord: http === undefined, operatorOptions: true };
  const subject = { ...server, trustsRecord: false, operatorOptions: false };
  return (principal) => {
    if (principal === LOCAL_PRINCIPAL) return local;
    const terms = Object.hasOwn(principals, principal) ? principals[principal] : undefined;
    if (terms) return { ...subject, ...given(terms) };
    return oauth === undefined ? undefined : subject;
  };
}

function given({ allowDirs, claudeConfigDir, operatorOptions, spawnWrapper, trustDirs }: PrincipalTerms) {
  return {
    operatorOptions,
    ...(allowDirs && { allowDirs: allowDirs === ANYWHERE ? [] : allowDirs }),
    ...(trustDirs && { trustDirs }),
    ...(claudeConfigDir !== undefined && { configDir: claudeConfigDir }),
    ...(spawnWrapper && { spawnWrapper }),
  } satisfies Partial<Confinement>;
}
