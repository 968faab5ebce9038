import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { realpath } from "../../security/files/limited.ts";
import { parseRule, type Rule } from "../../domain/approvals/rule.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { isInside, findRealPath } from "../../security/paths.ts";
import { programFolders } from "../../security/find-program.ts";
import { configFolder, stateFile } from "../child-environment.ts";
import { toClaudeRules, rulePath } from "../rules.ts";
import { checkSandboxedOptions, claudeOptions } from "./sandboxed-options.ts";
import { checkUserSettings } from "./user-settings.ts";

/**
 * Confines a session with `--sandbox required`: commands by Claude Code's own sandbox, Claude Code's own tools by the settings
 * that come nearest. The only definition of the paths and hosts open to a session.
 */

/** Operator's settings. Every path is absolute. */
export interface SandboxPolicy {
  /** Hosts open to commands; `*.example.com` matches every subdomain. */
  readonly domains: readonly string[];
  /** Paths that no session may read or write, even inside its folders. */
  readonly closed: readonly string[];
  /** Paths that no session may write: the code run by this server, the settings of Claude Code. */
  readonly writeProtected: readonly string[];
  /** Claude configuration folders of all principals, with logins and transcripts that no session may read. */
  readonly configFolders: readonly string[];
  /** Folders in which settings of a project may run commands. */
  readonly trusted: readonly string[];
}

interface SandboxInput {
  readonly options: SessionOptions;
  readonly environment: Readonly<Record<string, string>>;
  readonly sandboxPolicy: SandboxPolicy;
  readonly rules: { readonly ask: readonly Rule[]; readonly deny: readonly Rule[] };
}

/** Additions to the options of a Claude Code process. */
export interface SandboxPlan {
  readonly environment: Record<string, string>;
  readonly sandbox: NonNullable<Options["sandbox"]>;
  /** Additional rules for Claude Code's own tools. */
  readonly ask: readonly string[];
  readonly deny: readonly string[];
  /** Value of `settings.permissions`. Deny rules there close files to commands too; `disallowedTools` alone does not. */
  readonly permissions: { readonly blockWritesOutsideWorkingDirectories: true; readonly deny?: string[] };
}

/** Throws PERMISSION_DENIED if the session cannot run in the sandbox. */
export async function planSandbox({ environment, sandboxPolicy, options, rules }: SandboxInput): Promise<SandboxPlan> {
  checkSandboxedOptions(claudeOptions(options));
  const sources = options.settingSources ?? ["user"];
  if (sources.includes("user")) await checkUserSettings(configFolder(environment));
  const folders = await findFolders(options);
  const deny = parseDenyRules(options, rules.deny);
  const paths = toClaudeRules(
    deny.filter(({ content, toolName }) => content !== undefined && PATH_TOOLS.has(toolName)),
    resolve(options.cwd),
  );
  const own = await findExecutedPaths(folders, environment, sandboxPolicy);
  const secrets = [...sandboxPolicy.configFolders, configFolder(environment)].flatMap(secretsIn);
  const closed = [...new Set([...sandboxPolicy.closed, ...secrets, stateFile(environment)])];
  const deniesEdit = deny.some(({ content, toolName }) => toolName === "Edit" && content === undefined);
  return {
    environment: { ...environment, ...(await withoutSessionPrograms(environment, folders)) },
    sandbox: buildSandbox(options, {
      mayAutoAllow: ![...rules.ask, ...deny].some(({ toolName }) => SHELL_TOOLS.has(toolName)),
      domains: sandboxPolicy.domains,
      denyRead: closed,
      denyWrite: [
        ...closed,
        ...sandboxPolicy.writeProtected,
        configFolder(environment),
        ...own,
        ...(deniesEdit ? folders : []),
      ],
    }),
    ask: NETWORK_TOOLS,
    deny: [...UNSANDBOXED_TOOLS, ...fileRules(folders, own)],
    permissions: { blockWritesOutsideWorkingDirectories: true, ...(paths.length > 0 && { deny: paths }) },
  };
}

/**
 * True if the `trustDirs` of each member of `all` name exactly this folder. A trusted parent is not enough, because settings of
 * a project run commands outside the sandbox.
 */
export async function isNamedByAll(cwd: string, all: readonly { readonly trustDirs: readonly string[] }[]) {
  const real = await realpath(cwd);
  const named = all.map(async ({ trustDirs }) => {
    const folders = await Promise.all(trustDirs.map(async (folder) => realpath(folder).catch(() => folder)));
    return folders.includes(real);
  });
  return (await Promise.all(named)).every(Boolean);
}

const PATH_TOOLS: ReadonlySet<string> = new Set(["Edit", "Read"]);
const SHELL_TOOLS: ReadonlySet<string> = new Set(["Bash", "Monitor", "PowerShell"]);

/**
 * Tools of Claude Code that reach beyond the machine from outside the sandbox. Need approval in every mode, so that this
 * server's rules decide.
 */
const NETWORK_TOOLS = ["Artifact", "RemoteTrigger", "SendUserFile", "WebFetch", "WebSearch"];

/** Tools that start programs outside the sandbox. */
const UNSANDBOXED_TOOLS = ["LSP", "PowerShell", "REPL"];

/**
 * Files that other programs execute. In a session's folders, Claude Code's sandbox refuses writes of commands to these files;
 * `fileRules` refuses writes of file tools, which run outside the sandbox.
 */
const EXECUTED_FILES = [
  ".bash_profile",
  ".bashrc",
  ".claude/agents/**",
  ".claude/commands/**",
  ".claude/hooks/**",
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".claude/skills/**",
  ".git/config",
  ".git/hooks/**",
  ".gitconfig",
  ".gitmodules",
  ".idea/**",
  ".mcp.json",
  ".profile",
  ".ripgreprc",
  ".vscode/**",
  ".zprofile",
  ".zshrc",
];

function fileRules(folders: readonly string[], own: readonly string[]): string[] {
  const inFolders = folders.flatMap((folder) => EXECUTED_FILES.map((file) => `Edit(${rulePath(folder)}/${file})`));
  return [...inFolders, ...own.flatMap((path) => [`Edit(${rulePath(path)})`, `Edit(${rulePath(path)}/**)`])];
}

/** Returns the files with logins and conversations in Claude Code's configuration folder. */
function secretsIn(folder: string): string[] {
  return [".credentials.json", "history.jsonl", "projects"].map((name) => join(folder, name));
}

/** Includes real paths, because a session's folder may be named by a link. */
async function findFolders({ additionalDirectories = [], cwd }: SessionOptions): Promise<string[]> {
  const named = [cwd, ...additionalDirectories].map((folder) => resolve(cwd, folder));
  const real = await Promise.all(named.map(async (folder) => findRealPath(folder)));
  return [...new Set([...named, ...real.filter((folder) => folder !== undefined)])];
}

/**
 * Returns the paths in the session's folders that take effect outside the sandbox without another approval: folders of `PATH`,
 * whose programs Claude Code and this server start too, and settings of projects that the operator trusts.
 */
async function findExecutedPaths(
  folders: readonly string[],
  { PATH = "" }: SandboxInput["environment"],
  { trusted }: SandboxPolicy,
) {
  const programs = PATH.split(delimiter).filter((folder) => isAbsolute(folder));
  const above = [...new Set(trusted.flatMap((folder) => ancestors(folder)))];
  const settings = above.flatMap((folder) => [join(folder, ".claude"), join(folder, ".mcp.json")]);
  const real = await Promise.all([...programs, ...settings].map(async (path) => (await findRealPath(path)) ?? path));
  return [...new Set(real)].filter((path) => folders.some((folder) => isInside(path, folder)));
}

function ancestors(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}

/** Removes the session's folders from `PATH`, because programs there would be started outside the sandbox, even `bwrap`. */
async function withoutSessionPrograms({ PATH }: SandboxInput["environment"], folders: readonly string[]) {
  return PATH === undefined ? {} : { PATH: (await programFolders(PATH, folders)).join(delimiter) };
}

/** Returns the session's deny rules that can be parsed, and the operator's. */
function parseDenyRules({ disallowedTools = [] }: SessionOptions, deny: readonly Rule[]): Rule[] {
  const own = disallowedTools.flatMap((text) => {
    const read = parseRule(text, "deny");
    return read.ok ? [read.rule] : [];
  });
  return [...own, ...deny];
}

interface Bounds {
  readonly mayAutoAllow: boolean;
  readonly domains: readonly string[];
  readonly denyRead: readonly string[];
  readonly denyWrite: readonly string[];
}

/**
 * Sets every switch, because an unset switch follows other settings. Keeps stricter settings of the session's own sandbox;
 * looser settings have been refused.
 */
function buildSandbox({ sandbox: own = {} }: SessionOptions, bounds: Bounds): SandboxPlan["sandbox"] {
  const { credentials, filesystem = {}, network = {} } = own;
  return {
    enabled: true,
    failIfUnavailable: true,
    autoAllowBashIfSandboxed: bounds.mayAutoAllow && own.autoAllowBashIfSandboxed === true,
    allowUnsandboxedCommands: false,
    enableWeakerNestedSandbox: false,
    allowNestedUserNamespaces: false,
    enableWeakerNetworkIsolation: false,
    allowAppleEvents: false,
    network: {
      allowedDomains: [...bounds.domains],
      ...(network.deniedDomains && { deniedDomains: network.deniedDomains }),
      // Otherwise Claude Code asks about a host outside the list, and lets the command through in `bypassPermissions`.
      strictAllowlist: true,
      allowAllUnixSockets: false,
      allowLocalBinding: false,
    },
    filesystem: {
      disabled: false,
      denyRead: [...bounds.denyRead, ...(filesystem.denyRead ?? [])],
      denyWrite: [...bounds.denyWrite, ...(filesystem.denyWrite ?? [])],
    },
    ...(credentials && { credentials }),
    ...(own.ignoreViolations && { ignoreViolations: own.ignoreViolations }),
  };
}
