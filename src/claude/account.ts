import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import type { Account } from "../domain/plan.ts";
import type { Identity, Payer } from "../domain/process.ts";
import { stat } from "../security/files/limited.ts";
import { configFolder, credentialOf, identify, LOGIN, payingVariable, stateFile } from "./child-environment.ts";
import { managedSettings, readContent } from "./login.ts";

/** Names the account and the payer of a process, by variables and files, without any credential. */

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
  const { folder, helper, uuid, ...found } = await readPayment(environment);
  const { kind: paidBy, variable, variables, paysByUse } = found;
  if (helper !== undefined)
    return { id: digest(HELPER, [folder, helper]), paidBy, configFolder: folder, hasWindows: false };
  if (variable !== undefined) {
    const id = digest(variable, textsOf(credentialOf(variables)));
    return { id, paidBy, configFolder: folder, hasWindows: variable === TOKEN };
  }
  const id = uuid === undefined ? `folder:${folder}` : `account:${uuid}`;
  return { id, paidBy, configFolder: folder, hasWindows: !paysByUse };
}

/**
 * Names the account of a cloud: project, profile or static key, without paths and without credentials that are issued anew for
 * each machine.
 */
const CLOUD_ACCOUNTS: Readonly<Record<string, readonly string[]>> = {
  CLAUDE_CODE_USE_BEDROCK: ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"],
  CLAUDE_CODE_USE_VERTEX: ["ANTHROPIC_VERTEX_PROJECT_ID"],
  CLAUDE_CODE_USE_FOUNDRY: ["ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL"],
  CLAUDE_CODE_USE_ANTHROPIC_AWS: ["ANTHROPIC_AWS_WORKSPACE_ID"],
  CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD: ["ANTHROPIC_GOOGLE_CLOUD_PROJECT", "ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID"],
  CLAUDE_CODE_USE_MANTLE: [],
};

/** Returns the payer of a process with this environment, comparable on every machine. */
export async function readPayer(environment: Variables): Promise<Payer> {
  const { helper, kind, uuid, variable, variables } = await readPayment(environment);
  // Nothing but the helper itself knows the account.
  if (helper !== undefined) return { kind };
  if (variable === undefined) return { kind, ...(uuid !== undefined && { account: digest("account", [uuid]) }) };
  // Keys of a role are temporary, and come with a token.
  const isTemporary = (name: string) => name === "AWS_ACCESS_KEY_ID" && (variables["AWS_SESSION_TOKEN"] ?? "") !== "";
  const parts = (CLOUD_ACCOUNTS[variable] ?? [variable]).flatMap((name) => {
    const value = variables[name] ?? "";
    return value === "" || isTemporary(name) ? [] : [`${name}=${value}`];
  });
  return { kind, ...(parts.length > 0 && { account: digest("account", parts) }) };
}

/** Returns configuration and payer of a process with this environment, at the node named `node`. */
export async function readIdentity(environment: Variables, { node }: { readonly node?: string | undefined }) {
  const payer = await readPayer(environment);
  return { ...identify(environment), payer, ...(node !== undefined && { node }) } satisfies Identity;
}

/** Reads everything that says who pays. `helper` is set only if it pays; `variable` is the paying one. */
async function readPayment(environment: Variables) {
  const folder = configFolder(environment);
  const user = await readFacts(join(folder, "settings.json"));
  const managed = await readFacts(managedSettings());
  // Claude Code replaces variables by those of settings.
  const variables = { ...environment, ...textsIn(user.env), ...textsIn(managed.env) };
  const variable = payingVariable(variables);
  const helper = managed[HELPER] ?? user[HELPER];
  const about = { folder, variable, variables, uuid: undefined, paysByUse: false };
  if (helper !== undefined && (variable === undefined || variable === TOKEN)) return { ...about, helper, kind: HELPER };
  const { paidBy } = identify(variables);
  const kind = variable !== undefined && paidBy === LOGIN ? variable : paidBy;
  if (variable !== undefined) return { ...about, helper: undefined, kind };
  const { oauthAccount, primaryApiKey: paysByUse } = await readFacts(stateFile(environment));
  return { ...about, helper: undefined, kind, uuid: oauthAccount.accountUuid, paysByUse };
}

function textsOf(variables: Variables): string[] {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}`)
    .toSorted();
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
