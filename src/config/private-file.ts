import { readFile, stat } from "node:fs/promises";
import { ConfigError } from "./error.ts";

/** A larger file cannot be a secret. */
const MAX_BYTES = 8_192;

/** Reads a file with a `kind` of secret. Throws ConfigError unless only the user of the server can read and write it. */
export async function readPrivateFile(file: string, kind: "secret" | "token"): Promise<string> {
  try {
    const found = await stat(file);
    if (!found.isFile() || found.size > MAX_BYTES)
      throw new ConfigError(`${file} is not a regular file. Name a file that contains the ${kind}.`);
    // Windows has no mode bits; the user's folder protects the file there.
    if (process.platform !== "win32" && (found.mode & 0o077) !== 0) {
      throw new ConfigError(
        `The ${kind} file ${file} is readable by other users. Run chmod 600 on it, and replace the ${kind}.`,
      );
    }
    // Sessions can run as another user (`spawnWrapper`), who would otherwise choose the content.
    if (process.geteuid !== undefined && found.uid !== process.geteuid() && found.uid !== 0) {
      throw new ConfigError(`The ${kind} file ${file} belongs to another user. Change its owner (chown).`);
    }
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`The ${kind} file ${file} cannot be read: ${String(error)}. Name another.`, error);
  }
}
