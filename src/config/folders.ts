import { homedir } from "node:os";
import { join } from "node:path";
import { PRODUCT } from "../domain/names.ts";
import { invalidArgument } from "../domain/error.ts";

/** Where this server keeps what it may lose: in the user's cache folder, where each system has it. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>, product = PRODUCT): string {
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: cache } = env;
  // Beside the state folder, which lies there too.
  if (process.platform === "win32") return join(local ?? join(homedir(), "AppData", "Local"), `${product}-cache`);
  if (process.platform === "darwin") return join(homedir(), "Library", "Caches", product);
  // A relative path there is to be ignored, as the specification has it.
  return join(cache?.startsWith("/") === true ? cache : join(homedir(), ".cache"), product);
}

/** Checked at each use, because it can be deleted meanwhile. Throws AppError. */
export function startFolder(): string {
  try {
    return process.cwd();
  } catch {
    throw invalidArgument(
      "cwd",
      "the folder in which the server was started no longer exists. Name an existing folder.",
    );
  }
}
