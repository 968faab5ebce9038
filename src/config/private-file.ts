import { readFile, stat } from "node:fs/promises";
import { ConfigError } from "./error.ts";

/** A larger file holds something else. */
const MAX_BYTES = 8_192;

/** The text of a file that holds a `kind` of secret, which only the user of the server can read or write. Throws ConfigError. */
export async function readPrivate(file: string, kind: "secret" | "token"): Promise<string> {
  try {
    const found = await stat(file);
    if (!found.isFile() || found.size > MAX_BYTES)
      throw new ConfigError(`${file} is not a regular file. Name a file that contains the ${kind}.`);
    // Windows has no such bits; there the folder of the user protects it.
    if (process.platform !== "win32" && (found.mode & 0o077) !== 0) {
      throw new ConfigError(
        `The ${kind} file ${file} is readable by other users. Run chmod 600 on it, and replace the ${kind}.`,
      );
    }
    // Sessions can run as another user (spawnWrapper), who would choose what is in it.
    if (process.geteuid !== undefined && found.uid !== process.geteuid() && found.uid !== 0) {
      throw new ConfigError(`The ${kind} file ${file} belongs to another user. Change its owner (chown).`);
    }
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`The ${kind} file ${file} cannot be read: ${String(error)}.`, error);
  }
}
