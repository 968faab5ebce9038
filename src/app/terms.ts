import { homedir } from "node:os";
import { bySource, type ConfigSources } from "../config/given.ts";
import { givenIn } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { clientSettings, termsWithin, type ServerSettings } from "../config/server-settings.ts";
import { ConfigError } from "../config/error.ts";
import type { ClientHello } from "../daemon/wire.ts";
import { stat } from "../security/files/limited.ts";
import { namesOf } from "../tools/listed.ts";

/** The start of this server by a client, which belongs to that client and not to the process that serves it. */
export interface ClientStart {
  /** The folder in which it was started: the default `cwd`, and the one from which relative paths count. Throws AppError. */
  readonly cwd: () => string;
  /** The client's command line in all spellings under which a session could start this server again. */
  readonly ownCommands: readonly OwnCommand[];
}

/** [command, ...args] */
export type OwnCommand = readonly [string, ...string[]];

/** Properties of one connection, and not of the process that serves it. */
export interface Terms extends ClientStart {
  /** Terms are the client's, all other settings the server's. */
  readonly config: Config;
  /** The environment of the client's end. */
  readonly environment: NodeJS.ProcessEnv;
  /** True where that environment is the server's own. */
  readonly isOwn?: boolean;
  /** Sessions that the client has had to do with before. */
  readonly sessions?: readonly string[];
}

/** The terms of a client of a daemon. Throws ConfigError for settings that it may not give, or that cannot be used. */
export function termsOf(
  hello: ClientHello,
  { ownCommands, server }: Pick<Terms, "ownCommands"> & { readonly server: ServerSettings },
): Terms {
  const { cwd, environment, purpose, sessions = [] } = hello;
  // The console is a server itself.
  const settingsOf = purpose === "operations" ? termsWithin : clientSettings;
  return { config: settingsOf(server, sourcesOf(hello)), environment, cwd: () => cwd, ownCommands, sessions };
}

/** Names what is wrong with the terms of a client by what has given them. */
export function namedForClient(error: unknown, hello: ClientHello, { user }: ServerSettings): unknown {
  if (!(error instanceof ConfigError)) return error;
  return new ConfigError(bySource(error.message, new Map([...user.given, ...givenIn(sourcesOf(hello))])), error);
}

/** Queries that name no folder run in it: without it each of them fails, and names what its caller has not given. Throws ConfigError. */
export async function requireQueryFolder({ query, toolsets }: Config): Promise<void> {
  const { cwd } = query;
  if (cwd === undefined || !namesOf(toolsets, query).includes("claude_code_query")) return;
  const isThere = await stat(cwd).then((found) => found.isDirectory(), mayBeThere);
  if (isThere) return;
  throw new ConfigError(`query.cwd is ${JSON.stringify(cwd)}: there is no such folder. Name an existing one.`);
}

/** Takes it for a folder that may be on a disk that does not answer now. */
function mayBeThere(error: unknown): boolean {
  return !(error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"));
}

function sourcesOf({ argv, configFile, cwd, environment }: ClientHello): ConfigSources {
  return { argv, env: environment, cwd, home: homeIn(environment), readFile: readerOf(configFile) };
}

function readerOf(file: ClientHello["configFile"]): NonNullable<ConfigSources["readFile"]> {
  return (path) => {
    if (file && "text" in file) return file.text;
    throw new ConfigError(file?.fault ?? `${path} was not read`);
  };
}

/** The home folder of who has this environment. */
export function homeIn({ HOME, USERPROFILE }: NodeJS.ProcessEnv): string {
  return (process.platform === "win32" ? USERPROFILE : HOME) ?? homedir();
}
