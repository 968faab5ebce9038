import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ClaudeLocator } from "../claude/locate.ts";
import { ConfigError } from "../config/error.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { loadConfig } from "../config/load.ts";
import { serverSettings } from "../config/server-settings.ts";
import { findNetworkKind } from "../config/network-path.ts";
import type { Config } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { defaultStore, type StoreLocation, storeTraits } from "../config/store.ts";
import { withClaudePath } from "../domain/client-environment.ts";
import { PackageCache } from "../packages/package-cache.ts";
import { sandboxProblem } from "../security/sandbox.ts";
import type { DatabaseFacts } from "../store/postgres/connect/inspect.ts";
import { StoreReport } from "./store-report.ts";

/** Everything that checks look at. Tests replace members, because no test machine has a full disk or another Node. */
export interface Machine {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly nodeVersion: string;
  readonly cwd: string;
  readonly home: string;
  /** Script of this program, as started. */
  readonly script: string;
  readonly config: Config;
  /** Set if the settings cannot be used; `config` then has the defaults. */
  readonly configProblem: string | undefined;
  /** Keys in the user's file; `undefined` if the settings cannot be used. */
  readonly userFile: UserSettings | undefined;
  readonly stateFolder: string;
  readonly cacheFolder: string;
  /** `undefined` if sessions are not in a file. */
  readonly store: string | undefined;
  readonly storeKind: StoreLocation["kind"];
  readonly claude: { readonly locate: () => ReturnType<ClaudeLocator["locate"]> };
  /** Packages installed for this program by npm, or installable. */
  readonly packages: PackageCache;
  /** Bytes on the file system of `folder`, free for this user. */
  readonly freeBytes: (folder: string) => Promise<number>;
  readonly networkKindOf: (folder: string) => Promise<string | undefined>;
  /** Reads in a child process, because SQLite blocks and a disk that hangs must not block doctor. */
  readonly readStore: (file: string, ms: number) => Promise<StoreReport>;
  /** Looks at the database; `undefined` if sessions are not in one. */
  readonly readDatabase: (() => Promise<DatabaseFacts>) | undefined;
  readonly sandboxProblem: () => Promise<string | undefined>;
}

interface UserSettings {
  readonly path: string;
  readonly keys: readonly string[];
  readonly bounds: readonly string[];
}

/** `argv` has flags of `serve`. */
export function createMachine(argv: readonly string[], environment: NodeJS.ProcessEnv): Machine {
  const { config, problem, userFile } = readSettings(argv, environment);
  const { store = defaultStore(stateFolder(environment, process.platform), process.platform) } = config;
  const cache = cacheFolder(environment);
  const packages = new PackageCache({ cacheFolder: cache, environment });
  const locator = new ClaudeLocator({ cacheFolder: cache, log: { warn: () => undefined }, packages });
  return {
    environment,
    nodeVersion: process.versions.node,
    cwd: process.cwd(),
    script: process.argv[1] ?? "",
    home: environment["HOME"] ?? environment["USERPROFILE"] ?? homedir(),
    config,
    configProblem: problem,
    userFile,
    stateFolder: stateFolder(environment, process.platform),
    cacheFolder: cache,
    store: storeTraits(store).file,
    storeKind: store.kind,
    claude: { locate: async () => locator.locate(withClaudePath(environment, config.claudePath)) },
    packages,
    freeBytes,
    networkKindOf: findNetworkKind,
    readStore: readOnce(),
    readDatabase: store.kind === "postgres" ? async () => (await inspection()).inspectDatabase(store) : undefined,
    sandboxProblem: async () => sandboxProblem(environment),
  };
}

interface Settings extends Pick<Machine, "config" | "userFile"> {
  readonly problem: string | undefined;
}

function readSettings(argv: readonly string[], env: NodeJS.ProcessEnv): Settings {
  try {
    const { bounds, config, user } = serverSettings({ argv, env });
    const userFile = { path: user.path, keys: [...user.given.keys()], bounds: Object.keys(bounds) };
    return { config, userFile, problem: undefined };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config: loadConfig({ argv: [], env: {} }), userFile: undefined, problem: error.message };
  }
}

async function freeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    const above = dirname(folder);
    if (above === folder || !(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    return freeBytes(above);
  }
}

/** Loaded only for a database. */
const inspection = async () => import("../store/postgres/connect/inspect.ts");

const run = promisify(execFile);

/** Shares a reading between checks, because it goes through the whole file. */
function readOnce(): Machine["readStore"] {
  let reading: Promise<StoreReport> | undefined;
  return async (file, ms) => (reading ??= readStore(file, ms));
}

async function readStore(file: string, ms: number): Promise<StoreReport> {
  const program = fileURLToPath(new URL("./store-process.js", import.meta.url));
  try {
    const { stdout } = await run(process.execPath, [program, file], { timeout: ms, killSignal: "SIGKILL" });
    return StoreReport.parse(JSON.parse(stdout));
  } catch (error) {
    const isLate = error instanceof Error && "killed" in error && error.killed === true;
    const lines = error instanceof Error ? error.message.split("\n") : [String(error)];
    const why = lines.find((line) => /Error\b/.test(line)) ?? lines[0] ?? "";
    return { kind: "unknown", reason: isLate ? `no answer within ${String(ms / 1000)} s` : why };
  }
}
