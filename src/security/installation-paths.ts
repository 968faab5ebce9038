import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir, tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stat } from "./files/limited.ts";
import { MARKER_FILE } from "./files/volume-marker.ts";
import { CLAUDE_FOLDER, CLAUDE_RECORD, SERVER_CODE, STARTED_PROGRAMS, type OwnedPath } from "./protected-paths.ts";

/** Table of the paths that this installation owns, as named by the configuration and the system. Each has a reason. */

interface Profile {
  readonly claudeConfigDir?: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
}

interface Principal {
  readonly claudeConfigDir?: string | undefined;
  readonly spawnWrapper?: readonly string[] | undefined;
}

/** Settings with paths of files of the server. */
interface Settings {
  readonly auditLog?: string | undefined;
  readonly principals: Readonly<Record<string, Principal>>;
  readonly profiles: Readonly<Record<string, Profile>>;
  readonly tokenFile?: string | undefined;
  readonly decideTokenFile?: string | undefined;
  readonly sharedFolders: readonly string[];
}

export interface Installation {
  readonly settings: Settings;
  /** Files of approvers: secrets, and the answers given. */
  readonly approvers: readonly { readonly path: string; readonly why: string }[];
  /** Files of settings; need not exist. */
  readonly configFiles: readonly string[];
  readonly stateFolder: string;
  /** Folders in which daemons listen. */
  readonly socketFolders: readonly string[];
  /** File of the store; `undefined` for a store in memory. */
  readonly store: string | undefined;
  /** File with the password of a database. */
  readonly storePassword: string | undefined;
  readonly cacheFolder: string;
}

/** Files needed to start processes with one environment, and read at the start. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Programs to start, wherever found; need not exist. */
  readonly started: readonly string[];
  readonly claude: { readonly folder: string; readonly record: string };
}

export async function ownedPaths(installation: Installation): Promise<OwnedPath[]> {
  return [...ownFiles(installation), ...(await ownCodePaths(installation)), ...claudeCodePaths(installation.settings)];
}

/** Files without any use for a shell, closed to shells if enforceable (`--sandbox required`). */
export function ownFiles({
  approvers,
  configFiles,
  settings,
  socketFolders,
  stateFolder,
  store,
  storePassword,
}: Installation): OwnedPath[] {
  return [
    // Store, token and everything else in the folder.
    tree(stateFolder, "the state folder of this server"),
    // A process connected to a socket is a client.
    socketFolders.flatMap((folder) => tree(folder, "the sockets of this server's daemons")),
    // With its `-wal`, `-shm` and `-journal`. Holds the sessions of all principals, and the author of each answer.
    prefix(store, "the store of this server"),
    tree(storePassword, "the password of this server's store"),
    // Principals, scopes, rules and bounds.
    configFiles.flatMap((file) => tree(file, "the configuration of this server")),
    // The holder of the token is the operator.
    tree(settings.tokenFile, "the token of this server's operator"),
    tree(settings.decideTokenFile, "the token of a program that decides"),
    // With the marker of another folder, a server would run the sessions of that folder here.
    settings.sharedFolders.flatMap((folder) => tree(join(folder, MARKER_FILE), "the marker of a shared folder")),
    ...Object.values(settings.profiles).flatMap(({ environment }) =>
      Object.values(environment).map((file) => tree(file, "a secret of a profile")),
    ),
    // Secrets that sign webhook deliveries, or decide requests.
    approvers.flatMap(({ path, why }) => tree(path, why)),
    // With rotated files. Sessions must not change the record of their actions.
    prefix(settings.auditLog, "the audit log of this server"),
  ].flat();
}

async function ownCodePaths({ cacheFolder, settings }: Installation): Promise<OwnedPath[]> {
  const own = fileURLToPath(import.meta.url);
  const root = packageRoot(own);
  const isCheckout = existsSync(join(root, ".git"));
  const wrappers: string[] = [];
  for (const { spawnWrapper = [] } of Object.values(settings.principals))
    wrappers.push(...(await findWrapperFiles(spawnWrapper)));
  return [
    // Bundle of this server. A checkout is open to sessions working on it.
    [{ path: root, extent: isCheckout ? "checkout" : "tree", why: SERVER_CODE } as const],
    // Packages that npm has put elsewhere: the Agent SDK with Claude Code itself, the driver of the store, the writer of logs.
    packageFolders(EXTERNAL, own).flatMap((folder) => tree(folder, SERVER_CODE)),
    // Compiled code is run unseen.
    tree(cacheFolder, "the cache of this server"),
    ...wrappers.map((file) => tree(file, STARTED_PROGRAMS)),
    tree(process.execPath, STARTED_PROGRAMS),
  ].flat();
}

/**
 * Files in a wrapper command: the script of an interpreter, the settings of a script. Leaves out folders, because a session may
 * be meant to work in them.
 */
async function findWrapperFiles([command = "", ...words]: readonly string[]): Promise<string[]> {
  const named = words.map((word) => word.replace(/^-[^=/]*=/, ""));
  const files: string[] = [];
  for (const word of named.filter(isAbsolute)) {
    const found = await stat(word).catch(() => undefined);
    if (found?.isFile() === true) files.push(word);
  }
  return isAbsolute(command) ? [command, ...files] : files;
}

/**
 * Configuration of Claude Code. Of the system's own folders only the sockets of running Claude Codes, because a session could
 * use a socket to speak to another session.
 */
function claudeCodePaths({ principals, profiles }: Settings): OwnedPath[] {
  return [
    ...[...Object.values(principals), ...Object.values(profiles)].flatMap(({ claudeConfigDir }) =>
      tree(claudeConfigDir, CLAUDE_FOLDER),
    ),
    // Settings for all users.
    tree(MANAGED_SETTINGS[process.platform] ?? "/etc/claude-code", CLAUDE_FOLDER),
    tree(join(tmpdir(), "cc-socks"), "the sockets of Claude Code"),
  ].flat();
}

export function environmentPaths({ claude, environment, started }: Surroundings): OwnedPath[] {
  const home = environment["HOME"] ?? environment["USERPROFILE"] ?? homedir();
  return [
    // Compiled code is run unseen.
    tree(environment["NODE_COMPILE_CACHE"], "the cache of this server"),
    ...started.map((file) => tree(file, STARTED_PROGRAMS)),
    // Settings with hooks, logins, agents, transcripts. A folder is open, in part, to the sessions that use it.
    ...[claude.folder, join(home, ".claude")].map((path) => tree(path, CLAUDE_FOLDER)),
    // MCP servers of the user, and trusted folders.
    ...[claude.record, join(home, ".claude.json")].map((path) => prefix(path, CLAUDE_RECORD)),
  ].flat();
}

const MANAGED_SETTINGS: Partial<Record<NodeJS.Platform, string>> = {
  darwin: "/Library/Application Support/ClaudeCode",
  win32: "C:\\Program Files\\ClaudeCode",
};

const PLATFORM = `${process.platform}-${process.arch}`;

/** Packages loaded or started from the place where npm has put them. */
const EXTERNAL = [
  "@anthropic-ai/claude-agent-sdk",
  `@anthropic-ai/claude-agent-sdk-${PLATFORM}`,
  `@anthropic-ai/claude-agent-sdk-${PLATFORM}-musl`,
  "@photostructure/sqlite",
];

/** Returns the folders of packages as the file `from` would load them, and of all their dependencies. */
export function packageFolders(names: readonly string[], from: string, found = new Set<string>()): string[] {
  const places = createRequire(from).resolve;
  for (const name of names) {
    const folder = (places.paths(name) ?? []).map((place) => join(place, name)).find((each) => existsSync(each));
    if (folder === undefined || found.has(folder)) continue;
    found.add(folder);
    const manifest = join(folder, "package.json");
    packageFolders(readDependencies(manifest), manifest, found);
  }
  return [...found];
}

function readDependencies(manifest: string): string[] {
  try {
    const parse: (text: string) => Manifest = JSON.parse;
    const { dependencies, optionalDependencies } = parse(readFileSync(manifest, "utf8"));
    return Object.keys({ ...dependencies, ...optionalDependencies });
  } catch {
    return [];
  }
}

interface Manifest {
  readonly dependencies?: object;
  readonly optionalDependencies?: object;
}

/** Returns the nearest folder with a package.json: two above this file in `src/`, and as many above its bundle. */
export function packageRoot(file: string): string {
  const folder = dirname(file);
  return existsSync(join(folder, "package.json")) || folder === dirname(folder) ? folder : packageRoot(folder);
}

function tree(path: string | undefined, why: string): OwnedPath[] {
  return path === undefined || path === "" ? [] : [{ path, extent: "tree", why }];
}

function prefix(path: string | undefined, why: string): OwnedPath[] {
  return path === undefined || path === "" ? [] : [{ path, extent: "prefix", why }];
}
