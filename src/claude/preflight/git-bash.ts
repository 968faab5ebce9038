import { win32 } from "node:path";
import { invalidArgument } from "../../domain/error.ts";

/**
 * Finds Git Bash, with which Claude Code runs shell commands on Windows. Claude Code looks at two places and beside the git in
 * `PATH`; without Git Bash only PowerShell remains, and if PowerShell is turned off, Claude Code does not start.
 */

export interface Machine {
  readonly platform: NodeJS.Platform;
  /** Environment of the Claude Code to start. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly exists: (path: string) => Promise<boolean>;
}

export type WindowsShell =
  | { readonly kind: "not windows" }
  /** `path` is handed to Claude Code. */
  | { readonly kind: "bash"; readonly path: string }
  | { readonly kind: "powershell only" }
  | { readonly kind: "none" };

export const BASH_VARIABLE = "CLAUDE_CODE_GIT_BASH_PATH";

export const BASH_ADVICE = `Install Git for Windows (https://git-scm.com/downloads/win), or set ${BASH_VARIABLE} to your bash.exe, for instance C:\\Program Files\\Git\\bin\\bash.exe.`;

export async function windowsShell({ platform, environment, exists }: Machine): Promise<WindowsShell> {
  if (platform !== "win32") return { kind: "not windows" };
  const variables = withoutCase(environment);
  const named = variables.get(BASH_VARIABLE) ?? "";
  const usual = [...(isShell(named) ? [named] : []), ...usualPlaces(variables)];
  const [path] = await present([...usual, ...(await besideGit(variables, exists))], exists);
  if (path !== undefined) return { kind: "bash", path };
  return isOff(variables.get("CLAUDE_CODE_USE_POWERSHELL_TOOL")) ? { kind: "none" } : { kind: "powershell only" };
}

/** Throws INVALID_ARGUMENT if Claude Code would not start for want of a shell. */
export async function checkShell(machine: Machine): Promise<void> {
  if ((await windowsShell(machine)).kind !== "none") return;
  const problem =
    "Git Bash was not found on this machine, and PowerShell is turned off (CLAUDE_CODE_USE_POWERSHELL_TOOL).";
  throw invalidArgument("env", `${problem} Claude Code needs one of them. ${BASH_ADVICE}`);
}

/** Notice in the session's log. */
export const NO_BASH = `Git Bash was not found: Claude Code has no Bash tool and runs commands with PowerShell. ${BASH_ADVICE}`;

/** Returns names in upper case, because Windows ignores their case and a copied environment does not. */
function withoutCase(environment: Machine["environment"]): ReadonlyMap<string, string> {
  return new Map(Object.entries(environment).flatMap(([name, value]) => (value ? [[name.toUpperCase(), value]] : [])));
}

function isShell(path: string): boolean {
  return ["bash.exe", "sh.exe", "bash", "sh"].includes(win32.basename(path).toLowerCase());
}

/** Returns the paths used by the installers (for all users, for a single user) and by scoop. */
function usualPlaces(variables: ReadonlyMap<string, string>): string[] {
  const programs = ["PROGRAMFILES", "PROGRAMW6432", "PROGRAMFILES(X86)"].map((name) => variables.get(name));
  const home = variables.get("USERPROFILE");
  const local = variables.get("LOCALAPPDATA") ?? (home && win32.join(home, "AppData", "Local"));
  const folders = [
    ...[...programs, "C:\\Program Files", "C:\\Program Files (x86)"].map((each) => each && win32.join(each, "Git")),
    local && win32.join(local, "Programs", "Git"),
    home && win32.join(home, "scoop", "apps", "git", "current"),
  ];
  return folders.flatMap((folder) => (folder === undefined ? [] : [bashIn(folder)]));
}

/** `git.exe` lies in cmd, bin or mingw64\bin of its installation. */
async function besideGit(variables: ReadonlyMap<string, string>, exists: Machine["exists"]): Promise<string[]> {
  const folders = (variables.get("PATH") ?? "").split(";").map((folder) => folder.replaceAll('"', "").trim());
  const programs = folders.filter((folder) => win32.isAbsolute(folder)).map((folder) => win32.join(folder, "git.exe"));
  const found = await present(programs, exists);
  return found.flatMap((git) => [bashIn(win32.join(git, "..", "..")), bashIn(win32.join(git, "..", "..", ".."))]);
}

async function present(paths: readonly string[], exists: Machine["exists"]): Promise<string[]> {
  const found = await Promise.all(paths.map(async (path) => ((await exists(path)) ? [path] : [])));
  return found.flat();
}

function bashIn(folder: string): string {
  return win32.join(folder, "bin", "bash.exe");
}

function isOff(switched: string | undefined): boolean {
  return ["0", "false", "no", "off"].includes((switched ?? "").trim().toLowerCase());
}
