import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir, tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stat } from "./files/limited.ts";
import { CLAUDE_FOLDER, CLAUDE_RECORD, SERVER_CODE, type Owned } from "./protected-paths.ts";

/** What this installation owns: the table of protected paths, a reason a line, as the configuration and the system name them. */

interface Principal {
  readonly claudeConfigDir?: string | undefined;
  readonly spawnWrapper?: readonly string[] | undefined;
}

/** The settings that name files of the server. */
interface Settings {
  readonly auditLog?: string | undefined;
  readonly principals: Readonly<Record<string, Principal>>;
  readonly tokenFile?: string | undefined;
  readonly decideTokenFile?: string | undefined;
}

export interface Installation {
  readonly settings: Settings;
  /** What approvers keep: their secrets, and the answers that they give. */
  readonly approvers: readonly { readonly path: string; readonly why: string }[];
  /** Files of settings; they need not exist. */
  readonly configFiles: readonly string[];
  readonly stateFolder: string;
  /** Where daemons listen. */
  readonly socketFolders: readonly string[];
  /** The file of the store; undefined where it is in memory. */
  readonly store: string | undefined;
  readonly cacheFolder: string;
}

/** What processes with one environment are started from, and read at their start. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Programs that are started, wherever they are found; they need not exist. */
  readonly started: readonly string[];
  /** Claude Code's configuration. */
  readonly claude: { readonly folder: string; readonly record: string };
}

export async function ownedPlaces(installation: Installation): Promise<Owned[]> {
  return [...ownFiles(installation), ...(await ownCode(installation)), ...claudeCode(installation.settings)];
}

/** Of these a shell has no business with any, wherever that can be enforced (--sandbox required). */
export function ownFiles({
  approvers,
  configFiles,
  settings,
  socketFolders,
  stateFolder,
  store,
}: Installation): Owned[] {
  return [
    // Store, token and whatever else is kept beside them.
    tree(stateFolder, "the state folder of this server"),
    // A process that connects there is a client.
    socketFolders.flatMap((folder) => tree(folder, "the sockets of this server's daemons")),
    // With its -wal, -shm and -journal: sessions of all principals, and who answered what.
    prefix(store, "the store of this server"),
    // Principals, scopes, rules and bounds.
    configFiles.flatMap((file) => tree(file, "the configuration of this server")),
    // Holding this token makes a caller the operator.
    tree(settings.tokenFile, "the token of this server's operator"),
    tree(settings.decideTokenFile, "the token of a program that decides"),
    // These secrets sign webhook deliveries, or decide requests.
    approvers.flatMap(({ path, why }) => tree(path, why)),
    // What was done must not be undone in the record; with the files it was rotated to.
    prefix(settings.auditLog, "the audit log of this server"),
  ].flat();
}

async function ownCode({ cacheFolder, settings }: Installation): Promise<Owned[]> {
  const own = fileURLToPath(import.meta.url);
  const root = packageRoot(own);
  const isCheckout = existsSync(join(root, ".git"));
  const wrappers: string[] = [];
  for (const { spawnWrapper = [] } of Object.values(settings.principals))
    wrappers.push(...(await filesOf(spawnWrapper)));
  return [
    // Its bundle; a checkout is open to sessions that work on it.
    [{ path: root, extent: isCheckout ? "checkout" : "tree", why: SERVER_CODE } as const],
    // What npm has put elsewhere: the Agent SDK with Claude Code itself, the driver of the store, the writer of logs.
    installed(EXTERNAL, own).flatMap((folder) => tree(folder, SERVER_CODE)),
    // Compiled code is run unseen.
    tree(cacheFolder, "the cache of this server"),
    ...wrappers.map((file) => tree(file, STARTED)),
    tree(process.execPath, STARTED),
  ].flat();
}

/** An interpreter is given its script, and a script its settings. Folders are left: a session may be meant to work in them. */
async function filesOf([command = "", ...words]: readonly string[]): Promise<string[]> {
  const named = words.map((word) => word.replace(/^-[^=/]*=/, ""));
  const files: string[] = [];
  for (const word of named.filter(isAbsolute)) {
    const found = await stat(word).catch(() => undefined);
    if (found?.isFile() === true) files.push(word);
  }
  return isAbsolute(command) ? [command, ...files] : files;
}

/** Of the system's own places only the sockets of running Claude Codes: through them one session would speak to another. */
function claudeCode({ principals }: Settings): Owned[] {
  return [
    ...Object.values(principals).flatMap(({ claudeConfigDir }) => tree(claudeConfigDir, CLAUDE_FOLDER)),
    // Settings that hold for all users.
    tree(MANAGED[process.platform] ?? "/etc/claude-code", CLAUDE_FOLDER),
    tree(join(tmpdir(), "cc-socks"), "the sockets of Claude Code"),
  ].flat();
}

export function surroundingPlaces({ claude, environment, started }: Surroundings): Owned[] {
  const home = environment["HOME"] ?? environment["USERPROFILE"] ?? homedir();
  return [
    // Compiled code is run unseen.
    tree(environment["NODE_COMPILE_CACHE"], "the cache of this server"),
    ...started.map((file) => tree(file, STARTED)),
    // Settings with hooks, logins, agents, transcripts; a folder is open, in part, to the sessions that use it.
    ...[claude.folder, join(home, ".claude")].map((path) => tree(path, CLAUDE_FOLDER)),
    // MCP servers of the user, and which folders are trusted.
    ...[claude.record, join(home, ".claude.json")].map((path) => prefix(path, CLAUDE_RECORD)),
  ].flat();
}

const MANAGED: Partial<Record<NodeJS.Platform, string>> = {
  darwin: "/Library/Application Support/ClaudeCode",
  win32: "C:\\Program Files\\ClaudeCode",
};

const PLATFORM = `${process.platform}-${process.arch}`;

/** Loaded or started from where npm has put them. */
const EXTERNAL = [
  "@anthropic-ai/claude-agent-sdk",
  `@anthropic-ai/claude-agent-sdk-${PLATFORM}`,
  `@anthropic-ai/claude-agent-sdk-${PLATFORM}-musl`,
  "@photostructure/sqlite",
];

/** What the settings and the system name, which is closed wherever it lies. */
const STARTED = "what this server starts";

/** The folders of these packages as the file `from` would load them, with all that they load in turn. */
export function installed(names: readonly string[], from: string, found = new Set<string>()): string[] {
  const places = createRequire(from).resolve;
  for (const name of names) {
    const folder = (places.paths(name) ?? []).map((place) => join(place, name)).find((each) => existsSync(each));
    if (folder === undefined || found.has(folder)) continue;
    found.add(folder);
    const manifest = join(folder, "package.json");
    installed(dependenciesOf(manifest), manifest, found);
  }
  return [...found];
}

function dependenciesOf(manifest: string): string[] {
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

/** Two folders above this file in src/, and as many above its bundle; the nearest one with a package.json. */
export function packageRoot(file: string): string {
  const folder = dirname(file);
  return existsSync(join(folder, "package.json")) || folder === dirname(folder) ? folder : packageRoot(folder);
}

function tree(path: string | undefined, why: string): Owned[] {
  return path === undefined || path === "" ? [] : [{ path, extent: "tree", why }];
}

function prefix(path: string | undefined, why: string): Owned[] {
  return path === undefined || path === "" ? [] : [{ path, extent: "prefix", why }];
}
