import { readFile, realpath } from "node:fs/promises";
import { dirname } from "node:path";

/** File systems that other machines share: their locks cannot be trusted and their memory is not shared. */
const NETWORK =
  /^(?:afs|beegfs|ceph|cifs|fuse\.(?:ceph|gcsfuse|glusterfs|goofys|juicefs|rclone|s3fs|sshfs)|fuse\.\w*dav\w*|gfs2|glusterfs|gpfs|lustre|ncpfs|nfs4?|ocfs2|smb3|smbfs)$/;

/** The kind of such a file system that the folder is on, or would be made on; undefined elsewhere, and where the system does not tell. */
export async function networkKindOf(folder: string): Promise<string | undefined> {
  const mounts = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  return mounts === "" ? undefined : networkKind(await existing(folder), mounts);
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

/** Of a real path; `mounts` is the text of /proc/self/mountinfo. */
export function networkKind(folder: string, mounts: string): string | undefined {
  let [longest, kind] = ["", ""];
  for (const line of mounts.split("\n")) {
    const [mount = "", rest = ""] = line.split(" - ");
    const point = unescaped(mount.split(" ")[4] ?? "");
    // Of two on the same point the later one hides the earlier.
    if (point === "" || point.length < longest.length || !isWithin(folder, point)) continue;
    [longest, kind] = [point, rest.split(" ")[0] ?? ""];
  }
  return NETWORK.test(kind) ? kind : undefined;
}

function isWithin(folder: string, point: string): boolean {
  return point === "/" || folder === point || folder.startsWith(`${point}/`);
}

/** Blanks and the like are written as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
