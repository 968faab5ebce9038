import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import { PRODUCT } from "../domain/names.ts";

/** What this program keeps for the user, where each system has it. */
export function stateFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  if (platform === "win32") {
    const local = env["LOCALAPPDATA"] ?? win32.join(env["USERPROFILE"] ?? homedir(), "AppData", "Local");
    return win32.join(local, PRODUCT);
  }
  const home = env["HOME"] ?? homedir();
  if (platform === "darwin") return posix.join(home, "Library", "Application Support", PRODUCT);
  const state = env["XDG_STATE_HOME"];
  // A relative path there is to be ignored, as the specification has it.
  return posix.join(state?.startsWith("/") ? state : posix.join(home, ".local", "state"), PRODUCT);
}
