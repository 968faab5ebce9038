import { dirname } from "node:path";
import type { Environment } from "../daemon/daemon-environment.ts";
import { absolutePath } from "../config/paths.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import { userFilePath } from "../config/state-folder.ts";
import { isStorePath, SPELLINGS, storeKindOf } from "../config/store-spelling.ts";
import { depthAbove, depthIn } from "../security/ancestors.ts";

/** Decides which clients get a server in their own process and why, and finds the daemon named by other clients. */

interface StartContext {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  readonly env: Environment;
  readonly pid: number;
  readonly platform: NodeJS.Platform;
}

/**
 * Returns the reason for a server in this process; `undefined` for a client of a daemon. Reads settings without validation,
 * because the server reports faults.
 */
export function reasonForOwnServer({ argv, env, pid, platform }: StartContext): string | undefined {
  const reason = reasonInSettings({ argv, env, platform });
  if (reason !== undefined || namedDaemon({ argv, env }) !== undefined) return reason;
  if (isNested({ env, pid })) return "it was started inside a session";
  if (pid === 1) return "it is the first process of a container";
  const confined = CONFINEMENT_VARIABLES.find((name) => isSet(env[name]));
  return confined && `it is confined (${confined} is set)`;
}

/** Decides as `reasonForOwnServer`, by settings alone, for a client that is started elsewhere. */
export function reasonInSettings({ argv, env, platform }: Omit<StartContext, "pid">): string | undefined {
  const setting = (name: SettingName) => readSetting({ argv, env }, name);
  const daemon = setting(DAEMON) ?? (platform === "win32" ? "off" : "auto");
  if (daemon === "off" || daemon === NO_VALUE) return "--daemon off";
  if (isSet(setting(HTTP))) return "it serves HTTP";
  const kind = storeKindOf(setting(STORE) ?? "");
  return kind && !SPELLINGS[kind].isShared ? `sessions in ${kind} end with their server` : undefined;
}

/** True inside a session. A daemon there would not know the nesting depth of its client. */
export function isNested({ env, pid }: Pick<StartContext, "env" | "pid">): boolean {
  return Math.max(depthIn(env), depthAbove(pid)) > 0;
}

/** Returns the name in `--daemon`; `undefined` for the automatic daemon, or none. */
export function namedDaemon(start: Pick<StartContext, "argv" | "env">): string | undefined {
  const name = readSetting(start, DAEMON);
  return name === undefined || ["auto", "off", NO_VALUE].includes(name) ? undefined : name;
}

/** Variables of sandboxes that no process can detect in itself (Seatbelt, Landlock). */
const CONFINEMENT_VARIABLES = [
  "APP_SANDBOX_CONTAINER_ID",
  "CODEX_SANDBOX",
  "CODEX_SANDBOX_NETWORK_DISABLED",
  "SANDBOX",
  "SANDBOX_RUNTIME",
];

interface SettingName {
  readonly flag: string;
  readonly variable: string;
  readonly key: string;
}

const DAEMON = { flag: "--daemon", variable: "CLAUDE_CODE_MCP_DAEMON", key: "daemon" };
const HTTP = { flag: "--http", variable: "CLAUDE_CODE_MCP_HTTP", key: "http" };
const STORE = { flag: "--store", variable: "CLAUDE_CODE_MCP_STORE", key: "store" };
const PASSWORD = {
  flag: "--store-password-file",
  variable: "CLAUDE_CODE_MCP_STORE_PASSWORD_FILE",
  key: "storePasswordFile",
};
const CONFIG = { flag: "--config", variable: "CLAUDE_CODE_MCP_CONFIG", key: "config" };

function isSet(value: string | undefined): boolean {
  return value !== undefined && !["", "0", "false"].includes(value);
}

/** Value of a flag without a value. */
const NO_VALUE = "true";

/** Reads a setting. Precedence: flag, variable, `--config` file, user's file. */
function readSetting(start: Pick<StartContext, "argv" | "env">, name: SettingName): string | undefined {
  return (
    givenValue(start, name) ??
    readFromFile(clientFilePath(start), name.key) ??
    readFromFile(userFilePath(start.env), name.key)
  );
}

function givenValue(
  { argv, env }: Pick<StartContext, "argv" | "env">,
  { flag, variable }: SettingName,
): string | undefined {
  const found = argv.flatMap((word, at) => {
    if (word.startsWith(`${flag}=`)) return [word.slice(flag.length + 1)];
    if (word !== flag) return [];
    const next = argv[at + 1];
    return [next === undefined || next.startsWith("-") ? NO_VALUE : next];
  });
  // Ignores empty variables, because clients pass unset variables on as empty.
  return found.at(-1) ?? (env[variable] === "" ? undefined : env[variable]);
}

/** Returns `--store`, with an absolute path; `undefined` for the default in the state folder. */
export function findStore(start: Pick<StartContext, "argv" | "env">): string | undefined {
  return findPath(start, STORE, (text) => !isStorePath(text));
}

/** Returns flags of `serve` that name the store of a client to its daemon. */
export function storeFlags(start: Pick<StartContext, "argv" | "env">): string[] {
  const store = findStore(start);
  const password = findPath(start, PASSWORD);
  return [
    ...(store === undefined ? [] : [STORE.flag, store]),
    ...(password === undefined ? [] : [PASSWORD.flag, password]),
  ];
}

/** Reads a setting, and makes the path absolute, unless `isOther` says that the text is none. */
function findPath(
  start: Pick<StartContext, "argv" | "env">,
  name: SettingName,
  isOther: (text: string) => boolean = () => false,
): string | undefined {
  const resolved = (text: string, base: string) => (isOther(text) ? text : absolutePath(text, base));
  const own = givenValue(start, name);
  if (own !== undefined) return resolved(own, process.cwd());
  for (const file of [clientFilePath(start), userFilePath(start.env)]) {
    const text = readFromFile(file, name.key);
    if (file !== undefined && text !== undefined) return resolved(text, dirname(file));
  }
  return undefined;
}

/** Returns the text of the client's `--config` file, or the reason why the file cannot be read; `undefined` without a file. */
export function readClientFile(
  start: Pick<StartContext, "argv" | "env">,
): { text: string } | { fault: string } | undefined {
  const file = clientFilePath(start);
  if (file === undefined) return undefined;
  try {
    return { text: readSettingsFile(file) };
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}

function clientFilePath(start: Pick<StartContext, "argv" | "env">): string | undefined {
  const file = givenValue(start, CONFIG);
  return file === undefined ? undefined : absolutePath(file, process.cwd());
}

function readFromFile(file: string | undefined, key: string): string | undefined {
  if (file === undefined) return undefined;
  try {
    const content: unknown = JSON.parse(readSettingsFile(file).replace(/^\uFEFF/, ""));
    const value: unknown = typeof content === "object" && content !== null ? Reflect.get(content, key) : undefined;
    return typeof value === "string" || typeof value === "boolean" || typeof value === "number"
      ? String(value)
      : undefined;
  } catch {
    // The server reports faults of the file.
    return undefined;
  }
}
