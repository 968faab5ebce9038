/**
 * Environment of a daemon that a proxy starts: only variables that the process itself needs, because clients may differ in all
 * others. Sessions run with the environments of their clients.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** Size of the thread pool of libuv. `startDaemon` sets the variable. */
export const THREAD_POOL_SIZE = "UV_THREADPOOL_SIZE";

/** Names of variables. A trailing `*` matches any rest. */
const KEPT_VARIABLES = [
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "PATH",
  "LANG",
  "LC_*",
  "TZ",
  "TMPDIR",
  "XDG_CACHE_HOME",
  "XDG_CONFIG_HOME",
  "XDG_DATA_HOME",
  "XDG_STATE_HOME",
  "XDG_RUNTIME_DIR",
  "SSL_CERT_*",
  "NODE_EXTRA_CA_CERTS",
  "CLAUDE_CODE_MCP_CONSTANTS",
  THREAD_POOL_SIZE,
];

/** In capitals, because Windows ignores the case of names. */
const KEPT_ON_WINDOWS = [
  ...KEPT_VARIABLES,
  "ALLUSERSPROFILE",
  "APPDATA",
  "COMMONPROGRAMFILES*",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "NUMBER_OF_PROCESSORS",
  "OS",
  "PATHEXT",
  "PROCESSOR_*",
  "PROGRAMDATA",
  "PROGRAMFILES*",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERDOMAIN",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
];

/** Returns the variables that a daemon keeps. Idempotent. */
export function daemonEnvironment(
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const isWindows = platform === "win32";
  const listed = isWindows ? KEPT_ON_WINDOWS : KEPT_VARIABLES;
  const isKept = (name: string) =>
    listed.some((word) => (word.endsWith("*") ? name.startsWith(word.slice(0, -1)) : name === word));
  const entries = Object.entries(environment).flatMap(([name, value]): [string, string][] =>
    value !== undefined && isKept(isWindows ? name.toUpperCase() : name) ? [[name, value]] : [],
  );
  return Object.fromEntries(entries);
}
