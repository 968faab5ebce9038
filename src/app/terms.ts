import { homedir } from "node:os";
import { bySource, type ConfigSources } from "../config/given-values.ts";
import { readGiven } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { clientSettings, termsWithin, type ServerSettings } from "../config/server-settings.ts";
import { ConfigError } from "../config/error.ts";
import type { ClientHello } from "../daemon/wire.ts";
import { stat } from "../security/files/limited.ts";
import { listToolNames } from "../tools/tool-names.ts";

/** Start of this program by a client. With a daemon, another process serves the client. */
export interface ClientStart {
  /** Start folder of the client: default of `cwd`, and base of relative paths. Throws AppError. */
  readonly cwd: () => string;
  /** All spellings of the client's command line, because a session could start this server again by any of them. */
  readonly ownCommands: readonly OwnCommand[];
}

/** `[command, ...args]` */
export type OwnCommand = readonly [string, ...string[]];

/** Properties of a connection, not of the serving process. */
export interface Terms extends ClientStart {
  /** Client's terms, and the server's for all other settings. */
  readonly config: Config;
  /** Environment of the client's process. */
  readonly environment: NodeJS.ProcessEnv;
  /** True if `environment` is the server's own. */
  readonly isOwn?: boolean;
  /** Ids of sessions used by the client on earlier connections. */
  readonly sessions?: readonly string[];
}

/** Returns the terms of a client of a daemon. Throws ConfigError for settings that are invalid or not for clients. */
export function readClientTerms(
  hello: ClientHello,
  { ownCommands, server }: Pick<Terms, "ownCommands"> & { readonly server: ServerSettings },
): Terms {
  const { cwd, environment, purpose, sessions = [] } = hello;
  // The console command is itself a server and may give server settings.
  const settingsOf = purpose === "operations" ? termsWithin : clientSettings;
  return { config: settingsOf(server, sourcesOf(hello)), environment, cwd: () => cwd, ownCommands, sessions };
}

/** Names each faulty term in the message by the client's source: flag, variable or file key. */
export function withClientSources(error: unknown, hello: ClientHello, { user }: ServerSettings): unknown {
  if (!(error instanceof ConfigError)) return error;
  return new ConfigError(bySource(error.message, new Map([...user.given, ...readGiven(sourcesOf(hello))])), error);
}

/** Throws ConfigError unless `query.cwd` is a folder. Otherwise every query without `cwd` would fail and blame its caller. */
export async function requireQueryFolder({ query, toolsets }: Config): Promise<void> {
  const { cwd } = query;
  if (cwd === undefined || !listToolNames(toolsets, query).includes("claude_code_query")) return;
  const isThere = await stat(cwd).then((found) => found.isDirectory(), mayExist);
  if (isThere) return;
  throw new ConfigError(`query.cwd is ${JSON.stringify(cwd)}: there is no such folder. Name an existing one.`);
}

/** True unless `error` means "not found": the folder may be on a disk that does not answer now. */
function mayExist(error: unknown): boolean {
  return !(error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"));
}

function sourcesOf({ argv, configFile, cwd, environment }: ClientHello): ConfigSources {
  return { argv, env: environment, cwd, home: homeIn(environment), readFile: configFileReader(configFile) };
}

function configFileReader(file: ClientHello["configFile"]): NonNullable<ConfigSources["readFile"]> {
  return (path) => {
    if (file && "text" in file) return file.text;
    throw new ConfigError(file?.fault ?? `${path} was not read`);
  };
}

/** Returns the home folder of the environment's user. */
export function homeIn({ HOME, USERPROFILE }: NodeJS.ProcessEnv): string {
  return (process.platform === "win32" ? USERPROFILE : HOME) ?? homedir();
}
