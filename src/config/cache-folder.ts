import { homedir } from "node:os";
import { join } from "node:path";

/** Where this server keeps what it may lose: in the user's cache folder, where each system has it. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: cache } = env;
  return join(ofUser(), "claude-code-mcp");

  function ofUser(): string {
    if (process.platform === "win32") return local ?? join(homedir(), "AppData", "Local");
    if (process.platform === "darwin") return join(homedir(), "Library", "Caches");
    // A relative path there is to be ignored, as the specification has it.
    return cache?.startsWith("/") === true ? cache : join(homedir(), ".cache");
  }
}
