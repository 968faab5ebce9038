import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { isNetworkKind, mountOf, readMounts } from "../security/files/mounts.ts";

/** The kind of such a file system that the folder is on, or would be made on; undefined elsewhere, and where the system does not tell. */
export async function networkKindOf(folder: string): Promise<string | undefined> {
  const mounts = await readMounts();
  return mounts.length === 0 ? undefined : networkKind(await existing(folder), mounts);
}

/** The folder, or the nearest one above it that is there, as a real path. */
async function existing(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch {
    const above = dirname(folder);
    return above === folder ? folder : existing(above);
  }
}

/** Of a real path. */
export function networkKind(folder: string, mounts: Parameters<typeof mountOf>[1]): string | undefined {
  const { kind = "" } = mountOf(folder, mounts) ?? {};
  return isNetworkKind(kind) ? kind : undefined;
}
