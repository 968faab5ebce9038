import { readFileSync } from "node:fs";
import { access } from "node:fs/promises";
import type { ConnectionOptions } from "node:tls";
import { ConfigError } from "../../../config/error.ts";
import { readPrivateFile } from "../../../config/private-file.ts";
import { storePasswordFile } from "../../../config/store.ts";

/** Meaning of the URL of a database. Variables of the environment (`PGHOST` and the like) never change it. */

/** Location of the database, as in the settings. */
export interface DatabaseLocation {
  readonly url: string;
  readonly passwordFile?: string | undefined;
}

type TlsMode = "disable" | "prefer" | "require" | "verify-ca" | "verify-full";
const TLS_MODES: readonly TlsMode[] = ["disable", "prefer", "require", "verify-ca", "verify-full"];

export interface Target {
  /** Name in messages: host, port and database. */
  readonly name: string;
  /** A host name, or the folder of a socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** Schema with the tables. */
  readonly schema: string;
  readonly tlsMode: TlsMode;
  readonly tlsFiles: Readonly<Partial<Record<"ca" | "cert" | "key", string>>>;
}

const DEFAULT_SCHEMA = "claude_agents_mcp";
const DEFAULT_PORT = 5432;
const SCHEMA_NAME = /^[a-z_][a-z\d_]{0,62}$/;
/** Files of TLS, by the parameter of the URL, named as libpq names it. */
const TLS_FILES = [
  ["ca", "sslrootcert"],
  ["cert", "sslcert"],
  ["key", "sslkey"],
] as const;
const PARAMETERS: ReadonlySet<string> = new Set([
  "host",
  "search_path",
  "sslmode",
  "user",
  ...TLS_FILES.map(([, parameter]) => parameter),
]);

/** Reads `postgres://USER@HOST:PORT/DATABASE?PARAMETERS`. Throws `Error` with the reason. */
export function readTarget(url: string, userName: () => string): Target {
  const { hostname, pathname, port, searchParams, username } = new URL(url);
  const given = new Map(searchParams);
  const unknown = [...given.keys()].find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined)
    throw new Error(`the parameter ${unknown} is unknown. Parameters: ${[...PARAMETERS].join(", ")}.`);
  const host = decodeURIComponent(hostname).replace(/^\[(.*)\]$/, "$1") || (given.get("host") ?? "localhost");
  const [database, number] = [decodeURIComponent(pathname.slice(1)), port === "" ? DEFAULT_PORT : Number(port)];
  return {
    name: `postgres://${host.includes(":") ? `[${host}]` : host}:${String(number)}/${database}`,
    host,
    port: number,
    user: decodeURIComponent(username) || (given.get("user") ?? userName()),
    database,
    schema: schemaIn(given.get("search_path")),
    tlsMode: tlsModeIn(given.get("sslmode"), host),
    tlsFiles: Object.fromEntries(
      TLS_FILES.flatMap(([name, parameter]) => {
        const file = given.get(parameter);
        return file === undefined ? [] : [[name, file]];
      }),
    ),
  };
}

function schemaIn(text = DEFAULT_SCHEMA): string {
  if (!SCHEMA_NAME.test(text)) throw new Error("search_path: name one schema, in small letters.");
  return text;
}

/** By default, encrypts the way to another machine if its server can, as libpq does. */
function tlsModeIn(text: string | undefined, host: string): TlsMode {
  const isLocal = host.startsWith("/") || host === "localhost" || host === "::1" || host.startsWith("127.");
  const mode = text ?? (isLocal ? "disable" : "prefer");
  if (!isTlsMode(mode)) throw new Error(`sslmode: write one of ${TLS_MODES.join(", ")}.`);
  return mode;
}

function isTlsMode(text: string): text is TlsMode {
  return TLS_MODES.some((mode) => mode === text);
}

/** Returns the options of TLS, false for none. Sockets and `disable` have none. */
export function tlsOptions({ host, tlsFiles, tlsMode }: Target): ConnectionOptions | false {
  if (tlsMode === "disable" || host.startsWith("/")) return false;
  const files = Object.fromEntries(Object.entries(tlsFiles).map(([name, file]) => [name, readFileSync(file, "utf8")]));
  const isVerified = tlsMode === "verify-full" || tlsMode === "verify-ca";
  return {
    ...files,
    rejectUnauthorized: isVerified,
    // Compares the name of the host only for `verify-full`.
    ...(tlsMode === "verify-ca" && { checkServerIdentity: () => undefined }),
  };
}

/**
 * Returns the password for `target`: the first line of `passwordFile`, otherwise the user's password file of libpq; "" for none.
 * Read for each connection, so that a changed password needs no restart. Throws ConfigError for a file that others can read.
 */
export async function findPassword(target: Target, location: DatabaseLocation) {
  const { passwordFile } = location;
  if (passwordFile !== undefined) {
    const password = firstLine(await readPrivateFile(passwordFile, "secret"));
    if (password !== "") return password;
    throw new ConfigError(
      `The file ${passwordFile} of --store-password-file has no password in its first line. Write it there.`,
    );
  }
  const { APPDATA, HOME } = process.env;
  const file = storePasswordFile({ kind: "postgres", ...location }, { APPDATA, HOME });
  const exists = file !== undefined && (await isThere(file));
  return exists ? passwordIn(await readPrivateFile(file, "secret"), target) : "";
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

function firstLine(text: string): string {
  return text.split(/\r?\n/, 1)[0] ?? "";
}

/** Returns the password in the first line `host:port:database:user:password` that fits; `*` fits anything. */
function passwordIn(text: string, { database, host, port, user }: Target): string {
  const sought = [host.startsWith("/") ? "localhost" : host, String(port), database, user];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith("#")) continue;
    const fields = [...line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g)].map(([, field = ""]) =>
      field.replaceAll(/\\(.)/g, "$1"),
    );
    const fits = sought.every((value, index) => fields[index] === "*" || fields[index] === value);
    if (fits && fields[4] !== undefined) return fields[4];
  }
  return "";
}
