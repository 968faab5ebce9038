import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { DEPTH_VARIABLE, PROCESS_VARIABLE } from "../domain/names.ts";
import { JsonObject } from "../domain/json.ts";
import { checkApprovers, SECRET_VARIABLES } from "./approvals/approver-fields.ts";
import { ConfigError } from "./error.ts";
import { readFlags } from "./parse-flags.ts";
import { absolutePath, directoriesIn } from "./paths.ts";
import { isStorePath } from "./store-spelling.ts";
import { checkTokens, checkConfined } from "./principals.ts";
import { Config, CONFIG_FILE, SETTINGS } from "./schema.ts";
import { ANYWHERE, type Setting } from "./setting.ts";
import { didYouMean } from "../domain/suggest.ts";

/**
 * Flags over variables over the file over the defaults: read once, at the start. A list of a higher source replaces the
 * list of a lower one. Relative paths count from the current directory, in the file from the file's folder.
 */

export interface ConfigSources {
  /** What stands behind the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** Relative paths of flags and variables count from it. A daemon gives that of its client; default: that of this process. */
  readonly cwd?: string;
  /** The folder that a leading ~ stands for; default: that of the user of this process. */
  readonly home?: string;
  /** The text of a file. Throws when it cannot be read. */
  readonly readFile?: (path: string) => string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** A value before it is checked, and where it came from. */
interface Given {
  readonly value: unknown;
  /** Names the source in messages: a flag, a variable, or a key and its file. */
  readonly from: string;
}

/** The folder that relative paths count from, and the user's. */
type Base = () => { readonly folder: string; readonly home: string | undefined };

type GivenByKey = ReadonlyMap<string, Given>;

/** Throws ConfigError with one line that names the source of the bad value and what is allowed. */
export function loadConfig({ readFile = readText, ...sources }: ConfigSources): Config {
  const flags = fromFlags(sources);
  const variables = fromVariables(sources);
  const file = fromFile(flags.get(CONFIG_FILE.key) ?? variables.get(CONFIG_FILE.key), { ...sources, readFile });
  return check(new Map([...file, ...variables, ...flags]));
}

/** The file that `loadConfig` reads settings from; undefined where there is none. */
export function configFileOf(sources: ConfigSources): string | undefined {
  const path = fromFlags(sources).get(CONFIG_FILE.key) ?? fromVariables(sources).get(CONFIG_FILE.key);
  return typeof path?.value === "string" ? path.value : undefined;
}

/** How deep this server is nested: 0 unless a server above it set the variable for the Claude Code that started this one. */
export function readDepth(env: Environment): number {
  const text = env[DEPTH_VARIABLE] ?? "";
  if (text === "") return 0;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new ConfigError(`${DEPTH_VARIABLE} is ${shown(text)}: must be a whole number. Servers set it; unset it.`);
}

/** They stand in no table: a flag or a file of settings is no place for them. */
const SECRETS = ["CLAUDE_CODE_MCP_RESUME_SECRET", ...SECRET_VARIABLES];

/** A sentence for each variable that has our prefix and yet no effect: a misspelt bound is no bound. */
export function unknownVariables(env: Environment): string[] {
  const known = SETTINGS.map(({ variable }) => variable);
  const ofServers = [DEPTH_VARIABLE, PROCESS_VARIABLE, ...SECRETS];
  return Object.keys(env)
    .filter((name) => name.startsWith("CLAUDE_CODE_MCP_") && !ofServers.includes(name) && !known.includes(name))
    .map((name) => `${name} is not a setting of this version and has no effect.${didYouMean(name, known)}`);
}

/** The start folder is looked up where a path counts from it: it can have been deleted. */
const startOf =
  ({ cwd, home }: ConfigSources): Base =>
  () => ({ folder: cwd ?? process.cwd(), home });

function fromFlags(sources: ConfigSources): GivenByKey {
  const given = new Map<string, Given>();
  for (const { setting, written, text, negated } of readFlags(sources.argv)) {
    const value = text === undefined ? !negated : fromText(setting, text, startOf(sources));
    const before = given.get(setting.key)?.value;
    // A list grows with each flag; of any other setting the last flag counts.
    const joined = setting.reading === "directories" && before !== undefined ? [before, value].flat() : value;
    given.set(setting.key, { value: joined, from: written });
  }
  return given;
}

function fromVariables(sources: ConfigSources): GivenByKey {
  const given = new Map<string, Given>();
  const start = startOf(sources);
  for (const setting of SETTINGS) {
    const text = sources.env[setting.variable];
    if (text === undefined) continue;
    // Clients hand on unset variables as empty ones. An empty list of directories is refused: it would allow everything.
    if (text === "" && setting.reading !== "directories") continue;
    const value =
      setting.reading === "directories"
        ? absolute(directoriesIn(text), start)
        : switched(setting, fromText(setting, text, start));
    given.set(setting.key, { value, from: setting.variable });
  }
  return given;
}

interface FileSources extends Pick<ConfigSources, "home"> {
  readonly readFile: (path: string) => string;
}

function fromFile(path: Given | undefined, { home, readFile }: FileSources): GivenByKey {
  if (path === undefined) return new Map();
  if (typeof path.value !== "string" || path.value === "") throw refused(path, CONFIG_FILE);
  const name = path.value;
  const keys = SETTINGS.filter(({ inFile }) => inFile);
  const given = new Map<string, Given>();
  for (const [key, value] of Object.entries(parseFile(name, path.from, readFile))) {
    const setting = keys.find((known) => known.key === key);
    if (setting === undefined) {
      const known = keys.map((entry) => entry.key);
      throw new ConfigError(`Unknown key "${key}" in ${name}.${didYouMean(key, known)}`);
    }
    const isList = setting.reading === "directories" && value !== ANYWHERE;
    const read =
      isList || isPath(setting, value)
        ? absolute(value, () => ({ folder: dirname(name), home }))
        : switched(setting, value);
    given.set(key, { value: read, from: `"${key}" in ${name}` });
  }
  return given;
}

function parseFile(name: string, from: string, readFile: (path: string) => string): JsonObject {
  let text: string;
  try {
    text = readFile(name);
  } catch (cause) {
    throw new ConfigError(`The file of ${from} cannot be read: ${reason(cause)}`, cause);
  }
  let content: unknown;
  try {
    content = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (cause) {
    throw new ConfigError(`${name} is not JSON: ${reason(cause)}`, cause);
  }
  const parsed = JsonObject.safeParse(content);
  if (!parsed.success) throw new ConfigError(`${name} must hold one JSON object of settings.`);
  return parsed.data;
}

/** A rule for a tool, Bash(echo a, b), is one word. */
const COMMA = /,(?![^(]*\))/;

/** The comma, and what separates directories on any system. */
const ANY_SEPARATOR = /[,:;]/;

/** A flag that may stand alone is in a variable and in the file a switch as well. */
function switched({ alone }: Setting, value: unknown): unknown {
  if (alone === undefined) return value;
  if (value === true || value === "true" || value === "1") return alone;
  return value === false || value === "false" || value === "0" ? undefined : value;
}

/** The value that a file would hold; text that cannot be read so stays as it is, and the schema refuses it. */
function fromText(setting: Setting, text: string, start: Base): unknown {
  switch (setting.reading) {
    case "number":
      return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
    case "boolean":
      return fromSwitch(text);
    case "path":
    case "store":
      return isPath(setting, text) ? absolute(text, start) : text;
    case "directories":
      return absolute([text], start);
    case "words":
      return text.split(setting.plainWords === true ? ANY_SEPARATOR : COMMA).map((word) => word.trim());
    case "json":
      return fromJson(text);
    case "text":
      return text;
  }
}

function fromSwitch(text: string): boolean | string {
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : text;
}

/** What is none stays as it was written. */
function isPath({ reading }: Setting, value: unknown): boolean {
  return reading === "path" || (reading === "store" && typeof value === "string" && isStorePath(value));
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Paths inside `value` made absolute, a leading ~ being the home folder; what is no path is left for the schema to refuse. */
function absolute(value: unknown, base: Base): unknown {
  if (Array.isArray(value)) return value.map((each) => absolute(each, base));
  if (typeof value !== "string" || value === "") return value;
  const { folder, home } = base();
  return absolutePath(value, folder, home);
}

function check(given: GivenByKey): Config {
  const settings = SETTINGS.filter(({ key, inFile }) => inFile && given.has(key));
  const parsed = Config.safeParse(Object.fromEntries(settings.map(({ key }) => [key, given.get(key)?.value])));
  if (parsed.success) return consistent(parsed.data, given.get("allowDirs")?.value === ANYWHERE);
  const bad = settings.find(({ key }) => parsed.error.issues.some(({ path }) => path[0] === key));
  const source = bad === undefined ? undefined : given.get(bad.key);
  if (bad === undefined || source === undefined) throw parsed.error;
  const issue = parsed.error.issues.find(({ path }) => path[0] === bad.key);
  // A refinement of ours says what is wrong.
  if (issue?.code === "custom") throw new ConfigError(`${source.from} cannot be used: ${issue.message}`);
  if (bad.reading !== "json") throw refused(source, bad);
  const where = issue?.path.slice(1).map(String).join(".") ?? "";
  throw new ConfigError(`${source.from} cannot be used${where && `, at ${where}`}: ${issue?.message ?? bad.allowed}.`);
}

/** What each setting by itself could not tell. */
function consistent(config: Config, isAnywhere: boolean): Config {
  checkApprovers(config);
  checkTokens(config.principals);
  checkConfined(config, isAnywhere);
  return listingSomething(config);
}

/** A server without a tool is a mistake that would go unnoticed. */
function listingSomething(config: Config): Config {
  if (config.queryEnable || config.toolsets.some((toolset) => toolset !== "query")) return config;
  throw new ConfigError(
    "toolsets: no tool would be listed, because only query is named and query-enable is false. Add a toolset, or set query-enable.",
  );
}

function refused({ value, from }: Given, { allowed }: Setting): ConfigError {
  return new ConfigError(`${from} is ${shown(value)}: must be ${allowed}.`);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function readText(path: string): string {
  return readFileSync(path, "utf8");
}
