import { isOuterSessionVariable } from "./outer-session.ts";

/**
 * Selects the variables of a client's environment that sessions get. Leaves out variables that describe only the client's
 * surroundings (shell, terminal, editor), so that two windows of a user share one environment record.
 */

/** Names of variables to leave out, by reason. A trailing `*` matches any rest. */
const EXCLUDED_BY_REASON: Readonly<Record<string, readonly string[]>> = {
  "the shell's place and nesting": ["PWD", "OLDPWD", "SHLVL", "_"],
  "the terminal that the client runs in": [
    "TERM",
    "TERM_*",
    "TERMINAL_*",
    "COLORTERM",
    "COLORFGBG",
    "COLUMNS",
    "LINES",
    "WINDOWID",
    "WINDOWPATH",
    "GPG_TTY",
    "SSH_TTY",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "VTE_VERSION",
    "WT_*",
    "ALACRITTY_*",
    "GHOSTTY_*",
    "GNOME_TERMINAL_*",
    "ITERM_*",
    "KITTY_*",
    "KONSOLE_*",
    "LC_TERMINAL*",
    "TERMINATOR_*",
    "TILIX_*",
    "WARP_*",
    "WEZTERM_*",
    "ZELLIJ*",
    "__CFBundleIdentifier",
    "XPC_FLAGS",
    "XPC_SERVICE_NAME",
  ],
  "the login session, which the daemon leaves": [
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "MANAGERPID",
    "SYSTEMD_EXEC_PID",
    "XDG_SESSION_ID",
    "XDG_VTNR",
  ],
  "the editor that is the client": [
    "VSCODE_*",
    "CURSOR_*",
    "ZED_*",
    "NVIM",
    "NVIM_*",
    "INSIDE_EMACS",
    "TERMINAL_EMULATOR",
  ],
  "what the proxy alone reads": ["CLAUDE_CODE_MCP_DAEMON", "CLAUDE_CODE_MCP_DAEMON_START_MS"],
  "npm and npx, which differ by the folder they run in": ["npm_*", "INIT_CWD", "NODE", "COLOR", "PROJECT_CWD"],
};

const EXCLUDED_NAMES = Object.values(EXCLUDED_BY_REASON).flat();

/** Returns the kept variables, sorted by name. Idempotent. */
export function clientVariables(
  environment: Readonly<Record<string, string | undefined>>,
  platform: string,
): Record<string, string> {
  const isWindows = platform === "win32";
  // Windows ignores the case of variable names.
  const fold = (name: string) => (isWindows ? name.toUpperCase() : name);
  const isListed = (name: string) =>
    EXCLUDED_NAMES.some((word) =>
      word.endsWith("*") ? name.startsWith(fold(word.slice(0, -1))) : name === fold(word),
    );
  const kept = Object.entries(environment).flatMap(([name, value]): [string, string][] => {
    if (value === undefined || isListed(fold(name)) || isOuterSessionVariable(fold(name))) return [];
    return [[name, fold(name) === "PATH" ? withoutNpmEntries(value, isWindows ? ";" : ":") : value]];
  });
  return Object.fromEntries(kept.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * Entries that npm prepends to `PATH`: `node_modules/.bin` of the current folder and of each parent, and npm's own node-gyp.
 */
const NPM_PATH_ENTRY =
  /[\\/]node_modules[\\/](?:\.bin|npm[\\/]node_modules[\\/]@npmcli[\\/]run-script[\\/]lib[\\/]node-gyp-bin)$/;

function withoutNpmEntries(path: string, delimiter: string): string {
  const entries = path.split(delimiter);
  const first = entries.findIndex((entry) => !NPM_PATH_ENTRY.test(entry));
  return entries.slice(Math.max(first, 0)).join(delimiter);
}

/** Settings of the query toolset. Despite the prefix `CLAUDE_CODE_` they belong to this server, not to Claude Code. */
const QUERY_TOOLSET_VARIABLES = [
  "CLAUDE_CODE_ENABLE",
  "CLAUDE_CODE_DEFAULT_CWD",
  "CLAUDE_CODE_DEFAULT_MODEL",
  "CLAUDE_CODE_DEFAULT_PERMISSION_MODE",
  "CLAUDE_CODE_MAX_TURNS",
  "CLAUDE_CODE_MAX_MESSAGES",
  "CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES",
  "CLAUDE_CODE_ALLOWED_TOOLS",
  "CLAUDE_CODE_MAX_EXECUTION_TIME",
];

/** True for a setting of this server. Such a variable is a term of the client and is not passed on to sessions. */
export function isServerSetting(name: string): boolean {
  return QUERY_TOOLSET_VARIABLES.includes(name) || name.startsWith("CLAUDE_CODE_MCP_");
}

/** Variable in an environment record with the path of the client's Claude Code. Never passed to a process. */
export const CLAUDE_PATH = "CLAUDE_CODE_MCP_CLAUDE_PATH";

/** Sets `CLAUDE_PATH` to the path from the settings, and overwrites or removes the client's own variable. */
export function withClaudePath(
  environment: Readonly<Record<string, string | undefined>>,
  claudePath: string | undefined,
): Readonly<Record<string, string | undefined>> {
  return { ...environment, [CLAUDE_PATH]: claudePath };
}
