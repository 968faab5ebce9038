import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import { PRODUCT } from "../domain/names.ts";

/** Returns the folder for data of this program, at the usual place of each system. */
export function stateFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (platform === "win32") {
    const local = env["LOCALAPPDATA"] ?? win32.join(env["USERPROFILE"] ?? homedir(), "AppData", "Local");
    return win32.join(local, PRODUCT);
  }
  const home = env["HOME"] ?? homedir();
  if (platform === "darwin") return posix.join(home, "Library", "Application Support", PRODUCT);
  const state = env["XDG_STATE_HOME"];
  // The XDG specification says to ignore a relative path.
  return posix.join(state?.startsWith("/") ? state : posix.join(home, ".local", "state"), PRODUCT);
}

const USER_FILE = "config.json";

/**
 * Returns the path of the user's settings file (`user-file.ts`). Ignores a relative `XDG_CONFIG_HOME`, as the specification
 * says.
 */
export function userFilePath(
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform = process.platform,
): string {
  if (platform === "win32") {
    const roaming = env["APPDATA"] ?? win32.join(env["USERPROFILE"] ?? homedir(), "AppData", "Roaming");
    return win32.join(roaming, PRODUCT, USER_FILE);
  }
  const { XDG_CONFIG_HOME: folder } = env;
  const home = env["HOME"] ?? homedir();
  return posix.join(folder?.startsWith("/") ? folder : posix.join(home, ".config"), PRODUCT, USER_FILE);
}
