import { homedir } from "node:os";
import { join } from "node:path";
import { PRODUCT } from "../domain/names.ts";

/** Returns the folder for files that can be deleted at any time, below the cache folder of the user. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: cache } = env;
  // Suffix `-cache`, because the state folder is also in `LOCALAPPDATA`.
  if (process.platform === "win32") return join(local ?? join(homedir(), "AppData", "Local"), `${PRODUCT}-cache`);
  if (process.platform === "darwin") return join(homedir(), "Library", "Caches", PRODUCT);
  // The XDG specification says to ignore a relative path.
  return join(cache?.startsWith("/") === true ? cache : join(homedir(), ".cache"), PRODUCT);
}
