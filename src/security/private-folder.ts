import { lstat, readlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/** Checks that no other user can enter, replace or redirect a folder. The only module with this check. */

const ACCESS_OF_OTHERS = 0o077;
const WRITE_OF_OTHERS = 0o022;
/** Mode bit: only owners can rename and delete the direct entries of the folder. */
const STICKY = 0o1000;
/** Maximum number of links in a chain, in case of a circle. */
const MAX_LINKS = 40;

/** Resolves to a sentence that names the fault, or to `undefined` if only this user can enter the folder. */
export async function folderFault(folder: string): Promise<string | undefined> {
  const found = await lstat(folder).catch(() => undefined);
  if (!found) return `${folder} does not exist.`;
  const isOwn = process.geteuid === undefined || found.uid === process.geteuid();
  const isClosed = found.isDirectory() && isOwn && (found.mode & ACCESS_OF_OTHERS) === 0;
  return isClosed ? ancestorFault(folder) : `${folder} is not a folder that only you can enter. Delete it.`;
}

/**
 * Resolves to a sentence about the first folder above `path` that another user could change. Each must exist, belong to this
 * user or to root, and not be writable by others unless sticky. Checks from the root down and follows links, because a folder
 * is safe only while nobody else can replace a folder above.
 */
export async function ancestorFault(path: string, links = 0): Promise<string | undefined> {
  const above = dirname(path);
  if (above === path) return undefined;
  const fault = await ancestorFault(above, links);
  if (fault !== undefined) return fault;
  const found = await lstat(above).catch(() => undefined);
  if (!found) return `${above} does not exist.`;
  if (!(await trustedOwners()).includes(found.uid)) return `${above} belongs to another user.`;
  if (found.isSymbolicLink()) {
    if (links > MAX_LINKS) return `${above} is a link that leads in a circle.`;
    return ancestorFault(join(resolve(dirname(above), await readlink(above)), "_"), links + 1);
  }
  const isOpen = (found.mode & WRITE_OF_OTHERS) !== 0 && (found.mode & STICKY) === 0;
  return isOpen ? `${above} can be changed by other users: chmod go-w, or +t if all of them need it.` : undefined;
}

/** Returns user ids. The owner of `/` stands for root in a user namespace that does not map root. */
async function trustedOwners(): Promise<number[]> {
  return [0, process.geteuid?.() ?? 0, (await lstat("/")).uid];
}
