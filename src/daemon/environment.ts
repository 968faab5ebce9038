/**
 * The environment of a daemon that a client's end has started: what the process itself needs, and nothing of what its clients may
 * differ in. Their sessions have their own.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** Number of threads for files, which a daemon gets at its start. */
export const THREADS = "UV_THREADPOOL_SIZE";

/** Names, and beginnings of names that end in `*`. */
const KEPT = [
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
  THREADS,
];

/** In capitals: the case of a name does not matter there. */
const KEPT_ON_WINDOWS = [
  ...KEPT,
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

/** Returns what a daemon keeps of the environment; given its own, the same again. */
export function daemonEnvironment(
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const isWindows = platform === "win32";
  const listed = isWindows ? KEPT_ON_WINDOWS : KEPT;
  const isKept = (name: string) =>
    listed.some((word) => (word.endsWith("*") ? name.startsWith(word.slice(0, -1)) : name === word));
  const entries = Object.entries(environment).flatMap(([name, value]): [string, string][] =>
    value !== undefined && isKept(isWindows ? name.toUpperCase() : name) ? [[name, value]] : [],
  );
  return Object.fromEntries(entries);
}
