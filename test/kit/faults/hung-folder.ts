import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";

/** True if this user may mount FUSE file systems on this machine. */
export function canHang(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  try {
    closeSync(openSync("/dev/fuse", constants.O_RDWR));
    return true;
  } catch {
    return false;
  }
}

export interface HungFolder {
  /** Fails all waiting accesses; the original folder is visible again. */
  release(): void;
}

/**
 * Mounts a file system over `folder` whose server never answers. No code in this process may access `folder` until `release()`.
 */
export function hang(folder: string): HungFolder {
  const device = openSync("/dev/fuse", constants.O_RDWR);
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0";
  execFileSync("mount", ["-i", "-t", "fuse", "-o", options, "hung", folder], {
    stdio: ["ignore", "pipe", "pipe", device],
  });
  let isHung = true;
  return {
    release() {
      if (!isHung) return;
      isHung = false;
      execFileSync("umount", ["--lazy", folder]);
      closeSync(device);
    },
  };
}
