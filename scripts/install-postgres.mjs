// Finds the programs of PostgreSQL, pgbouncer and HAProxy for test/machines, and installs missing ones on Debian, without
// starting their services. scripts/start-postgres.mjs starts a server. By hand, `node scripts/install-postgres.mjs` prints the folder.
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { install, succeeds, WITHOUT_SERVICES } from "./debian.mjs";

/** Folders of versions, each with `bin`: Debian's, Homebrew's. */
const VERSIONS = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"];

/** Value of POSTGRES that skips the tests with PostgreSQL. */
export const SKIP = "skip";

/** Returns the folder of `initdb` and `postgres`. Throws an Error with the remedy. */
export function postgresFolder() {
  const { POSTGRES_BIN: wanted } = process.env;
  if (wanted) {
    if (isThere(wanted)) return wanted;
    throw new Error(`POSTGRES_BIN is ${wanted}, which has no initdb. Set it to such a folder, or not at all.`);
  }
  return found() ?? installed();
}

/** Returns the path of pgbouncer. Throws an Error with the remedy. */
export function pgbouncer() {
  return service("pgbouncer", "1 MB");
}

/** Returns the path of HAProxy. Throws an Error with the remedy. */
export function haproxy() {
  return service("haproxy", "2 MB");
}

function service(what, size) {
  const path = `/usr/sbin/${what}`;
  if (existsSync(path)) return path;
  install({ packages: [what], size, what, whatToDo: WHAT_TO_DO, meanwhile: WITHOUT_SERVICES });
  // Debian also enables the service for the next start of the machine.
  succeeds("systemctl", ["disable", what]);
  return path;
}

/** Returns the newest version. */
function found() {
  const folders = VERSIONS.flatMap((folder) => (existsSync(folder) ? readdirSync(folder).map(binIn(folder)) : []));
  return folders.toSorted((one, other) => other.localeCompare(one, "en", { numeric: true })).find(isThere);
}

const binIn = (folder) => (version) => join(folder, version, "bin");

function isThere(folder) {
  try {
    for (const program of ["initdb", "postgres", "psql"]) accessSync(join(folder, program), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Keeps Debian's package from creating a cluster, which would start with the machine. */
const WITHOUT_CLUSTER = {
  "/etc/postgresql-common/createcluster.d/claude-agents-mcp.conf": "create_main_cluster = false\n",
};

function installed() {
  const meanwhile = { ...WITHOUT_SERVICES, ...WITHOUT_CLUSTER };
  const what = "PostgreSQL";
  const seconds = install({ packages: ["postgresql"], size: "20 MB", what, whatToDo: WHAT_TO_DO, meanwhile });
  const path = found();
  if (path === undefined) throw new Error(`apt-get has installed PostgreSQL, but not in ${VERSIONS[0]}. ${WHAT_TO_DO}`);
  console.error(`PostgreSQL was installed in ${String(seconds)} s: ${path}`);
  return path;
}

const WHAT_TO_DO =
  "Install it by hand (Debian: apt-get install postgresql pgbouncer haproxy), or set POSTGRES_BIN to the folder of initdb; " +
  `POSTGRES=${SKIP} skips the tests that need it.`;

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    console.log(postgresFolder());
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
