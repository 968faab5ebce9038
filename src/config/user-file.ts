import { boundsOf } from "./bounds.ts";
import { ConfigError } from "./error.ts";
import { fromObject, readObject, type ConfigSources, type UserFile } from "./given-values.ts";
import { SETTINGS } from "./schema.ts";
import { JsonObject } from "../domain/json.ts";
import { readSettingsFile } from "./settings-file.ts";
import { userFilePath } from "./state-folder.ts";

/** Reads the settings file of a user, common to all servers: server settings, defaults of terms, and `bounds` for clients. */

const BOUNDS = "bounds";

/** Returns empty settings if there is no file. Throws ConfigError. */
export function readUserFile({ env, home, readFile }: Pick<ConfigSources, "env" | "home" | "readFile">): UserFile {
  const path = userFilePath(env);
  const { [BOUNDS]: bounds = {}, ...settings } = readContent(path, readFile);
  refuseHttp(settings, path);
  const keys = SETTINGS.filter(({ inFile }) => inFile);
  const own = JsonObject.safeParse(bounds);
  if (!own.success) throw new ConfigError(`"${BOUNDS}" in ${path} must be an object with terms as its keys.`);
  const terms = keys.filter(({ of }) => of === "term");
  const unboundable = keys.find(({ key, of }) => of !== "term" && key in own.data);
  if (unboundable) {
    const advice = `Set "${unboundable.key}" beside "${BOUNDS}".`;
    throw new ConfigError(
      `"${BOUNDS}.${unboundable.key}" in ${path} has no effect: only terms of clients can be bounded. ${advice}`,
    );
  }
  const place = { name: path, home };
  return {
    path,
    given: fromObject(settings, keys, place),
    bounds: boundsOf(fromObject(own.data, terms, { ...place, within: `${BOUNDS}.` })),
  };
}

function readContent(path: string, readFile: ConfigSources["readFile"] = readSettingsFile): JsonObject {
  try {
    return readObject(path, path, readFile);
  } catch (error) {
    if (error instanceof ConfigError && isAbsent(error.cause)) return {};
    throw error;
  }
}

function isAbsent(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR");
}

/** Throws ConfigError for `http`, because every server of the user would listen on the same address. */
function refuseHttp(settings: JsonObject, path: string): void {
  if (!("http" in settings)) return;
  throw new ConfigError(
    `"http" in ${path}: every server of yours would listen on this address. Use the flag of a single server: serve --http.`,
  );
}
