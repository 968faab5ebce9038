import { boundsOf, commonBounds, withinBounds, type Bounds } from "./bounds.ts";
import { ConfigError } from "./error.ts";
import type { ConfigSources, UserFile } from "./given.ts";
import { givenIn, loadConfig } from "./load.ts";
import { SETTINGS, type Config } from "./schema.ts";
import { readUserFile } from "./user-file.ts";

/** Settings of a server, and those of its clients within them. */

export interface ServerSettings {
  /** Of the server, within the bounds of the user's file. */
  readonly config: Config;
  /** What its clients cannot leave. */
  readonly bounds: Bounds;
  readonly user: UserFile;
}

/** Of a server that this process becomes. Terms that are given to a daemon are bounds of its clients. Throws ConfigError. */
export function serverSettings(sources: Omit<ConfigSources, "user">): ServerSettings {
  const user = readUserFile(sources);
  const config = withinBounds(loadConfig({ ...sources, user }), user.bounds);
  return { config, bounds: user.bounds, user };
}

/** Those of a daemon: the terms that it was started with are bounds of its clients. Throws ConfigError. */
export function daemonSettings(sources: Omit<ConfigSources, "user">): ServerSettings {
  const settings = serverSettings(sources);
  return { ...settings, bounds: commonBounds(settings.bounds, boundsOf(givenIn(sources))) };
}

/** Of a client of a daemon: its terms within bounds, and the settings of the server. Throws ConfigError where it gives one of those. */
export function clientSettings(server: ServerSettings, sources: Omit<ConfigSources, "user">): Config {
  refuseServerSettings(sources, server.user.path);
  return termsWithin(server, sources);
}

/** The same of a client that is a server itself, whose own settings are its own. */
export function termsWithin({ bounds, config, user }: ServerSettings, sources: Omit<ConfigSources, "user">): Config {
  const own = withinBounds(loadConfig({ ...sources, user }), bounds);
  return { ...own, ...Object.fromEntries(OF_SERVER.map(({ key }) => [key, Reflect.get(config, key)])) };
}

const OF_SERVER = SETTINGS.filter(({ of }) => of === "server");

/** Of a client of a daemon; `file` is the user's. Throws ConfigError. */
export function refuseServerSettings(sources: ConfigSources, path: string): void {
  const given = givenIn(sources);
  const setting = OF_SERVER.find(({ key }) => given.has(key));
  if (!setting) return;
  const from = given.get(setting.key)?.from ?? setting.flag;
  const others = "which has other clients, too";
  const file = `${path}, which a daemon reads at its start (\`claude-agents-mcp daemon stop\`)`;
  const advice = `Set "${setting.key}" in ${file}, or give this client a server of its own: --daemon off.`;
  throw new ConfigError(`${from} belongs to the server, ${others}. ${advice}`);
}
