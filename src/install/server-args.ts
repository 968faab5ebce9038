import { isAbsolute } from "node:path";
import type { Client } from "./clients.ts";
import type { Entry } from "./format.ts";
import { ConfigError } from "../config/error.ts";
import { loadConfig } from "../config/load.ts";
import { readFlags, type Flag } from "../config/parse-flags.ts";
import type { Config } from "../config/schema.ts";
import { clientSettings, serverSettings } from "../config/server-settings.ts";
import { isStorePath } from "../config/store-spelling.ts";
import { daemonEnvironment } from "../daemon/daemon-environment.ts";
import { checkName } from "../daemon/socket.ts";
import { namedDaemon, reasonInSettings } from "../proxy/own-server.ts";

/** Checks settings in a client's entry as the server would, and finds the timeout needed in the client. */

export interface EntrySettings {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  /** Variables of the entry and of its user. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder in which the client starts the server. If unknown (`undefined`), relative paths are refused. */
  readonly cwd?: string | undefined;
  readonly home?: string;
}

/** Returns the settings of the client's connection. Throws ConfigError if the server would refuse them. */
export function entryConfig({ argv, cwd, env, home }: EntrySettings): Config {
  checkDaemonName({ argv, env });
  if (cwd === undefined) refuseRelative(argv);
  const sources = { argv, env, ...(cwd !== undefined && { cwd }), ...(home !== undefined && { home }) };
  const hasOwnServer = reasonInSettings({ argv, env, platform: process.platform }) !== undefined;
  const ofDaemon = { ...sources, argv: [], env: daemonEnvironment(env) };
  return refuseHttp(hasOwnServer ? serverSettings(sources).config : clientSettings(serverSettings(ofDaemon), sources));
}

/**
 * Returns the settings by flags alone of a server on another machine, which checks them itself: its files and its user's
 * settings are unknown here. Throws ConfigError.
 */
export function configElsewhere(argv: readonly string[]): Config {
  refuseRelative(argv);
  const known = readFlags(argv).filter((flag) => !isPath(flag));
  return refuseHttp(loadConfig({ argv: known.flatMap(wordsOf), env: {} }));
}

function refuseHttp(config: Config): Config {
  if (config.http === undefined) return config;
  throw new ConfigError(
    "--http: a server over HTTP is started by you, not by the client. docs/http.md says what its entry is.",
  );
}

function checkDaemonName(start: Pick<EntrySettings, "argv" | "env">): void {
  const name = namedDaemon(start);
  if (name === undefined) return;
  try {
    checkName(name);
  } catch (error) {
    throw new ConfigError(`--daemon ${error instanceof Error ? error.message : String(error)}.`, error);
  }
}

/** Throws ConfigError for relative paths, because clients start the server in a folder of their own. */
function refuseRelative(argv: readonly string[]): void {
  for (const flag of readFlags(argv)) {
    const { text = "" } = flag;
    if (!isPath(flag) || isAbsolute(text) || text.startsWith("~")) continue;
    throw new ConfigError(
      `${flag.written} is a relative path, and the client starts the server in another folder. Make it absolute.`,
    );
  }
}

function isPath({ setting, text = "" }: Flag): boolean {
  return setting.reading === "store" ? isStorePath(text) : ["directories", "path"].includes(setting.reading);
}

/**
 * Returns arguments acceptable to the server: misspelt flags corrected, server settings removed. `undefined` if still
 * unacceptable.
 */
export function mendedArgs(settings: EntrySettings): string[] | undefined {
  let argv = [...settings.argv];
  for (let tries = 0; tries <= settings.argv.length; tries += 1) {
    try {
      entryConfig({ ...settings, argv });
      return argv;
    } catch (error) {
      const better =
        error instanceof ConfigError ? (correctSpelling(argv, error.message) ?? withoutServerSettings(argv)) : argv;
      if (better.length === argv.length && better.every((word, at) => word === argv[at])) return undefined;
      argv = better;
    }
  }
  return undefined;
}

function correctSpelling(argv: readonly string[], problem: string): string[] | undefined {
  const [, wrong, right] = /^Unknown flag (--[\w-]+)\. Did you mean (--[\w-]+)\?/.exec(problem) ?? [];
  if (wrong === undefined || right === undefined) return undefined;
  return argv.map((word) => (word === wrong || word.startsWith(`${wrong}=`) ? right + word.slice(wrong.length) : word));
}

function withoutServerSettings(argv: readonly string[]): string[] {
  const kept = flagsOf(argv)?.filter(({ setting }) => setting.of !== "server");
  return kept?.flatMap(wordsOf) ?? [...argv];
}

/** Returns the arguments with known values: without flags that contain a variable of the client. */
export function knownArgs(argv: readonly string[], isVariable: (text: string) => boolean): string[] {
  const known = flagsOf(argv)?.filter(({ text = "" }) => !isVariable(text));
  return known?.flatMap(wordsOf) ?? [...argv];
}

function flagsOf(argv: readonly string[]): Flag[] | undefined {
  try {
    return readFlags(argv);
  } catch {
    return undefined;
  }
}

function wordsOf({ setting, text, written }: Flag): string[] {
  if (text === undefined) return [written];
  // Boolean values, and texts that begin with "-", need `=`.
  return setting.reading === "boolean" || text.startsWith("-") ? [`${written}=${text}`] : [written, text];
}

/** Added to the longest call, ms, so that its answer arrives in time. */
const MARGIN_MS = 30_000;

/** Limit of a call without a limit of its own, ms, in clients other than Claude Code. */
const MAX_WAIT_MS = 45_000;

/** Returns the longest call of listed tools, ms. */
export function longestCallMs(config: Pick<Config, "maxWaitMs" | "query" | "toolsets" | "turnMaxMs">): number {
  const lists = (name: Config["toolsets"][number]) => config.toolsets.includes(name) || config.toolsets.includes("all");
  return Math.max(
    config.maxWaitMs ?? MAX_WAIT_MS,
    lists("query") ? config.query.maxExecutionMs : 0,
    lists("chat") ? config.turnMaxMs : 0,
  );
}

/** Returns the client's timeout setting, if its default is too short. */
export function timeoutEntry({ timeout }: Client, longestMs: number): Entry {
  if (timeout === undefined || longestMs + MARGIN_MS <= timeout.defaultMs) return {};
  return { [timeout.key]: Math.ceil((longestMs + MARGIN_MS) / timeout.unitMs) };
}

/** True if the client may give up a call too early, and no known setting helps. */
export function mayGiveUp({ timeout, unlimited }: Client, longestMs: number): boolean {
  return longestMs > MAX_WAIT_MS && timeout === undefined && unlimited === undefined;
}
