import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { isNetworkKind, mountOf, readMounts } from "../security/files/mounts.ts";

/**
 * Returns the kind of network file system that `folder` is or would be on. `undefined` elsewhere, and if the system does not
 * tell.
 */
export async function networkKindOf(folder: string): Promise<string | undefined> {
  const mounts = await readMounts();
  return mounts.length === 0 ? undefined : networkKind(await existing(folder), mounts);
}

/** Returns the real path of `folder`, or of the nearest existing folder above. */
async function existing(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch {
    const above = dirname(folder);
    return above === folder ? folder : existing(above);
  }
}

/** `folder` must be a real path. */
export function networkKind(folder: string, mounts: Parameters<typeof mountOf>[1]): string | undefined {
  const { kind = "" } = mountOf(folder, mounts) ?? {};
  return isNetworkKind(kind) ? kind : undefined;
}
