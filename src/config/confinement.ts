import { LOCAL_PRINCIPAL, type Confine, type Confinement } from "../domain/principal.ts";
import type { PrincipalTerms } from "./principals.ts";
import type { Config } from "./schema.ts";
import { ANYWHERE } from "./setting.ts";

type Terms = Pick<Config, "allowDirs" | "http" | "oauth" | "principals" | "trustDirs">;

/**
 * Returns the folders for sessions of a principal. The operator has all of the server's, a named user those of `principals`,
 * anyone else the server's if vouched for by an authorization server (`oauth`), otherwise none.
 */
export function confinements({ allowDirs, http, oauth, principals, trustDirs }: Terms): Confine {
  const server = { allowDirs, trustDirs, spawnWrapper: [] };
  // Claude Code records trust of the local user only, so a server for others ignores that record.
  const local = { ...server, trustsRecord: http === undefined, operatorOptions: true };
  const subject = { ...server, trustsRecord: false, operatorOptions: false };
  return (principal) => {
    if (principal === LOCAL_PRINCIPAL) return local;
    const terms = Object.hasOwn(principals, principal) ? principals[principal] : undefined;
    if (terms) return { ...subject, ...ownConfinement(terms) };
    return oauth === undefined ? undefined : subject;
  };
}

function ownConfinement({ allowDirs, claudeConfigDir, operatorOptions, spawnWrapper, trustDirs }: PrincipalTerms) {
  return {
    operatorOptions,
    ...(allowDirs && { allowDirs: allowDirs === ANYWHERE ? [] : allowDirs }),
    ...(trustDirs && { trustDirs }),
    ...(claudeConfigDir !== undefined && { configDir: claudeConfigDir }),
    ...(spawnWrapper && { spawnWrapper }),
  } satisfies Partial<Confinement>;
}
