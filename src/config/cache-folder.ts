import { homedir } from "node:os";
import { join } from "node:path";
import { PRODUCT } from "../domain/names.ts";

/** Returns the folder for expendable files, in the user's cache folder of each system. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: cache } = env;
  // Next to the state folder, because Windows has both in `LOCALAPPDATA`.
  if (process.platform === "win32") return join(local ?? join(homedir(), "AppData", "Local"), `${PRODUCT}-cache`);
  if (process.platform === "darwin") return join(homedir(), "Library", "Caches", PRODUCT);
  // The XDG specification says to ignore a relative path.
  return join(cache?.startsWith("/") === true ? cache : join(homedir(), ".cache"), PRODUCT);
}
