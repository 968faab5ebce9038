import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { posix, win32 } from "node:path";

/** Machine, as used by the table of clients. */
export interface Places {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Folder of the project: the current folder. */
  readonly project: string;
  readonly exists: (path: string) => boolean;
}

export function createPlaces(env: Places["env"], project: string): Places {
  const { platform } = process;
  const home = (platform === "win32" ? env["USERPROFILE"] : env["HOME"]) ?? homedir();
  return { platform, env, home, project, exists: existsSync };
}

export function joined({ platform }: Places, ...parts: string[]): string {
  return (platform === "win32" ? win32 : posix).join(...parts);
}

/** Returns the folder in a variable. Empty counts as unset, as in most programs. */
export function folderOf({ env }: Places, variable: string): string | undefined {
  const value = env[variable];
  return value === "" ? undefined : value;
}

/** `$XDG_CONFIG_HOME`, or `~/.config`. */
export function xdgConfig(places: Places): string {
  const folder = folderOf(places, "XDG_CONFIG_HOME");
  // The XDG specification says to ignore a relative path.
  return folder?.startsWith("/") === true ? folder : joined(places, places.home, ".config");
}

/** Returns the system's folder for application data of the user. */
export function applicationData(places: Places): string {
  if (places.platform === "win32") {
    return folderOf(places, "APPDATA") ?? joined(places, places.home, "AppData", "Roaming");
  }
  if (places.platform === "darwin") return joined(places, places.home, "Library", "Application Support");
  return xdgConfig(places);
}
