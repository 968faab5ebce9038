import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { storeTraits } from "../config/store.ts";
import { socketFolders } from "../daemon/folders.ts";
import { identityOf } from "../daemon/identity.ts";
import { shimSettings } from "../daemon/shim-sockets.ts";

/**
 * The shims of a server over HTTP: the next one with the same arguments, settings and environment goes on with its turns. Who runs the
 * server starts it again. Undefined where it is to have none, or its sessions are in its memory.
 */
export async function httpShim(config: Config, argv: readonly string[]): Promise<ReturnType<typeof shimSettings>> {
  if (config.store && !storeTraits(config.store).isShared) return undefined;
  const folder = stateFolder(process.env, process.platform);
  const folders = await socketFolders(folder, process.env);
  const { name } = await identityOf({ argv, cwd: process.cwd(), env: process.env, stateFolder: folder });
  return shimSettings(config, { folders, name, stateFolder: folder });
}
