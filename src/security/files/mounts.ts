import { readFile } from "node:fs/promises";

/** Mounts of this machine, as Linux lists them. Elsewhere none is known. */

interface Mount {
  readonly point: string;
  readonly kind: string;
}

/** Mounts in the text of /proc/self/mountinfo. */
export function mountsIn(text: string): Mount[] {
  return text.split("\n").flatMap((line) => {
    const [mount = "", rest = ""] = line.split(" - ");
    const point = unescaped(mount.split(" ")[4] ?? "");
    return point === "" ? [] : [{ point, kind: rest.split(" ")[0] ?? "" }];
  });
}

/** The mount that an absolute path lies on by its name. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let found: Mount | undefined;
  for (const mount of mounts) {
    // Of two on the same point the later one hides the earlier.
    if (mount.point.length >= (found?.point.length ?? 0) && isWithin(path, mount.point)) found = mount;
  }
  return found;
}

function isWithin(folder: string, point: string): boolean {
  return point === "/" || folder === point || folder.startsWith(`${point}/`);
}

/** Blanks and the like are written as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** File systems that other machines share: their locks cannot be trusted and their memory is not shared. */
const NETWORK =
  /^(?:afs|beegfs|ceph|cifs|fuse\.(?:ceph|gcsfuse|glusterfs|goofys|juicefs|rclone|s3fs|sshfs)|fuse\.\w*dav\w*|gfs2|glusterfs|gpfs|lustre|ncpfs|nfs4?|ocfs2|smb3|smbfs)$/;

export function isNetworkKind(kind: string): boolean {
  return NETWORK.test(kind);
}

/** Empty where the system has no such list. */
export async function readMounts(): Promise<Mount[]> {
  return mountsIn(await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
}

/** Another program or machine answers for these too. */
const OF_OTHERS = /^(?:9p|autofs|fuse(?:\..+)?|virtiofs)$/;

/** Age up to which the list is used, ms. */
const FRESH_MS = 1_000;

let listed: { readonly mounts: Promise<Mount[]>; readonly at: number } | undefined;

/** The point of the mount that a path lies on by its name, where another machine or program answers for it. */
export async function remoteMountOf(path: string): Promise<string | undefined> {
  const now = performance.now();
  if (listed === undefined || now - listed.at > FRESH_MS) listed = { mounts: readMounts(), at: now };
  const { kind, point } = mountOf(path, await listed.mounts) ?? {};
  return kind !== undefined && (isNetworkKind(kind) || OF_OTHERS.test(kind)) ? point : undefined;
}
