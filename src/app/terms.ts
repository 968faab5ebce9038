import { homedir } from "node:os";
import type { ConfigSources } from "../config/given.ts";
import type { Config } from "../config/schema.ts";
import { clientSettings, termsWithin, type ServerSettings } from "../config/server-settings.ts";
import { ConfigError } from "../config/error.ts";
import type { ClientHello } from "../daemon/wire.ts";

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
  { argv, configFile, cwd, environment, purpose, sessions = [] }: ClientHello,
  { ownCommands, server }: Pick<Terms, "ownCommands"> & { readonly server: ServerSettings },
): Terms {
  const sources = { argv, env: environment, cwd, home: homeIn(environment), readFile: readerOf(configFile) };
  // The console is a server itself.
  const settingsOf = purpose === "operations" ? termsWithin : clientSettings;
  return { config: settingsOf(server, sources), environment, cwd: () => cwd, ownCommands, sessions };
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
