import { CONSTANTS_VARIABLE, DEPTH_VARIABLE, PROCESS_VARIABLE } from "../domain/names.ts";
import { checkApprovers, SECRET_VARIABLES } from "./approvals/approver-fields.ts";
import { ConfigError } from "./error.ts";
import {
  bySource,
  fromConfigFile,
  fromFlags,
  fromVariables,
  refusal,
  shortJson,
  type ConfigSources,
  type Environment,
  type GivenByKey,
} from "./given-values.ts";
import { checkTokens, checkConfined } from "./principals.ts";
import { checkProfileNames } from "./profiles.ts";
import { QUERY_KEYS } from "./query.ts";
import { Config, CONFIG_FILE, SETTINGS } from "./schema.ts";
import { ANYWHERE } from "./setting.ts";
import { didYouMean } from "../domain/suggest.ts";

/**
 * Merges settings: flags over variables over the file of `--config` over the user's file over defaults. Lists are replaced, not
 * joined. Throws ConfigError with a line that names the source of the bad value and the allowed values.
 */
export function loadConfig(sources: ConfigSources): Config {
  return checkedConfig(new Map([...(sources.user?.given ?? []), ...readGiven(sources)]));
}

/** Reads all sources except the user's file. Throws ConfigError. */
export function readGiven(sources: ConfigSources): GivenByKey {
  const flags = fromFlags(sources);
  const variables = fromVariables(sources);
  const file = fromConfigFile(flags.get(CONFIG_FILE.key) ?? variables.get(CONFIG_FILE.key), sources);
  return new Map([...file, ...variables, ...flags]);
}

/** Returns the path of the file of `--config`, if any. */
export function findConfigFile(sources: ConfigSources): string | undefined {
  const path = fromFlags(sources).get(CONFIG_FILE.key) ?? fromVariables(sources).get(CONFIG_FILE.key);
  return typeof path?.value === "string" ? path.value : undefined;
}

/** Returns the nesting depth: 0 unless an outer server has set `DEPTH_VARIABLE` for the Claude Code around this one. */
export function readDepth(env: Environment): number {
  const text = env[DEPTH_VARIABLE] ?? "";
  if (text === "") return 0;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new ConfigError(`${DEPTH_VARIABLE} is ${shortJson(text)}: must be a whole number. Servers set it; unset it.`);
}

/** Not in `SETTINGS`, because a secret must not stand in flags or files. */
const SECRETS = ["CLAUDE_CODE_MCP_RESUME_SECRET", ...SECRET_VARIABLES];

/** Returns a sentence for each variable with our prefix but no effect, because a misspelt bound would not hold. */
export function unknownVariables(env: Environment): string[] {
  const known = SETTINGS.map(({ variable }) => variable);
  const ofServers = [CONSTANTS_VARIABLE, DEPTH_VARIABLE, PROCESS_VARIABLE, ...SECRETS];
  return Object.keys(env)
    .filter((name) => name.startsWith("CLAUDE_CODE_MCP_") && !ofServers.includes(name) && !known.includes(name))
    .map((name) => `${name} is not a setting of this version and has no effect.${didYouMean(name, known)}`);
}

/** Returns a complete configuration: `given` and defaults. Throws ConfigError. */
export function checkedConfig(given: GivenByKey): Config {
  const settings = [...SETTINGS, ...QUERY_KEYS].filter(({ key, inFile }) => inFile && given.has(key));
  const parsed = Config.safeParse(valuesOf(given));
  if (parsed.success) return checkConsistent(parsed.data, given);
  const isOf = (key: string, { path }: { readonly path: readonly PropertyKey[] }) =>
    key === path[0] || key === path.slice(0, 2).join(".");
  const bad = settings.find(({ key }) => parsed.error.issues.some((issue) => isOf(key, issue)));
  const source = bad === undefined ? undefined : given.get(bad.key);
  if (bad === undefined || source === undefined) throw parsed.error;
  const issue = parsed.error.issues.find((each) => isOf(bad.key, each));
  // Issues of our own refinements already say what is wrong.
  if (issue?.code === "custom" && bad.reading !== "json")
    throw new ConfigError(`${source.from} cannot be used: ${issue.message}`);
  if (bad.reading !== "json") throw refusal(source, bad);
  const where = issue?.path.slice(1).map(String).join(".") ?? "";
  throw new ConfigError(
    `${source.from} cannot be used${where && `, at ${where}`}: ${issue?.message ?? bad.allowed}`.replace(/\.?$/, "."),
  );
}

/** Returns the values as a file would hold them. */
function valuesOf(given: GivenByKey): Record<string, unknown> {
  const entries = [...given]
    .filter(([key]) => key !== CONFIG_FILE.key)
    .map(([key, { value }]) => [key, value] as const);
  const isOfQuery = ([key]: readonly [string, unknown]) => key.startsWith("query.");
  const query = entries.filter(isOfQuery).map(([key, value]) => [key.slice("query.".length), value] as const);
  const others = entries.filter((entry) => !isOfQuery(entry));
  return Object.fromEntries([...others, ...(query.length > 0 ? [["query", Object.fromEntries(query)] as const] : [])]);
}

/** Checks settings against each other. Throws ConfigError. */
function checkConsistent(config: Config, given: GivenByKey): Config {
  try {
    checkApprovers(config);
    checkTokens(config.principals);
    checkProfileNames(config);
    checkConfined(config, given.get("allowDirs")?.value === ANYWHERE);
    return requireTools(withPasswordFile(config));
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(bySource(error.message, given), error) : error;
  }
}

/** Adds the file with the password to the location of the store. Throws ConfigError if the store is nowhere named. */
function withPasswordFile(config: Config): Config {
  const { store, storePasswordFile: passwordFile } = config;
  if (passwordFile === undefined) return config;
  if (store === undefined) {
    throw new ConfigError("--store-password-file: no database is named. Add --store postgres://USER@HOST/DATABASE.");
  }
  return store.kind === "postgres" ? { ...config, store: { ...store, passwordFile } } : config;
}

/** Throws ConfigError if no tool would be listed, because that mistake would go unnoticed. */
function requireTools(config: Config): Config {
  if (config.query.enabled || config.toolsets.some((toolset) => toolset !== "query")) return config;
  throw new ConfigError(
    "query.enabled is false: no tool would be listed, because --toolsets names query only. Add a toolset, or enable it.",
  );
}
