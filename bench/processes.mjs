/** What the system knows of processes. All of it is Linux's /proc: elsewhere nothing is found, and rows about it stay empty. */
import { readdirSync, readFileSync } from "node:fs";

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has ended, is not ours, or this is no Linux.
    return undefined;
  }
}

/** Processes are told by an inherited variable, so that those which left their parent are seen too. */
export function livingIn(configFolder) {
  let names = [];
  try {
    names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    const variables = read(`/proc/${name}/environ`)?.split("\0");
    if (!variables?.includes(`CLAUDE_CONFIG_DIR=${configFolder}`)) return [];
    const command = read(`/proc/${name}/cmdline`)?.replaceAll("\0", " ").trim();
    return command ? [{ pid: Number(name), command: command.slice(0, 200) }] : [];
  });
}
