import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import type { Account } from "../domain/plan.ts";
import { stat } from "../security/files/limited.ts";
import { configFolder, credentialOf, identify, LOGIN, payingVariable, stateFile } from "./child-environment.ts";
import { managedSettings, readContent } from "./login.ts";

/** Names the account that pays for a process, by variables and files, without any credential. */

type Variables = Readonly<Record<string, string>>;

const TOKEN = "CLAUDE_CODE_OAUTH_TOKEN";
const HELPER = "apiKeyHelper";

/** Facts of the state file and of settings. */
const Facts = z.object({
  oauthAccount: z
    .object({ accountUuid: z.string().min(1).optional().catch(undefined) })
    .catch({})
    .default({}),
  /** Set by a login that pays by use. */
  primaryApiKey: z
    .unknown()
    .optional()
    .transform((key) => typeof key === "string" && key !== ""),
  [HELPER]: z.string().min(1).optional().catch(undefined),
  env: z.record(z.string(), z.unknown()).catch({}).default({}),
});
type Facts = z.infer<typeof Facts>;

/**
 * Returns the account of a process with this environment. Its id is the account uuid that the login has left in the
 * configuration folder, a digest of the credential, or the folder.
 */
export async function readAccount(environment: Variables): Promise<Account> {
  const folder = configFolder(environment);
  const user = await readFacts(join(folder, "settings.json"));
  const managed = await readFacts(managedSettings());
  // Claude Code replaces variables by those of settings.
  const variables = { ...environment, ...textsIn(user.env), ...textsIn(managed.env) };
  const variable = payingVariable(variables);
  const helper = managed[HELPER] ?? user[HELPER];
  if (helper !== undefined && (variable === undefined || variable === TOKEN))
    return { id: digest(HELPER, [folder, helper]), paidBy: HELPER, configFolder: folder, hasWindows: false };
  const { paidBy } = identify(variables);
  if (variable !== undefined) {
    const id = digest(
      variable,
      Object.entries(credentialOf(variables))
        .map(([name, value]) => `${name}=${value}`)
        .toSorted(),
    );
    return { id, paidBy: paidBy === LOGIN ? variable : paidBy, configFolder: folder, hasWindows: variable === TOKEN };
  }
  const { oauthAccount, primaryApiKey: paysByUse } = await readFacts(stateFile(environment));
  const { accountUuid: uuid } = oauthAccount;
  const id = uuid === undefined ? `folder:${folder}` : `account:${uuid}`;
  return { id, paidBy, configFolder: folder, hasWindows: !paysByUse };
}

function digest(name: string, parts: readonly unknown[]): string {
  return `${name}:${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)}`;
}

function textsIn(env: Facts["env"]): Variables {
  const texts = Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(texts);
}

/** Last read facts by file, with the time of the file's last change, because the state file can have megabytes. */
const known = new Map<string, { readonly changedMs: number; readonly facts: Facts }>();

async function readFacts(file: string): Promise<Facts> {
  const changedMs = await stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );
  const before = known.get(file);
  if (changedMs === undefined) return Facts.parse({});
  if (before?.changedMs === changedMs) return before.facts;
  const facts = Facts.parse((await readContent(file)) ?? {});
  known.set(file, { changedMs, facts });
  return facts;
}
