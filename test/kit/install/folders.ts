import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Sums the sizes of all files below `folder`; links are not followed. */
export function bytesOf(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { name, parentPath }) => sum + statSync(join(parentPath, name)).size, 0);
}

/** Mounts an empty read-only file system; `undefined` if this process may not mount. */
export function readOnlyFolder(): { readonly path: string; unmount(): void } | undefined {
  const path = mkdtempSync(join(tmpdir(), "ccm-read-only-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "ro", "tmpfs", path], { stdio: "ignore" });
  } catch {
    rmSync(path, { recursive: true });
    return undefined;
  }
  const unmount = () => {
    execFileSync("umount", [path]);
    rmSync(path, { recursive: true });
  };
  return { path, unmount };
}
