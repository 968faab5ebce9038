import type { SessionPolicy } from "../domain/approvals/session-policy.ts";
import { fileAccess } from "../security/files/limited.ts";
import { environmentPaths } from "../security/installation-paths.ts";
import { protectedPaths, type OwnedPath, type ProtectedPath } from "../security/protected-paths.ts";
import { configFolder, stateFile } from "./child-environment.ts";
import type { EnvironmentRecords, Variables } from "./environment-records.ts";
import { executedClaudeFiles } from "./locate.ts";
import type { SandboxPolicy } from "./sandbox/sandbox.ts";

/**
 * Determines the places closed to sessions: this server's own, and files that processes of any environment record are started
 * from or read at their start. A session that could write another client's Claude Code would run in the name of that client.
 */

/** Places independent of environment records. */
export interface ServerPlaces {
  readonly owned: readonly OwnedPath[];
  /** Subset of `owned` that no shell needs. */
  readonly files: readonly OwnedPath[];
  /** Claude configuration folders of principals; in `trusted` folders, settings of a project may run commands. */
  readonly configFolders: readonly string[];
  readonly trusted: readonly string[];
}

interface RecordPlaces {
  readonly owned: readonly OwnedPath[];
  readonly rows: readonly ProtectedPath[];
  readonly configFolder: string;
  readonly stateFile: string;
}

export class ProtectedPlaces {
  readonly #server: ServerPlaces;
  readonly #environments: Pick<EnvironmentRecords, "get" | "ids">;
  readonly #serverRows: Promise<readonly ProtectedPath[]>;
  readonly #records = new Map<string, Promise<RecordPlaces>>();

  constructor(server: ServerPlaces, environments: Pick<EnvironmentRecords, "get" | "ids">) {
    this.#server = server;
    this.#environments = environments;
    this.#serverRows = protectedPaths(server.owned);
    // Each use awaits the promise; without a handler Node would report an unhandled rejection.
    this.#serverRows.catch(() => undefined);
  }

  /** Returns the paths that no session may reach with file tools. */
  async closed(): Promise<readonly ProtectedPath[]> {
    const records = await this.#ofRecords();
    return distinct([...(await this.#serverRows), ...records.flatMap(({ rows }) => rows)]);
  }

  /** Returns the sandbox bounds of a session with this policy. */
  async sandbox({ places, sandboxDomains: domains }: SessionPolicy): Promise<SandboxPolicy> {
    const records = await this.#ofRecords();
    const { configFolders, files, owned, trusted } = this.#server;
    const kept = [...owned, ...records.flatMap((each) => each.owned)].filter(({ extent }) => extent !== "checkout");
    return {
      domains,
      closed: [...new Set([...files.flatMap(filesOf), ...records.map((each) => each.stateFile)])],
      writeProtected: [...new Set(kept.flatMap(filesOf))],
      configFolders: [...new Set([...records.map((each) => each.configFolder), ...configFolders])],
      trusted: [...new Set([...places.flatMap(({ trustDirs }) => trustDirs), ...trusted])],
    };
  }

  async #ofRecords(): Promise<RecordPlaces[]> {
    const { ids } = this.#environments;
    for (const id of this.#records.keys()) if (!ids.includes(id)) this.#records.delete(id);
    return Promise.all(ids.map(async (id) => this.#records.get(id) ?? this.#lookUp(id)));
  }

  async #lookUp(id: string): Promise<RecordPlaces> {
    const places = findRecordPlaces(this.#environments.get(id) ?? {});
    this.#records.set(id, places);
    // An unresponsive path is closed by its name only, so the places are looked up again until the path answers.
    const forget = () => fileAccess.isStuck && this.#records.delete(id);
    places.then(forget, forget);
    return places;
  }
}

async function findRecordPlaces(environment: Variables): Promise<RecordPlaces> {
  const claude = { folder: configFolder(environment), record: stateFile(environment) };
  const owned = environmentPaths({ environment, claude, started: await executedClaudeFiles(environment) });
  return { owned, rows: await protectedPaths(owned), configFolder: claude.folder, stateFile: claude.record };
}

function distinct(rows: readonly ProtectedPath[]): ProtectedPath[] {
  return [...new Map(rows.map((row) => [JSON.stringify([row.path, row.real, row.extent]), row])).values()];
}

/** Adds SQLite's files, which are the relevant names with the prefix. */
function filesOf({ extent, path }: OwnedPath): string[] {
  return extent === "prefix" ? [path, ...["-wal", "-shm", "-journal"].map((end) => path + end)] : [path];
}
