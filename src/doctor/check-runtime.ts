import { bundledClaudes } from "../claude/claude-files.ts";
import { NoClaudeError } from "../claude/locate.ts";
import { Versions } from "../claude/version.ts";
import { ConfigError } from "../config/error.ts";
import { unknownVariables } from "../config/load.ts";
import { refuseServerSettings } from "../config/server-settings.ts";
import { userFilePath } from "../config/state-folder.ts";
import { reasonInSettings } from "../proxy/own-server.ts";
import { reinstall, type Finding } from "./finding.ts";
import { checkLogin, searchLogin } from "./login.ts";
import type { Machine } from "./machine.ts";

/** Checks programs and settings: Node, settings, Claude Code, sandbox. */

/** Equal to `engines` of package.json; a test compares both. */
const NODE = { major: 20, minor: 19 };
/** First version of Node with SQLite. */
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

export async function checkSettings({ config, configProblem, environment, userFile }: Machine): Promise<Finding[]> {
  if (configProblem !== undefined) {
    const text = `Servers do not start with these settings: ${configProblem}`;
    return Promise.resolve([{ id: "settings", level: "error", text, fix: "claude-agents-mcp help serve" }]);
  }
  const unknown = unknownVariables(environment);
  const refused = refusedClients(environment, config);
  if (unknown.length === 0 && refused === undefined) {
    const text = `The settings can be used.${userFile ? ` ${userFileText(userFile)}` : ""}`;
    return Promise.resolve([{ id: "settings", level: "ok", text }]);
  }
  return Promise.resolve([
    ...(refused ? [refused] : []),
    ...unknown.map((text): Finding => ({
      id: "settings",
      level: "warning",
      text,
      fix: `unset ${text.split(" ")[0] ?? ""}`,
    })),
  ]);
}

/** Finds variables for the server in the environment, because a client of a daemon is refused with them. */
function refusedClients(env: Machine["environment"], { daemon, http }: Machine["config"]): Finding | undefined {
  if (http !== undefined || daemon === "off") return undefined;
  if (reasonInSettings({ argv: [], env, platform: process.platform }) !== undefined) return undefined;
  try {
    refuseServerSettings({ argv: [], env }, userFilePath(env));
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const names = error.message.split(" belong")[0]?.replaceAll(",", "") ?? "";
    const text = `A client that is started with this environment is refused: ${error.message}`;
    return { id: "settings", level: "warning", text, fix: `unset ${names}` };
  }
}

function userFileText({ bounds, keys, path }: NonNullable<Machine["userFile"]>): string {
  if (keys.length + bounds.length === 0) return `The user's file, ${path}, gives none.`;
  const limits = bounds.length === 0 ? "no bounds" : `bounds of ${bounds.join(", ")}`;
  return `The user's file, ${path}, gives ${[...keys, limits].join(", ")}.`;
}

/** Checks the Claude Code of sessions: path, version and login. */
export async function checkClaude(machine: Machine): Promise<Finding[]> {
  const { cacheFolder, claude, environment } = machine;
  try {
    const { path = bundledClaudes()[0] ?? "", toInstall, warning, version } = await claude.locate();
    if (toInstall) return [{ id: "claude", level: "ok", text: NONE_YET }, await searchLogin(machine)];
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

const NONE_YET = "There is no Claude Code of your own that can be used: the first session installs the Agent SDK's.";

function unusable(text: string): Finding {
  return { id: "claude", level: "error", text, fix: reinstall() };
}

function untested(warning: string): Finding {
  return { id: "claude", level: "warning", text: warning, fix: reinstall() };
}

export async function checkSandbox({ config, sandboxProblem }: Machine): Promise<Finding[]> {
  const problem = await sandboxProblem();
  if (problem === undefined) return [{ id: "sandbox", level: "ok", text: "Claude Code's sandbox is available." }];
  const [install] = /apt-get install [\w -]+/.exec(problem) ?? [];
  const fix = install === undefined ? {} : { fix: `sudo ${install}` };
  const isRequired = config.sandbox === "required";
  const text = isRequired
    ? `--sandbox required, but no sandbox is available. ${problem}`
    : `No sandbox is available. Only --sandbox required and sessions that ask for a sandbox need it. ${problem}`;
  return [{ id: "sandbox", level: isRequired ? "error" : "ok", text, ...fix }];
}
