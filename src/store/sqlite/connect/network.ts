/** File systems that other machines share: their locks cannot be trusted and their memory is not shared. */
const NETWORK =
  /^(?:afs|beegfs|ceph|cifs|fuse\.(?:ceph|gcsfuse|glusterfs|goofys|juicefs|rclone|s3fs|sshfs)|fuse\.\w*dav\w*|gfs2|glusterfs|gpfs|lustre|ncpfs|nfs4?|ocfs2|smb3|smbfs)$/;

/** Whether the folder, a real path, is on such a file system; `mounts` is the text of /proc/self/mountinfo. */
export function isNetworkPath(folder: string, mounts: string): boolean {
  let [longest, kind] = ["", ""];
  for (const line of mounts.split("\n")) {
    const [mount = "", rest = ""] = line.split(" - ");
    const point = unescaped(mount.split(" ")[4] ?? "");
    // Of two on the same point the later one hides the earlier.
    if (point === "" || point.length < longest.length || !isWithin(folder, point)) continue;
    [longest, kind] = [point, rest.split(" ")[0] ?? ""];
  }
  return NETWORK.test(kind);
}

function isWithin(folder: string, point: string): boolean {
  return point === "/" || folder === point || folder.startsWith(`${point}/`);
}

/** Blanks and the like are written as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
