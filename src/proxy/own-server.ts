import { dirname } from "node:path";
import type { Environment } from "../daemon/environment.ts";
import { absolutePath } from "../config/paths.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import { userFilePath } from "../config/state-folder.ts";
import { SPELLINGS, storeKindOf } from "../config/store-spelling.ts";
import { depthAbove, depthIn } from "../security/ancestors.ts";

/** Tells which clients get a server of their own, in the process that they start, and why; and which daemon the others name. */

interface Start {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  readonly env: Environment;
  readonly pid: number;
  readonly platform: NodeJS.Platform;
}

/**
 * Undefined where a daemon is to serve the client. Settings are only looked at, not checked: what is wrong with them the server
 * says.
 */
export function reasonForOwnServer({ argv, env, pid, platform }: Start): string | undefined {
  const reason = reasonInSettings({ argv, env, platform });
  if (reason !== undefined || namedDaemon({ argv, env }) !== undefined) return reason;
  if (isNested({ env, pid })) return "it was started inside a session";
  if (pid === 1) return "it is the first process of a container";
  const confined = OF_CONFINEMENT.find((name) => isSet(env[name]));
  return confined && `${confined} says that it is confined`;
}

/** Does as `reasonForOwnServer` for a client that is started elsewhere: by its settings alone. */
export function reasonInSettings({ argv, env, platform }: Omit<Start, "pid">): string | undefined {
  const setting = (name: Name) => settingOf({ argv, env }, name);
  const daemon = setting(DAEMON) ?? (platform === "win32" ? "off" : "auto");
  if (daemon === "off" || daemon === NO_VALUE) return "--daemon off";
  if (isSet(setting(HTTP))) return "it serves HTTP";
  const kind = storeKindOf(setting(STORE) ?? "");
  return kind && !SPELLINGS[kind].isShared ? `sessions in ${kind} end with their server` : undefined;
}

/** A daemon there would not know how deep its client is. */
export function isNested({ env, pid }: Pick<Start, "env" | "pid">): boolean {
  return Math.max(depthIn(env), depthAbove(pid)) > 0;
}

/** The daemon that is named by `--daemon`; undefined for the automatic one, or none. */
export function namedDaemon(start: Pick<Start, "argv" | "env">): string | undefined {
  const name = settingOf(start, DAEMON);
  return name === undefined || ["auto", "off", NO_VALUE].includes(name) ? undefined : name;
}

/** Variables of programs that confine what they start by means that no process can see of itself: Seatbelt, Landlock. */
const OF_CONFINEMENT = [
  "APP_SANDBOX_CONTAINER_ID",
  "CODEX_SANDBOX",
  "CODEX_SANDBOX_NETWORK_DISABLED",
  "SANDBOX",
  "SANDBOX_RUNTIME",
];

interface Name {
  readonly flag: string;
  readonly variable: string;
  readonly key: string;
}

const DAEMON = { flag: "--daemon", variable: "CLAUDE_CODE_MCP_DAEMON", key: "daemon" };
const HTTP = { flag: "--http", variable: "CLAUDE_CODE_MCP_HTTP", key: "http" };
const STORE = { flag: "--store", variable: "CLAUDE_CODE_MCP_STORE", key: "store" };
const CONFIG = { flag: "--config", variable: "CLAUDE_CODE_MCP_CONFIG", key: "config" };

function isSet(value: string | undefined): boolean {
  return value !== undefined && !["", "0", "false"].includes(value);
}

/** Stands for the value of a flag that has none. */
const NO_VALUE = "true";

/** A flag over a variable over the file over the user's file. */
function settingOf(start: Pick<Start, "argv" | "env">, name: Name): string | undefined {
  return given(start, name) ?? inFile(ownFile(start), name.key) ?? inFile(userFilePath(start.env), name.key);
}

function given({ argv, env }: Pick<Start, "argv" | "env">, { flag, variable }: Name): string | undefined {
  const found = argv.flatMap((word, at) => {
    if (word.startsWith(`${flag}=`)) return [word.slice(flag.length + 1)];
    if (word !== flag) return [];
    const next = argv[at + 1];
    return [next === undefined || next.startsWith("-") ? NO_VALUE : next];
  });
  // Clients hand on unset variables as empty ones.
  return found.at(-1) ?? (env[variable] === "" ? undefined : env[variable]);
}

/** The file of the sessions, by its absolute path; undefined for that of the state folder. */
export function storeFile(start: Pick<Start, "argv" | "env">): string | undefined {
  const own = given(start, STORE);
  if (own !== undefined) return absolutePath(own, process.cwd());
  for (const file of [ownFile(start), userFilePath(start.env)]) {
    const path = inFile(file, STORE.key);
    if (file !== undefined && path !== undefined) return absolutePath(path, dirname(file));
  }
  return undefined;
}

/** The text of the client's file of settings, or why it cannot be read; undefined where it names none. */
export function clientFile(start: Pick<Start, "argv" | "env">): { text: string } | { fault: string } | undefined {
  const file = ownFile(start);
  if (file === undefined) return undefined;
  try {
    return { text: readSettingsFile(file) };
  } catch (error) {
    return { fault: error instanceof Error ? error.message : String(error) };
  }
}

function ownFile(start: Pick<Start, "argv" | "env">): string | undefined {
  const file = given(start, CONFIG);
  return file === undefined ? undefined : absolutePath(file, process.cwd());
}

function inFile(file: string | undefined, key: string): string | undefined {
  if (file === undefined) return undefined;
  try {
    const content: unknown = JSON.parse(readSettingsFile(file).replace(/^\uFEFF/, ""));
    const value: unknown = typeof content === "object" && content !== null ? Reflect.get(content, key) : undefined;
    return typeof value === "string" || typeof value === "boolean" || typeof value === "number"
      ? String(value)
      : undefined;
  } catch {
    // The server says what is wrong with it.
    return undefined;
  }
}
