import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { JsonObject } from "../domain/json.ts";
import { ConfigError } from "./error.ts";
import { REMOVED_VARIABLES, refuseRemoved } from "./removed.ts";
import { readFlags } from "./parse-flags.ts";
import { absolutePath, directoriesIn } from "./paths.ts";
import { QUERY_KEYS, QUERY_VARIABLES } from "./query.ts";
import { isStorePath } from "./store-spelling.ts";
import { CONFIG_FILE, SETTINGS, type Terms } from "./schema.ts";
import { ANYWHERE, type Setting } from "./setting.ts";
import { didYouMean } from "../domain/suggest.ts";

/**
 * Reads values of flags, variables and files before they are checked. Relative paths start at the current directory; in a file,
 * at the folder of the file.
 */

export interface ConfigSources {
  /** Arguments after the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /**
   * Base of relative paths in flags and variables. Default: current folder of this process. A daemon passes its client's
   * folder.
   */
  readonly cwd?: string;
  /** Replaces a leading ~. Default: home folder of the user of this process. */
  readonly home?: string;
  /** Settings of the user's file; none is read by default. */
  readonly user?: Pick<UserFile, "given">;
  /** Returns the text of a file. Throws if the file cannot be read. */
  readonly readFile?: (path: string) => string;
}

/** Settings of the user, from the configuration folder (`user-file.ts`). */
export interface UserFile {
  readonly path: string;
  readonly given: GivenByKey;
  readonly bounds: Partial<Terms>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** A value with its source, not yet checked. */
export interface Given {
  readonly value: unknown;
  /** Name of the source in messages: a flag, a variable, or a key and its file. */
  readonly from: string;
}

/** Base of relative paths, and the home folder. */
type Base = () => { readonly folder: string; readonly home: string | undefined };

export type GivenByKey = ReadonlyMap<string, Given>;

/** Looks up the start folder only for a relative path, because the folder can have been deleted. */
const startBase =
  ({ cwd, home }: ConfigSources): Base =>
  () => ({ folder: cwd ?? process.cwd(), home });

export function fromFlags(sources: ConfigSources): GivenByKey {
  const given = new Map<string, Given>();
  for (const { setting, written, text, negated } of readFlags(sources.argv)) {
    const value = text === undefined ? !negated : fromText(setting, text, startBase(sources));
    const before = given.get(setting.key)?.value;
    // A repeated flag adds to a list. For other settings, the last flag counts.
    const joined = setting.reading === "directories" && before !== undefined ? [before, value].flat() : value;
    given.set(setting.key, { value: joined, from: written });
  }
  return splitQuery(given, startBase(sources));
}

export function fromVariables(sources: ConfigSources): GivenByKey {
  const given = new Map<string, Given>();
  const start = startBase(sources);
  for (const name of REMOVED_VARIABLES) if ((sources.env[name] ?? "") !== "") refuseRemoved(name);
  for (const setting of SETTINGS) {
    const text = sources.env[setting.variable];
    if (text === undefined) continue;
    // Clients pass unset variables on as empty. An empty list of directories is refused, because it would allow everything.
    if (text === "" && setting.reading !== "directories") continue;
    const value =
      setting.reading === "directories"
        ? makeAbsolute(directoriesIn(text), start)
        : readSwitch(setting, fromText(setting, text, start));
    given.set(setting.key, { value, from: setting.variable });
  }
  const keys = QUERY_VARIABLES.flatMap((setting): [string, Given][] => {
    const text = sources.env[setting.variable] ?? "";
    return text === "" ? [] : [[setting.key, { value: fromText(setting, text, start), from: setting.variable }]];
  });
  return new Map([...splitQuery(given, start), ...keys]);
}

/** Reads the file of `--config`, if any. */
export function fromConfigFile(
  path: Given | undefined,
  { home, readFile = readText }: Pick<ConfigSources, "home" | "readFile">,
): GivenByKey {
  if (path === undefined) return new Map();
  if (typeof path.value !== "string" || path.value === "") throw refusal(path, CONFIG_FILE);
  const name = path.value;
  const keys = SETTINGS.filter(({ inFile }) => inFile);
  return fromObject(readObject(name, `The file of ${path.from}`, readFile), keys, { name, home });
}

interface InFile {
  readonly name: string;
  readonly home: string | undefined;
  /** Path of the object inside the file, such as `bounds.`. */
  readonly within?: string;
}

/** Throws `ConfigError` if `content` has a key that is not in `settings`. */
export function fromObject(
  content: JsonObject,
  settings: readonly Setting[],
  { home, name, within = "" }: InFile,
): GivenByKey {
  const base = () => ({ folder: dirname(name), home });
  const given = new Map(
    Object.entries(content).map(([key, value]): [string, Given] => {
      const setting = settings.find((known) => known.key === key);
      if (setting === undefined) {
        refuseRemoved(key, `"${within}${key}" in ${name}`);
        throw unknownKey(`${within}${key}`, name, didYouMean(key, keysOf(settings)));
      }
      const isList = setting.reading === "directories" && value !== ANYWHERE;
      const read = isList || isPath(setting, value) ? makeAbsolute(value, base) : readSwitch(setting, value);
      return [key, { value: read, from: `"${within}${key}" in ${name}` }];
    }),
  );
  return splitQuery(given, base);
}

/**
 * Splits `query` into its keys, because each key may also have its own variable. Leaves a non-object for the schema to refuse.
 */
function splitQuery(given: GivenByKey, base: Base): GivenByKey {
  const query = given.get("query");
  const content = JsonObject.safeParse(query?.value);
  if (!query || !content.success) return given;
  const keys = Object.entries(content.data).map(([key, value]): [string, Given] => {
    const setting = QUERY_KEYS.find((known) => known.key === `query.${key}`);
    const known = QUERY_KEYS.map((each) => each.key.slice("query.".length));
    if (!setting) throw new ConfigError(`Unknown key "${key}" in ${query.from}.${didYouMean(key, known)}`);
    return [
      setting.key,
      { value: isPath(setting, value) ? makeAbsolute(value, base) : value, from: `${key} of ${query.from}` },
    ];
  });
  return new Map([...[...given].filter(([key]) => key !== "query"), ...keys]);
}

function keysOf(settings: readonly Setting[]): string[] {
  return settings.map(({ key }) => key);
}

function unknownKey(key: string, name: string, advice: string): ConfigError {
  return new ConfigError(`Unknown key "${key}" in ${name}.${advice}`);
}

/** Reads the JSON object in file `name`. `what` names the file in messages. Throws ConfigError. */
export function readObject(name: string, what: string, readFile = readText): JsonObject {
  let text: string;
  try {
    text = readFile(name);
  } catch (cause) {
    throw new ConfigError(`${what} cannot be read: ${reason(cause)}`, cause);
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

/** Commas outside parentheses: the rule `Bash(echo a, b)` is a single word. */
const COMMA = /,(?![^(]*\))/;

/** Comma, and the separators of directories on any system. */
const ANY_SEPARATOR = /[,:;]/;

/**
 * Reads true and false in a variable or file, for a setting whose flag may stand alone: true means the value `alone`, false
 * means no value.
 */
function readSwitch({ alone }: Setting, value: unknown): unknown {
  if (alone === undefined) return value;
  if (value === true || value === "true" || value === "1") return alone;
  return value === false || value === "false" || value === "0" ? undefined : value;
}

/** Converts `text` to the value that a JSON file would hold. Unreadable text stays unchanged, for the schema to refuse. */
function fromText(setting: Setting, text: string, start: Base): unknown {
  switch (setting.reading) {
    case "number":
      return /^-?\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : text;
    case "boolean":
      return fromSwitch(text);
    case "path":
    case "store":
      return isPath(setting, text) ? makeAbsolute(text, start) : text;
    case "directories":
      return makeAbsolute([text], start);
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

/** False for `memory:`, which is not a path. */
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

/** Makes paths in `value` absolute; a leading ~ is the home folder. Other values stay, for the schema to refuse. */
function makeAbsolute(value: unknown, base: Base): unknown {
  if (Array.isArray(value)) return value.map((each) => makeAbsolute(each, base));
  if (typeof value !== "string" || value === "") return value;
  const { folder, home } = base();
  return absolutePath(value, folder, home);
}

export function refusal({ value, from }: Given, { allowed }: Setting): ConfigError {
  return new ConfigError(`${from} is ${shortJson(value)}: must be ${allowed}.`);
}

/**
 * Replaces flags and keys in `message` by the source of their value, because a user who has set a variable does not know the
 * flag. In the advice after the first sentence, a flag followed by a value stays.
 */
export function bySource(message: string, given: GivenByKey): string {
  const [problem = "", ...advice] = message.split(/(?<=[.!?]) (?=[A-Z])/u);
  const named = (written: string, name: string) => {
    const key = written.startsWith("--") ? SETTINGS.find(({ flag }) => flag === name)?.key : written;
    return given.get(key ?? "")?.from ?? written;
  };
  return [
    problem.replaceAll(/--(?:no-)?([a-z-]+[a-z])|\bquery\.\w+/g, named),
    ...advice.map((sentence) => sentence.replaceAll(/--(?:no-)?([a-z-]+[a-z])(?=[.,;)]|$)/g, named)),
  ].join(" ");
}

export function shortJson(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function readText(path: string): string {
  return readFileSync(path, "utf8");
}
