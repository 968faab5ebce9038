import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";

/** Whether this machine lets this user mount a file system of FUSE. */
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
  /** What waits for it is told that it is gone, and the folder below it is there again. */
  release(): void;
}

/** Puts a file system over the folder whose program never answers, as one of a dead server. Nothing here may look into it meanwhile. */
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
