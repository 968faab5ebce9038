import { posix, win32 } from "node:path";
import { stateFolder } from "../config/state-folder.ts";
import type { StoreLocation } from "../config/store.ts";
import type { Logger, SessionBackend } from "../engine/ports.ts";
import { withEphemeral } from "./layers.ts";
import { createMemoryStore } from "./memory.ts";
import { Access } from "./sqlite/connect/access.ts";
import { SqliteBackend } from "./sqlite/backend.ts";
import type { Self } from "./sqlite/leases.ts";
import { openConnection } from "./sqlite/connect/open-file.ts";

export interface StoreOptions extends Self {
  readonly log: Logger;
}

/** The store at `location`. A file is opened, and made where there is none, with the first call. */
export function openStore(location: StoreLocation, { log, ...self }: StoreOptions): SessionBackend {
  const memory = createMemoryStore(self.clock).connect(self.nodeId);
  switch (location.kind) {
    case "memory":
      return memory;
    case "sqlite": {
      const { file } = location;
      const access = new Access(file, async () => openConnection(file, log));
      return withEphemeral(new SqliteBackend(self, access), memory, self.clock);
    }
  }
}

/** In the state folder. */
export const STORE_FILE = "store.db";

export function defaultStorePath(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  return (platform === "win32" ? win32 : posix).join(stateFolder(env, platform), STORE_FILE);
}
