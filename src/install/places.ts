import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { posix, win32 } from "node:path";

/** The machine as the table of clients sees it. */
export interface Places {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** The folder of the project: that in which the command runs. */
  readonly project: string;
  readonly exists: (path: string) => boolean;
}

export function thesePlaces(env: Places["env"], project: string): Places {
  const { platform } = process;
  const home = (platform === "win32" ? env["USERPROFILE"] : env["HOME"]) ?? homedir();
  return { platform, env, home, project, exists: existsSync };
}

export function joined({ platform }: Places, ...parts: string[]): string {
  return (platform === "win32" ? win32 : posix).join(...parts);
}

/** The folder of a variable, as programs take it: an empty one is none. */
export function folderOf({ env }: Places, variable: string): string | undefined {
  const value = env[variable];
  return value === "" ? undefined : value;
}

/** `$XDG_CONFIG_HOME`, or `~/.config`. */
export function xdgConfig(places: Places): string {
  const folder = folderOf(places, "XDG_CONFIG_HOME");
  // A relative path there is to be ignored, as the specification has it.
  return folder?.startsWith("/") === true ? folder : joined(places, places.home, ".config");
}

/** Where applications keep what is the user's own: each system has one folder for it. */
export function applicationData(places: Places): string {
  if (places.platform === "win32") {
    return folderOf(places, "APPDATA") ?? joined(places, places.home, "AppData", "Roaming");
  }
  if (places.platform === "darwin") return joined(places, places.home, "Library", "Application Support");
  return xdgConfig(places);
}
