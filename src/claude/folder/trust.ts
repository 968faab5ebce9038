import { dirname, join } from "node:path";
import { z } from "zod";
import { PRODUCT } from "../../domain/names.ts";
import type { Confinement } from "../../domain/principal.ts";
import { exists, mkdir, otherwise, realpath } from "../../security/files/limited.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import { configFolder, MAX_STATE_BYTES, stateFile } from "../environment.ts";
import type { SessionOptions } from "../../domain/options.ts";

/**
 * Settings of a repository can run commands without approval: hooks, servers of .mcp.json, apiKeyHelper. They
 * do so only in directories that Claude Code's own trust record or the operator (--trust-dir) names.
 */

const WHAT_A_REPOSITORY_CAN_RUN = [
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".claude/scheduled_tasks.json",
  ".mcp.json",
];

const StateFile = z.looseObject({
  projects: z.record(z.string(), z.looseObject({ hasTrustDialogAccepted: z.boolean().optional() })).optional(),
});

type Environment = Readonly<Record<string, string | undefined>>;

/** Whose word counts: the operator's, and Claude Code's where the operator accepts it. */
type Trust = Pick<Confinement, "trustDirs" | "trustsRecord">;

export async function isTrusted(
  cwd: string,
  { trustDirs, trustsRecord }: Trust,
  environment: Environment,
): Promise<boolean> {
  const recorded = trustsRecord ? await trustedByClaude(environment) : [];
  return (await isNamed(cwd, trustDirs)) || (await isBelow(cwd, recorded));
}

/** By the operator, it or a folder above it. */
async function isNamed(cwd: string, trustDirs: readonly string[]): Promise<boolean> {
  return isBelow(cwd, await realPaths(trustDirs));
}

async function isBelow(cwd: string, folders: readonly string[]): Promise<boolean> {
  return ancestors(await realpath(cwd)).some((folder) => folders.includes(folder));
}

/** By each of several servers. */
export async function isTrustedByAll(cwd: string, all: readonly Trust[], environment: Environment): Promise<boolean> {
  for (const each of all) if (!(await isTrusted(cwd, each, environment))) return false;
  return true;
}

/** The files in `cwd` and above it, up to its repository root, that are left out in an untrusted directory. */
export async function whatWouldRun(cwd: string): Promise<string[]> {
  const found: string[] = [];
  for (const folder of await foldersOfRepository(await realpath(cwd))) {
    for (const name of WHAT_A_REPOSITORY_CAN_RUN) {
      const file = join(folder, name);
      if (await exists(file)) found.push(file);
    }
  }
  return found;
}

/** Up to its root. Outside a repository Claude Code looks at the directory itself only. */
async function foldersOfRepository(folder: string): Promise<string[]> {
  const folders = ancestors(folder);
  for (const [index, each] of folders.entries()) {
    if (await exists(join(each, ".git"))) return folders.slice(0, index + 1);
  }
  return [folder];
}

/**
 * An empty folder that stands in for the project's configuration (SDK option projectConfigRoot): hooks, permissions,
 * .mcp.json and agents come from there, CLAUDE.md still from the working directory. It lies in the user's own
 * configuration folder because no other user can put settings there, as they could below /tmp.
 */
export async function emptyProject(environment: Environment): Promise<string> {
  const folder = join(configFolder(environment), PRODUCT, "untrusted");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

async function trustedByClaude(environment: Environment): Promise<string[]> {
  const text = await readSmall(stateFile(environment), MAX_STATE_BYTES).catch(otherwise("{}"));
  const parsed = StateFile.safeParse(parseJson(text));
  if (!parsed.success) return [];
  const projects = Object.entries(parsed.data.projects ?? {});
  return projects.filter(([, project]) => project.hasTrustDialogAccepted === true).map(([folder]) => folder);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function realPaths(folders: readonly string[]): Promise<string[]> {
  return Promise.all(folders.map(async (folder) => realpath(folder).catch(() => folder)));
}

function ancestors(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}

/**
 * Allow rules of `.claude/settings.json` count in Claude Code only where its own trust record names the folder; --trust-dir names it
 * to this server. The operator has let hooks of the same file run there, without approval as well: the rules are passed on.
 */

/** Far more than a file written by hand. */
const MAX_SETTINGS_BYTES = 1_048_576;

const SettingsFile = z.looseObject({
  permissions: z.looseObject({ allow: z.array(z.string()).exactOptional() }).exactOptional(),
});

interface Project extends Pick<SessionOptions, "cwd" | "settingSources"> {
  /** Whether its settings are read at all. */
  readonly mayRun: boolean;
  /** A rule that allows Edit is a folder there that commands may write: the operator alone says which. */
  readonly isSandboxed: boolean;
}

/** Those of the folder, where each of the servers names it or a folder above it. */
export async function projectAllowRules(
  { cwd, isSandboxed, mayRun, settingSources = ["project"] }: Project,
  all: readonly { readonly trustDirs: readonly string[] }[],
): Promise<string[]> {
  if (!mayRun || isSandboxed || !settingSources.includes("project")) return [];
  for (const { trustDirs } of all) if (!(await isNamed(cwd, trustDirs))) return [];
  const text = await readSmall(join(cwd, ".claude", "settings.json"), MAX_SETTINGS_BYTES).catch(otherwise(""));
  return SettingsFile.safeParse(jsonOf(text)).data?.permissions?.allow ?? [];
}

/** Claude Code says itself what is wrong with a file that cannot be read. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
