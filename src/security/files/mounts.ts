import { readFile } from "node:fs/promises";

/** Mounts of this machine, as listed by Linux. Other systems list none. */

interface Mount {
  readonly point: string;
  readonly kind: string;
}

/** Parses the text of `/proc/self/mountinfo`. */
export function mountsIn(text: string): Mount[] {
  return text.split("\n").flatMap((line) => {
    const [mount = "", rest = ""] = line.split(" - ");
    const point = unescaped(mount.split(" ")[4] ?? "");
    return point === "" ? [] : [{ point, kind: rest.split(" ")[0] ?? "" }];
  });
}

/** Finds the mount of an absolute path by name, without resolving links. */
export function findMount(path: string, mounts: readonly Mount[]): Mount | undefined {
  let found: Mount | undefined;
  for (const mount of mounts) {
    // Prefers the later of two mounts on a point, which hides the earlier.
    if (mount.point.length >= (found?.point.length ?? 0) && isWithin(path, mount.point)) found = mount;
  }
  return found;
}

function isWithin(folder: string, point: string): boolean {
  return point === "/" || folder === point || folder.startsWith(`${point}/`);
}

/** Decodes blanks and the like, written as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** File systems shared between machines, without reliable locks and without shared memory. */
const NETWORK_KINDS =
  /^(?:afs|beegfs|ceph|cifs|fuse\.(?:ceph|gcsfuse|glusterfs|goofys|juicefs|rclone|s3fs|sshfs)|fuse\.\w*dav\w*|gfs2|glusterfs|gpfs|lustre|ncpfs|nfs4?|ocfs2|smb3|smbfs)$/;

export function isNetworkKind(kind: string): boolean {
  return NETWORK_KINDS.test(kind);
}

/** Returns an empty list if the system has no mountinfo. */
export async function readMounts(): Promise<Mount[]> {
  return mountsIn(await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
}

/** Further file systems that another program or machine answers for. */
const REMOTE_KINDS = /^(?:9p|autofs|fuse(?:\..+)?|virtiofs)$/;

/** Maximum age of the list in use, ms. */
const FRESH_MS = 1_000;

let listed: { readonly mounts: Promise<Mount[]>; readonly at: number } | undefined;

/** Returns the mount point of a path, found by name, if another machine or program answers for the mount. */
export async function findRemoteMount(path: string): Promise<string | undefined> {
  const now = performance.now();
  if (listed === undefined || now - listed.at > FRESH_MS) listed = { mounts: readMounts(), at: now };
  const { kind, point } = findMount(path, await listed.mounts) ?? {};
  return kind !== undefined && (isNetworkKind(kind) || REMOTE_KINDS.test(kind)) ? point : undefined;
}
