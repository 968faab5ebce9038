import { constants } from "node:fs";
import { join } from "node:path";
import { fileAccess, NoAnswerError, open } from "./limited.ts";
import { close, readSmall } from "./plain-file.ts";

/**
 * Marker at the top of a shared folder: a file with a random id, by which machines find that they have the same folder.
 * Without the marker, an empty mount point would look like the folder.
 */

export const MARKER_FILE = ".claude-agents-volume";

const MAX_BYTES = 200;

/** Resolves to the id; to `undefined` without a marker. Throws if the marker cannot be read, or is no marker. */
export async function readMarker(folder: string): Promise<string | undefined> {
  const file = join(folder, MARKER_FILE);
  const text = await readSmall(file, MAX_BYTES).catch((error: unknown) => {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const id = text.trim();
  if (/^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(id)) return id;
  throw new Error(`${file} holds no id of a shared folder`);
}

/** Makes a marker, unless there is one. Resolves to the id. Throws if the folder cannot be written. */
export async function makeMarker(folder: string): Promise<{ readonly id: string; readonly isNew: boolean }> {
  const found = await readMarker(folder);
  if (found !== undefined) return { id: found, isNew: false };
  const file = join(folder, MARKER_FILE);
  const id = crypto.randomUUID();
  const handle = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL);
  try {
    await fileAccess.run(file, async () => {
      await handle.writeFile(`${id}\n`);
      // Servers of the other machines may run as other users.
      await handle.chmod(0o644);
      await handle.sync();
    });
  } finally {
    await close(file, handle);
  }
  return { id, isNew: true };
}

/** Reason why `readMarker` or `makeMarker` has failed, for a message. */
export function markerProblem(error: unknown): string {
  if (error instanceof NoAnswerError) return "the folder does not answer";
  return error instanceof Error ? error.message : String(error);
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
