import { dirname, join } from "node:path";
import { z } from "zod";
import { parseJson } from "../../domain/json.ts";
import { PRODUCT } from "../../domain/names.ts";
import type { Confinement } from "../../domain/principal.ts";
import { exists, mkdir, otherwise, realpath } from "../../security/files/limited.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import { configFolder, MAX_STATE_BYTES, stateFile } from "../child-environment.ts";
import type { SessionOptions } from "../../domain/options.ts";

/**
 * Settings of a repository can run commands without approval: hooks, servers of `.mcp.json`, `apiKeyHelper`. Allowed only in
 * directories named by Claude Code's own trust record or by the operator (`--trust-dir`).
 */

const EXECUTABLE_SETTINGS = [
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".claude/scheduled_tasks.json",
  ".mcp.json",
];

const StateFile = z.looseObject({
  projects: z.record(z.string(), z.looseObject({ hasTrustDialogAccepted: z.boolean().optional() })).optional(),
});

type Environment = Readonly<Record<string, string | undefined>>;

/** Accepted sources of trust: the operator, and Claude Code's record if the operator accepts the record. */
type Trust = Pick<Confinement, "trustDirs" | "trustsRecord">;

export async function isTrusted(
  cwd: string,
  { trustDirs, trustsRecord }: Trust,
  environment: Environment,
): Promise<boolean> {
  const recorded = trustsRecord ? await readTrustedFolders(environment) : [];
  return (await isTrustedByOperator(cwd, trustDirs)) || (await isBelow(cwd, recorded));
}

/** True if the operator names the folder or a parent. */
async function isTrustedByOperator(cwd: string, trustDirs: readonly string[]): Promise<boolean> {
  return isBelow(cwd, await realPaths(trustDirs));
}

async function isBelow(cwd: string, folders: readonly string[]): Promise<boolean> {
  return ancestors(await realpath(cwd)).some((folder) => folders.includes(folder));
}

/** True if each server trusts the folder. */
export async function isTrustedByAll(cwd: string, all: readonly Trust[], environment: Environment): Promise<boolean> {
  for (const each of all) if (!(await isTrusted(cwd, each, environment))) return false;
  return true;
}

/** Returns the files from `cwd` up to its repository root that are ignored in an untrusted directory. */
export async function findExecutableSettings(cwd: string): Promise<string[]> {
  const found: string[] = [];
  for (const folder of await findRepositoryFolders(await realpath(cwd))) {
    for (const name of EXECUTABLE_SETTINGS) {
      const file = join(folder, name);
      if (await exists(file)) found.push(file);
    }
  }
  return found;
}

/** Returns the folders up to the root. Outside a repository, Claude Code looks only at the directory itself. */
async function findRepositoryFolders(folder: string): Promise<string[]> {
  const folders = ancestors(folder);
  for (const [index, each] of folders.entries()) {
    if (await exists(join(each, ".git"))) return folders.slice(0, index + 1);
  }
  return [folder];
}

/**
 * Creates an empty folder to replace the project's configuration (SDK option `projectConfigRoot`): hooks, permissions,
 * `.mcp.json` and agents come from there, `CLAUDE.md` still from the working directory. Lies in the user's own configuration
 * folder, because another user could put settings into a folder below /tmp.
 */
export async function createEmptyProject(environment: Environment): Promise<string> {
  const folder = join(configFolder(environment), PRODUCT, "untrusted");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

async function readTrustedFolders(environment: Environment): Promise<string[]> {
  const text = await readSmall(stateFile(environment), MAX_STATE_BYTES).catch(otherwise("{}"));
  const parsed = StateFile.safeParse(parseJson(text));
  if (!parsed.success) return [];
  const projects = Object.entries(parsed.data.projects ?? {});
  return projects.filter(([, project]) => project.hasTrustDialogAccepted === true).map(([folder]) => folder);
}

async function realPaths(folders: readonly string[]): Promise<string[]> {
  return Promise.all(folders.map(async (folder) => realpath(folder).catch(() => folder)));
}

function ancestors(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}

/**
 * Passes on allow rules of `.claude/settings.json`: Claude Code applies them only if its own trust record names the folder, and
 * `--trust-dir` names the folder only to this server. The operator already lets hooks of the file run without approval.
 */

/** Maximum size of a settings file, bytes: far more than written by hand. */
const MAX_SETTINGS_BYTES = 1_048_576;

const SettingsFile = z.looseObject({
  permissions: z.looseObject({ allow: z.array(z.string()).exactOptional() }).exactOptional(),
});

interface Project extends Pick<SessionOptions, "cwd" | "settingSources"> {
  /** True if settings of the project are read at all. */
  readonly mayRun: boolean;
  /** True in a sandbox, where a rule that allows Edit opens a folder to commands: only the operator may do so. */
  readonly isSandboxed: boolean;
}

/** Returns the rules of the folder if each server names the folder or a parent. */
export async function projectAllowRules(
  { cwd, isSandboxed, mayRun, settingSources = ["project"] }: Project,
  all: readonly { readonly trustDirs: readonly string[] }[],
): Promise<string[]> {
  if (!mayRun || isSandboxed || !settingSources.includes("project")) return [];
  for (const { trustDirs } of all) if (!(await isTrustedByOperator(cwd, trustDirs))) return [];
  const text = await readSmall(join(cwd, ".claude", "settings.json"), MAX_SETTINGS_BYTES).catch(otherwise(""));
  return SettingsFile.safeParse(parseSettings(text)).data?.permissions?.allow ?? [];
}

/** Ignores invalid JSON, because Claude Code itself reports such a file. */
function parseSettings(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
