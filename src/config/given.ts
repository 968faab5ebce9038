import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { JsonObject } from "../domain/json.ts";
import { ConfigError } from "./error.ts";
import { GONE_VARIABLES, refuseGone } from "./gone.ts";
import { readFlags } from "./parse-flags.ts";
import { absolutePath, directoriesIn } from "./paths.ts";
import { QUERY_KEYS, QUERY_VARIABLES } from "./query.ts";
import { isStorePath } from "./store-spelling.ts";
import { CONFIG_FILE, SETTINGS, type Terms } from "./schema.ts";
import { ANYWHERE, type Setting } from "./setting.ts";
import { didYouMean } from "../domain/suggest.ts";

/**
 * Values as flags, variables and files give them, before they are checked. Relative paths count from the current directory, in a
 * file from the file's folder.
 */

export interface ConfigSources {
  /** Words behind the command. */
  readonly argv: readonly string[];
  readonly env: Environment;
  /** Relative paths of flags and variables count from it. A daemon gives that of its client; default: that of this process. */
  readonly cwd?: string;
  /** The folder that a leading ~ stands for; default: that of the user of this process. */
  readonly home?: string;
  /** Settings of the user's file; none is read by default. */
  readonly user?: Pick<UserFile, "given">;
  /** The text of a file. Throws when it cannot be read. */
  readonly readFile?: (path: string) => string;
}

/** The user's file of settings, in the folder of configurations: see user-file.ts. */
export interface UserFile {
  readonly path: string;
  readonly given: GivenByKey;
  readonly bounds: Partial<Terms>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** A value before it is checked, and where it came from. */
export interface Given {
  readonly value: unknown;
  /** Names the source in messages: a flag, a variable, or a key and its file. */
  readonly from: string;
}

/** The folder that relative paths count from, and the user's. */
type Base = () => { readonly folder: string; readonly home: string | undefined };

export type GivenByKey = ReadonlyMap<string, Given>;

/** The start folder is looked up where a path counts from it: it can have been deleted. */
const startOf =
  ({ cwd, home }: ConfigSources): Base =>
  () => ({ folder: cwd ?? process.cwd(), home });

export function fromFlags(sources: ConfigSources): GivenByKey {
  const given = new Map<string, Given>();
  for (const { setting, written, text, negated } of readFlags(sources.argv)) {
    const value = text === undefined ? !negated : fromText(setting, text, startOf(sources));
    const before = given.get(setting.key)?.value;
    // A list grows with each flag; of any other setting the last flag counts.
    const joined = setting.reading === "directories" && before !== undefined ? [before, value].flat() : value;
    given.set(setting.key, { value: joined, from: written });
  }
  return withKeys(given, startOf(sources));
}

export function fromVariables(sources: ConfigSources): GivenByKey {
  const given = new Map<string, Given>();
  const start = startOf(sources);
  for (const name of GONE_VARIABLES) if ((sources.env[name] ?? "") !== "") refuseGone(name);
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
  const keys = QUERY_VARIABLES.flatMap((setting): [string, Given][] => {
    const text = sources.env[setting.variable] ?? "";
    return text === "" ? [] : [[setting.key, { value: fromText(setting, text, start), from: setting.variable }]];
  });
  return new Map([...withKeys(given, start), ...keys]);
}

/** Reads the file of `--config`, where there is one. */
export function fromConfigFile(
  path: Given | undefined,
  { home, readFile = readText }: Pick<ConfigSources, "home" | "readFile">,
): GivenByKey {
  if (path === undefined) return new Map();
  if (typeof path.value !== "string" || path.value === "") throw refused(path, CONFIG_FILE);
  const name = path.value;
  const keys = SETTINGS.filter(({ inFile }) => inFile);
  return fromObject(readObject(name, `The file of ${path.from}`, readFile), keys, { name, home });
}

interface InFile {
  readonly name: string;
  readonly home: string | undefined;
  /** Path of the object inside the file that has the keys. */
  readonly within?: string;
}

/** Throws ConfigError for a key that is not among those of `settings`. */
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
        refuseGone(key, `"${within}${key}" in ${name}`);
        throw unknownKey(`${within}${key}`, name, didYouMean(key, keysOf(settings)));
      }
      const isList = setting.reading === "directories" && value !== ANYWHERE;
      const read = isList || isPath(setting, value) ? absolute(value, base) : switched(setting, value);
      return [key, { value: read, from: `"${within}${key}" in ${name}` }];
    }),
  );
  return withKeys(given, base);
}

/** The keys of `query` each by itself, since they come from several sources. What is no object is refused later. */
function withKeys(given: GivenByKey, base: Base): GivenByKey {
  const query = given.get("query");
  const content = JsonObject.safeParse(query?.value);
  if (!query || !content.success) return given;
  const keys = Object.entries(content.data).map(([key, value]): [string, Given] => {
    const setting = QUERY_KEYS.find((known) => known.key === `query.${key}`);
    const known = QUERY_KEYS.map((each) => each.key.slice("query.".length));
    if (!setting) throw new ConfigError(`Unknown key "${key}" in ${query.from}.${didYouMean(key, known)}`);
    return [
      setting.key,
      { value: isPath(setting, value) ? absolute(value, base) : value, from: `${key} of ${query.from}` },
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

/** `what` names the file in messages. Throws ConfigError. */
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

export function refused({ value, from }: Given, { allowed }: Setting): ConfigError {
  return new ConfigError(`${from} is ${shown(value)}: must be ${allowed}.`);
}

/**
 * A message with the sources of settings in place of their flags and keys: who has set a variable looks for no flag. In advice a flag
 * with a value stays.
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

export function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

function readText(path: string): string {
  return readFileSync(path, "utf8");
}
