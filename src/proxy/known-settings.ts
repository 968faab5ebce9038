import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { isAllowed } from "../config/schemaless-checks.ts";
import { absolutePath, directoriesIn } from "../config/paths.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import { userFilePath } from "../config/state-folder.ts";
import { isStorePath } from "../config/store-spelling.ts";
import type { Environment } from "../daemon/daemon-environment.ts";
import type { TableSetting } from "./static-file.ts";

/**
 * Reads settings without schemas, if all of them can be checked by hand. Values equal those of `loadConfig`
 * (src/config/load.ts); a test compares both.
 */

export interface Sources {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  readonly env: Environment;
}

type Values = ReadonlyMap<string, unknown>;

/** Returns the given settings by key; `undefined` if the server might refuse one. */
export function readSettings(table: readonly TableSetting[], { argv, env }: Sources): Values | undefined {
  try {
    const flags = fromFlags(table, argv);
    const variables = fromVariables(table, env);
    const file = fromFile(table, flags.get(CONFIG) ?? variables.get(CONFIG));
    const own = new Map([...file, ...variables, ...flags]);
    if (table.some(({ key, of }) => of === "server" && own.has(key))) return undefined;
    return new Map([...fromUserFile(table, userFilePath(env)), ...own]);
  } catch {
    return undefined;
  }
}

/** Key of the settings file, which cannot name another settings file. */
const CONFIG = "config";

/** Called only if needed, because `process.cwd` throws in a deleted folder. */
const start = () => process.cwd();

function fromFlags(table: readonly TableSetting[], argv: readonly string[]): Values {
  const given = new Map<string, unknown>();
  const words = [...argv];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    const [written = "", inline] = word.split(/=(.*)/s);
    const { isNegated, setting } = settingAt(table, written);
    const isSwitch = setting.reading === "boolean" && inline === undefined;
    const text = inline ?? (isSwitch ? String(!isNegated) : valueIn(words));
    if (isNegated && !isSwitch) throw uncheckable(written);
    const value = fromText(setting, text, start);
    const before: unknown = given.get(setting.key);
    // Repeated flags of a list of folders add up.
    const joined = setting.reading === "directories" && before !== undefined ? [before, value].flat() : value;
    put(given, { base: start, setting, table }, joined);
  }
  return given;
}

function settingAt(table: readonly TableSetting[], written: string) {
  const isNegated = written.startsWith("--no-");
  const flag = written.slice(isNegated ? "--no-".length : "--".length);
  const setting = table.find((each) => each.flag === flag && (!isNegated || each.reading === "boolean"));
  if (!setting || !written.startsWith("--")) throw uncheckable(written);
  return { isNegated, setting };
}

/** Takes the next word. Throws if there is none, or a flag. */
function valueIn(words: string[]): string {
  const text = words.shift();
  if (text === undefined || text.startsWith("-")) throw uncheckable("a flag without a value");
  return text;
}

function fromVariables(table: readonly TableSetting[], env: Environment): Values {
  const given = new Map<string, unknown>();
  for (const setting of table) {
    const text = env[setting.variable];
    if (text === undefined || (text === "" && setting.reading !== "directories")) continue;
    const value =
      setting.reading === "directories"
        ? directoriesIn(text).map((path) => absolute(path, start))
        : fromText(setting, text, start);
    put(given, { base: start, setting, table }, value);
  }
  return given;
}

interface PutContext {
  readonly base: () => string;
  readonly setting: TableSetting;
  readonly table: readonly TableSetting[];
}

/** Stores `value`. The object `query` is stored by its keys, which have settings of their own; as text, `query` is JSON. */
function put(given: Map<string, unknown>, { base, setting, table }: PutContext, value: unknown): void {
  if (setting.key !== "query") return void given.set(setting.key, checked(setting, value));
  const content: unknown = typeof value === "string" ? JSON.parse(value) : value;
  if (typeof content !== "object" || content === null || Array.isArray(content)) throw uncheckable(setting.key);
  for (const [key, each] of Object.entries(content)) {
    const own = table.find((one) => one.key === `query.${key}`);
    if (!own) throw uncheckable(key);
    given.set(own.key, checked(own, inFile(own, each, base)));
  }
}

/** Reads the user's file as the daemon does at its start. Throws for `bounds`, which only the daemon applies. */
function fromUserFile(table: readonly TableSetting[], path: string): Values {
  return existsSync(path) ? fromFile(table, path) : new Map();
}

function fromFile(table: readonly TableSetting[], path: unknown): Values {
  if (typeof path !== "string") return new Map();
  const content: unknown = JSON.parse(readSettingsFile(path).replace(/^\uFEFF/, ""));
  if (typeof content !== "object" || content === null || Array.isArray(content)) throw uncheckable(path);
  const given = new Map<string, unknown>();
  const base = () => dirname(path);
  for (const [key, value] of Object.entries(content)) {
    const setting = table.find((each) => each.key === key && each.flag !== undefined && key !== CONFIG);
    if (!setting || (setting.reading === "json" && typeof value === "string")) throw uncheckable(key);
    put(given, { base, setting, table }, inFile(setting, value, base));
  }
  return given;
}

/** Makes paths absolute, from `base`. */
function inFile({ reading }: Pick<TableSetting, "reading">, value: unknown, base: () => string): unknown {
  if (Array.isArray(value) && reading === "directories") return value.map((each) => inFile(PATH, each, base));
  if (typeof value !== "string") return value;
  return reading === "path" || (reading === "store" && isStorePath(value)) ? absolute(value, base) : value;
}

const PATH = { reading: "path" } as const;

/** Commas inside the parentheses of a rule do not separate words. */
const COMMA = /,(?![^(]*\))/;
const ANY_SEPARATOR = /[,:;]/;
const SWITCH: Readonly<Record<string, boolean>> = { true: true, "1": true, false: false, "0": false };

function fromText({ plainWords = false, reading }: TableSetting, text: string, base: () => string): unknown {
  switch (reading) {
    case "number":
      return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
    case "boolean":
      return Object.hasOwn(SWITCH, text) ? SWITCH[text] : text;
    case "path":
      return absolute(text, base);
    case "store":
      return isStorePath(text) ? absolute(text, base) : text;
    case "directories":
      return [absolute(text, base)];
    case "words":
      return text.split(plainWords ? ANY_SEPARATOR : COMMA).map((word) => word.trim());
    case "json":
    case "text":
      return text;
  }
}

function absolute(path: string, base: () => string): string {
  return path === "" ? path : absolutePath(path, base());
}

/** Returns `value`. Throws if the server might refuse the value. */
function checked(setting: TableSetting, value: unknown): unknown {
  if (setting.byHand && isAllowed(setting.reading, setting.byHand, value)) return value;
  throw uncheckable(setting.key);
}

function uncheckable(what: string): Error {
  return new Error(`${what} cannot be checked without schemas`);
}
