import { homedir } from "node:os";
import { join } from "node:path";
import { PRODUCT } from "../domain/names.ts";

/** Where this server keeps what it may lose: in the user's cache folder, where each system has it. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: cache } = env;
  // Beside the state folder, which lies there too.
  if (process.platform === "win32") return join(local ?? join(homedir(), "AppData", "Local"), `${PRODUCT}-cache`);
  if (process.platform === "darwin") return join(homedir(), "Library", "Caches", PRODUCT);
  // A relative path there is to be ignored, as the specification has it.
  return join(cache?.startsWith("/") === true ? cache : join(homedir(), ".cache"), PRODUCT);
}
