import { boundsOf, commonBounds, OutOfBoundsError, withinBounds, type Bounds } from "./bounds.ts";
import { ConfigError } from "./error.ts";
import type { ConfigSources, GivenByKey, UserFile } from "./given-values.ts";
import { readGiven, loadConfig } from "./load.ts";
import { SETTINGS, type Config } from "./schema.ts";
import { readUserFile } from "./user-file.ts";

/** Reads the settings of a server, and those of its clients within bounds. */

export interface ServerSettings {
  /** Settings of the server, within the bounds of the user's file. */
  readonly config: Config;
  /** Bounds of the server's clients. */
  readonly bounds: Bounds;
  readonly user: UserFile;
  /** Values given at the start of a named daemon. Terms among them are bounds as well. */
  readonly given?: GivenByKey;
}

/** Reads the settings of the server that this process becomes. Throws ConfigError. */
export function serverSettings(sources: Omit<ConfigSources, "user">): ServerSettings {
  const user = readUserFile(sources);
  return { config: configWithinBounds({ bounds: user.bounds, user }, sources), bounds: user.bounds, user };
}

/** Reads the settings of a named daemon. Terms given at its start become bounds of its clients. Throws ConfigError. */
export function daemonSettings(sources: Omit<ConfigSources, "user">): ServerSettings {
  const settings = serverSettings(sources);
  const given = readGiven(sources);
  return { ...settings, bounds: commonBounds(settings.bounds, boundsOf(given)), given };
}

/** Reads the settings of an automatic daemon. Throws ConfigError, also for a term, which would hold for none of its clients. */
export function automaticSettings(sources: Omit<ConfigSources, "user">): ServerSettings {
  const settings = serverSettings(sources);
  const given = readGiven(sources);
  const [key] = Object.keys(boundsOf(given));
  if (key === undefined) return settings;
  const from = given.get(key)?.from ?? key;
  const advice = `Set "${key}" in "bounds" of ${settings.user.path}, or name the daemon: --daemon NAME.`;
  throw new ConfigError(`daemon run: ${from} would apply to no client of this daemon. ${advice}`);
}

/**
 * Returns a client's terms within bounds, with the settings of its daemon. Throws ConfigError if the client gives server
 * settings.
 */
export function clientSettings(server: ServerSettings, sources: Omit<ConfigSources, "user">): Config {
  refuseServerSettings(sources, server.user.path);
  return termsWithin(server, sources);
}

/**
 * Returns the terms of a client that is also a server, like the command `console`. Server settings from the client hold in the
 * client's own process, so they are not refused here, but replaced by the settings of `server`.
 */
export function termsWithin(server: ServerSettings, sources: Omit<ConfigSources, "user">): Config {
  const own = configWithinBounds(server, sources);
  return { ...own, ...Object.fromEntries(SERVER_SETTINGS.map(({ key }) => [key, Reflect.get(server.config, key)])) };
}

/** Throws ConfigError that names the source of the value and of the bound. */
function configWithinBounds(
  { bounds, given, user }: Omit<ServerSettings, "config">,
  sources: Omit<ConfigSources, "user">,
): Config {
  const config = loadConfig({ ...sources, user });
  try {
    return withinBounds(config, bounds);
  } catch (error) {
    if (!(error instanceof OutOfBoundsError)) throw error;
    const { key } = error;
    const from = new Map([...user.given, ...readGiven(sources)]).get(key)?.from ?? `The default of ${key}`;
    const ofDaemon = given?.get(key)?.from;
    throw error.named(
      from,
      ofDaemon === undefined ? `"${key}" of "bounds" in ${user.path}` : `The start of the daemon, by ${ofDaemon},`,
    );
  }
}

const SERVER_SETTINGS = SETTINGS.filter(({ of }) => of === "server");

/** Throws ConfigError if a client of a daemon gives a setting of the server. `path` is that of the user's file. */
export function refuseServerSettings(sources: ConfigSources, path: string): void {
  const given = readGiven(sources);
  const settings = SERVER_SETTINGS.filter(({ key }) => given.has(key));
  if (settings.length === 0) return;
  const from = settings.map(({ flag, key }) => given.get(key)?.from ?? flag).join(", ");
  const keys = settings.map(({ key }) => `"${key}"`).join(", ");
  const belongs = `${settings.length === 1 ? "belongs" : "belong"} to the server, which has other clients, too`;
  const file = `${path}, which a daemon reads at its start (\`claude-agents-mcp daemon stop\`)`;
  const advice = `Set ${keys} in ${file}, or give this client a server of its own: --daemon off.`;
  throw new ConfigError(`${from} ${belongs}. ${advice}`);
}
