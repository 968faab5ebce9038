import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { isNetworkKind, findMount, readMounts } from "../security/files/mounts.ts";

/**
 * Returns the kind of network file system that `folder` is or would be on. `undefined` elsewhere, and if the system does not
 * tell.
 */
export async function findNetworkKind(folder: string): Promise<string | undefined> {
  const mounts = await readMounts();
  return mounts.length === 0 ? undefined : networkKind(await nearestExisting(folder), mounts);
}

/** Returns the real path of `folder`, or of the nearest existing folder above. */
async function nearestExisting(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch {
    const above = dirname(folder);
    return above === folder ? folder : nearestExisting(above);
  }
}

/** `folder` must be a real path. */
export function networkKind(folder: string, mounts: Parameters<typeof findMount>[1]): string | undefined {
  const { kind = "" } = findMount(folder, mounts) ?? {};
  return isNetworkKind(kind) ? kind : undefined;
}
