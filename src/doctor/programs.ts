import { parse } from "node:path";
import { z } from "zod";
import { bundledClaudes } from "../claude/binary.ts";
import { childEnvironment } from "../claude/environment.ts";
import { NoClaudeError } from "../claude/locate.ts";
import { outputOf } from "../claude/output-of.ts";
import { Versions } from "../claude/version.ts";
import { unknownVariables } from "../config/load.ts";
import { quoted, reinstall, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";

/** What runs sessions: Node, the settings, Claude Code, who pays for it, and its sandbox. */

/** As `engines` of package.json; a test compares them. */
const NODE = { major: 20, minor: 19 };
/** From here on Node has SQLite. */
const WITH_SQLITE = { major: 22, minor: 13 };

export async function checkNode({ environment, nodeVersion }: Machine): Promise<Finding[]> {
  const fix = environment["NVM_DIR"] === undefined ? "npm install -g n && n lts" : "nvm install --lts";
  if (!isAtLeast(nodeVersion, NODE)) {
    const text = `Node ${nodeVersion} is too old: 20.19 or newer is needed.`;
    return Promise.resolve([{ id: "node", level: "error", text, fix }]);
  }
  const note = isAtLeast(nodeVersion, WITH_SQLITE)
    ? ""
    : ", which needs the package @photostructure/sqlite for the store";
  return Promise.resolve([{ id: "node", level: "ok", text: `Node ${nodeVersion}${note}.` }]);
}

function isAtLeast(version: string, { major, minor }: typeof NODE): boolean {
  const [ours = 0, part = 0] = version.split(".").map(Number);
  return ours > major || (ours === major && part >= minor);
}

export async function checkSettings({ configProblem, environment, userFile }: Machine): Promise<Finding[]> {
  if (configProblem !== undefined) {
    const text = `Servers do not start with these settings: ${configProblem}`;
    return Promise.resolve([{ id: "settings", level: "error", text, fix: "claude-agents-mcp help serve" }]);
  }
  const unknown = unknownVariables(environment);
  if (unknown.length === 0) {
    const text = `The settings can be used.${userFile ? ` ${saidBy(userFile)}` : ""}`;
    return Promise.resolve([{ id: "settings", level: "ok", text }]);
  }
  return Promise.resolve(
    unknown.map((text): Finding => ({
      id: "settings",
      level: "warning",
      text,
      fix: `unset ${text.split(" ")[0] ?? ""}`,
    })),
  );
}

function saidBy({ bounds, keys, path }: NonNullable<Machine["userFile"]>): string {
  if (keys.length + bounds.length === 0) return `The user's file, ${path}, gives none.`;
  const limits = bounds.length === 0 ? "no bounds" : `bounds of ${bounds.join(", ")}`;
  return `The user's file, ${path}, gives ${[...keys, limits].join(", ")}.`;
}

/** The Claude Code of the sessions, its version, and the login that it would use. */
export async function checkClaude(machine: Machine): Promise<Finding[]> {
  const { cacheFolder, claude, environment } = machine;
  try {
    const { path = bundledClaudes()[0] ?? "", toInstall, warning, version } = await claude.locate();
    if (toInstall) return [{ id: "claude", level: "ok", text: NONE_YET }];
    const answer = version === undefined ? await new Versions({ cacheFolder }).of(path, environment) : { version };
    if ("problem" in answer) return [unusable(`Claude Code ${path} ${answer.problem}.`)];
    const text = `Claude Code ${answer.version}: ${path}.`;
    const found: Finding = warning === undefined ? { id: "claude", level: "ok", text } : untested(warning);
    return [found, ...(await checkLogin(machine, path))];
  } catch (error) {
    if (!(error instanceof NoClaudeError)) throw error;
    return [{ id: "claude", level: "error", text: error.message, fix: error.fix }];
  }
}

const NONE_YET =
  "There is no Claude Code of your own that can be used: the first session installs the Agent SDK's. Run doctor again after that: it then checks the login.";

function unusable(text: string): Finding {
  return { id: "claude", level: "error", text, fix: reinstall() };
}

function untested(warning: string): Finding {
  return { id: "claude", level: "warning", text: warning, fix: reinstall() };
}

const Status = z.object({
  loggedIn: z.boolean(),
  authMethod: z.string().exactOptional(),
  apiProvider: z.string().exactOptional(),
  subscriptionType: z.string().nullish(),
});
type Status = z.infer<typeof Status>;

const STATUS_MS = 8_000;
/** What is billed before a login. */
const KEYS = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"] as const;

async function checkLogin(machine: Machine, path: string): Promise<Finding[]> {
  const environment = childEnvironment(machine.environment, { depth: 0 });
  const status = await statusOf(path, environment);
  if (typeof status === "string") return [{ id: "login", level: "warning", text: status }];
  if (!status.loggedIn) {
    const text = "Claude Code is not logged in, and the environment has no key. Log in, or set ANTHROPIC_API_KEY.";
    return [{ id: "login", level: "error", text, fix: `${quoted(path)} auth login` }];
  }
  const ok: Finding = { id: "login", level: "ok", text: `Claude Code is logged in: billed is ${payer(status)}.` };
  const key = KEYS.find((name) => (environment[name] ?? "") !== "");
  if (key === undefined || status.authMethod === "third_party") return [ok];
  const own = await statusOf(path, Object.fromEntries(Object.entries(environment).filter(([name]) => !isKey(name))));
  if (typeof own === "string" || !own.loggedIn) return [{ ...ok, text: `Claude Code uses ${key}, which is billed.` }];
  const text = `${key} is set beside a login (${payer(own)}): sessions are billed to ${key}, not to the login.`;
  return [{ id: "login", level: "warning", text, fix: process.platform === "win32" ? `set ${key}=` : `unset ${key}` }];
}

function isKey(name: string): boolean {
  return KEYS.some((each) => each === name);
}

/** Nothing of the answer is shown that could be a secret. Asked in no project: its settings are not ours to run. */
async function statusOf(path: string, environment: Record<string, string>): Promise<Status | string> {
  const { root: cwd } = parse(process.execPath);
  const answer = await outputOf(path, ["auth", "status"], { environment, ms: STATUS_MS, cwd });
  if ("problem" in answer) return `Whether Claude Code is logged in is unknown: ${path} ${answer.problem}.`;
  try {
    return Status.parse(JSON.parse(answer.text));
  } catch {
    return `Whether Claude Code is logged in is unknown: ${path} auth status has an answer that is no JSON.`;
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

export async function checkSandbox({ config, sandboxProblem }: Machine): Promise<Finding[]> {
  const problem = await sandboxProblem();
  if (problem === undefined) return [{ id: "sandbox", level: "ok", text: "Claude Code's sandbox is available." }];
  const [install] = /apt-get install [\w -]+/.exec(problem) ?? [];
  const fix = install === undefined ? {} : { fix: `sudo ${install}` };
  const isRequired = config.sandbox === "required";
  const text = isRequired
    ? `--sandbox required, but no sandbox is available. ${problem}`
    : `No sandbox is available, which only --sandbox required and sessions that ask for one need. ${problem}`;
  return [{ id: "sandbox", level: isRequired ? "error" : "ok", text, ...fix }];
}
