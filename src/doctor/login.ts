import { parse } from "node:path";
import { z } from "zod";
import { childEnvironment, payingVariable } from "../claude/child-environment.ts";
import { INSTALL } from "../claude/locate.ts";
import { findLogin } from "../claude/login.ts";
import { runClaude } from "../claude/run-claude.ts";
import { clientEntries } from "./clients.ts";
import { quoted, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";

/** Finds the login or key that pays for sessions. */

/** Searches like Claude Code, because none is installed yet to be asked. */
export async function searchLogin(machine: Machine): Promise<Finding> {
  const { files, found } = await findLogin(childEnvironment(machine.environment, { depth: 0 }));
  if (found !== undefined) {
    const text = `Claude Code will find a login or a key: ${found}. Run doctor again once it is installed: it then asks Claude Code.`;
    return { id: "login", level: "ok", text };
  }
  const looked = `The environment has no ANTHROPIC_API_KEY, and no login is in ${files.join(", ")}.`;
  const text = `No login and no key of Claude Code were found; without one every session fails. ${looked}`;
  return { id: "login", ...(await levelByEntries(machine, text)), fix: `${INSTALL} && claude auth login` };
}

/** Lowers the level if entries of clients give a key, because a key pays for sessions of its client only. */
async function levelByEntries(machine: Machine, text: string): Promise<Pick<Finding, "level" | "text">> {
  const entries = await clientEntries(machine);
  const paid = entries.flatMap(({ aim, env, target }) => {
    // A variable of an entry does not reach another machine.
    const variable = target.kind === "ssh" ? undefined : payingVariable(env);
    return variable === undefined ? [] : [`${aim.client.title} (${variable})`];
  });
  if (paid.length === 0) return { level: "error", text };
  return { level: "warning", text: `${text} Entries of clients give one, for their own sessions: ${paid.join(", ")}.` };
}

const Status = z.object({
  loggedIn: z.boolean(),
  authMethod: z.string().exactOptional(),
  apiProvider: z.string().exactOptional(),
  subscriptionType: z.string().nullish(),
});
type Status = z.infer<typeof Status>;

const STATUS_MS = 8_000;
/** Variables that take precedence over a login. */
const KEYS = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"] as const;

/** Asks Claude Code at `path`. */
export async function checkLogin(machine: Machine, path: string): Promise<Finding[]> {
  const environment = childEnvironment(machine.environment, { depth: 0 });
  const status = await askStatus(path, environment);
  if (typeof status === "string") return [{ id: "login", level: "warning", text: status }];
  if (!status.loggedIn) {
    const text = "Claude Code is not logged in, and the environment has no key. Log in, or set ANTHROPIC_API_KEY.";
    return [{ id: "login", ...(await levelByEntries(machine, text)), fix: `${quoted(path)} auth login` }];
  }
  const ok: Finding = {
    id: "login",
    level: "ok",
    text: `Claude Code is logged in. Sessions are billed to ${payer(status)}.`,
  };
  const key = KEYS.find((name) => (environment[name] ?? "") !== "");
  if (key === undefined || status.authMethod === "third_party") return [ok];
  const own = await askStatus(path, Object.fromEntries(Object.entries(environment).filter(([name]) => !isKey(name))));
  if (typeof own === "string" || !own.loggedIn) return [{ ...ok, text: `Claude Code uses ${key}, which is billed.` }];
  const text = `${key} is set beside a login (${payer(own)}): sessions are billed to ${key}, not to the login.`;
  return [{ id: "login", level: "warning", text, fix: process.platform === "win32" ? `set ${key}=` : `unset ${key}` }];
}

function isKey(name: string): boolean {
  return KEYS.some((each) => each === name);
}

/**
 * Never shows the raw answer, because secrets could be in it. Runs outside projects, so that no settings of a project apply.
 */
async function askStatus(path: string, environment: Record<string, string>): Promise<Status | string> {
  const { root: cwd } = parse(process.execPath);
  const answer = await runClaude(path, ["auth", "status"], { environment, ms: STATUS_MS, cwd });
  if ("problem" in answer) return `Whether Claude Code is logged in is unknown: ${path} ${answer.problem}.`;
  try {
    return Status.parse(JSON.parse(answer.text));
  } catch {
    return `Whether Claude Code is logged in is unknown: ${path} auth status gave an answer that is not JSON.`;
  }
}

const PAYERS: Readonly<Record<string, string>> = {
  api_key: "the API key",
  api_key_helper: "the key of apiKeyHelper",
  oauth_token: "the account of CLAUDE_CODE_OAUTH_TOKEN",
};

function payer({ apiProvider = "", authMethod = "unknown", subscriptionType }: Status): string {
  if (authMethod === "third_party") return `the account at ${apiProvider}`;
  const plan = typeof subscriptionType === "string" ? `, plan ${subscriptionType}` : "";
  return PAYERS[authMethod] ?? `the ${authMethod} account${plan}`;
}
