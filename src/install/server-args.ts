import { isAbsolute } from "node:path";
import type { Client } from "./clients.ts";
import type { Entry } from "./format.ts";
import { ConfigError } from "../config/error.ts";
import { readFlags, type Flag } from "../config/parse-flags.ts";
import type { Config } from "../config/schema.ts";
import { clientSettings, serverSettings } from "../config/server-settings.ts";
import { isStorePath } from "../config/store-spelling.ts";
import { daemonEnvironment } from "../daemon/environment.ts";
import { checkName } from "../daemon/socket.ts";
import { namedDaemon, reasonInSettings } from "../proxy/own-server.ts";

/** Settings that a client's entry gives to the server: checked as the server would, and the timeout that they need in the client. */

export interface EntrySettings {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  /** Variables of the entry, and those of its user. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder in which the client starts the server; undefined where it is not known: relative paths are refused then. */
  readonly cwd?: string | undefined;
  readonly home?: string;
}

/** Returns the settings of the client's connection. Throws ConfigError where the server would refuse it. */
export function entryConfig({ argv, cwd, env, home }: EntrySettings): Config {
  checkDaemonName({ argv, env });
  if (cwd === undefined) refuseRelative(argv);
  const sources = { argv, env, ...(cwd !== undefined && { cwd }), ...(home !== undefined && { home }) };
  const hasOwnServer = reasonInSettings({ argv, env, platform: process.platform }) !== undefined;
  const ofDaemon = { ...sources, argv: [], env: daemonEnvironment(env) };
  const config = hasOwnServer ? serverSettings(sources).config : clientSettings(serverSettings(ofDaemon), sources);
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

/** The client starts the server in a folder of its own. */
function refuseRelative(argv: readonly string[]): void {
  for (const { setting, text = "", written } of readFlags(argv)) {
    const isPath = setting.reading === "store" ? isStorePath(text) : ["directories", "path"].includes(setting.reading);
    if (!isPath || isAbsolute(text) || text.startsWith("~")) continue;
    throw new ConfigError(
      `${written} is a relative path, and the client starts the server in another folder. Make it absolute.`,
    );
  }
}

/**
 * Returns the arguments that the server takes: misspelt flags corrected, settings of the server left out. Undefined where that does
 * not help.
 */
export function mendedArgs(settings: EntrySettings): string[] | undefined {
  let argv = [...settings.argv];
  for (let tries = 0; tries <= settings.argv.length; tries += 1) {
    try {
      entryConfig({ ...settings, argv });
      return argv;
    } catch (error) {
      const better =
        error instanceof ConfigError ? (spelled(argv, error.message) ?? withoutServerSettings(argv)) : argv;
      if (better.length === argv.length && better.every((word, at) => word === argv[at])) return undefined;
      argv = better;
    }
  }
  return undefined;
}

function spelled(argv: readonly string[], problem: string): string[] | undefined {
  const [, wrong, right] = /^Unknown flag (--[\w-]+)\. Did you mean (--[\w-]+)\?/.exec(problem) ?? [];
  if (wrong === undefined || right === undefined) return undefined;
  return argv.map((word) => (word === wrong || word.startsWith(`${wrong}=`) ? right + word.slice(wrong.length) : word));
}

function withoutServerSettings(argv: readonly string[]): string[] {
  const kept = flagsOf(argv)?.filter(({ setting }) => setting.of !== "server");
  return kept?.flatMap(wordsOf) ?? [...argv];
}

/** Arguments whose values are known: those of flags with a variable of the client are left out. */
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
  // Behind a boolean, a word of its own would be no value.
  return setting.reading === "boolean" || text.startsWith("-") ? [`${written}=${text}`] : [written, text];
}

/** A call of this length can still come back, ms. */
const MARGIN_MS = 30_000;

/** Limit of a call without one of its own where the client is not Claude Code, ms. */
const MAX_WAIT_MS = 45_000;

/** The longest call of the tools that are listed, ms. */
export function longestCallMs(config: Pick<Config, "maxWaitMs" | "query" | "toolsets" | "turnMaxMs">): number {
  const lists = (name: Config["toolsets"][number]) => config.toolsets.includes(name) || config.toolsets.includes("all");
  return Math.max(
    config.maxWaitMs ?? MAX_WAIT_MS,
    lists("query") ? config.query.maxExecutionMs : 0,
    lists("chat") ? config.turnMaxMs : 0,
  );
}

/** The client's own setting, where its default is too short. */
export function timeoutEntry({ timeout }: Client, longestMs: number): Entry {
  if (timeout === undefined || longestMs + MARGIN_MS <= timeout.defaultMs) return {};
  return { [timeout.key]: Math.ceil((longestMs + MARGIN_MS) / timeout.unitMs) };
}

/** Tells whether the client may give up a call before it returns, and no setting is known that helps. */
export function mayGiveUp({ timeout, unlimited }: Client, longestMs: number): boolean {
  return longestMs > MAX_WAIT_MS && timeout === undefined && unlimited === undefined;
}
