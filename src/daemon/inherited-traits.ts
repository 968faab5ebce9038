import { readFileSync, readlinkSync, statSync } from "node:fs";

/**
 * Returns, by name, the traits that a process inherits and keeps for life. Part of the daemon's name, so that a daemon serves
 * only clients with equal traits.
 */
export function inheritedTraits(): Record<string, string> {
  const { geteuid, getgid, getgroups, getuid } = process;
  const ids = [getuid?.(), geteuid?.(), getgid?.(), getgroups?.().toSorted((one, other) => one - other)];
  return {
    "user and groups": JSON.stringify(ids),
    ...(process.platform === "linux" ? linuxTraits() : portableTraits()),
  };
}

const NAMESPACES = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
const STATUS_LINES = /^(?:NoNewPrivs|Seccomp|Seccomp_filters|Cap\w+):.*$/gm;
const LIMITS = /^Max (?:open files|processes) .*$/gm;

function linuxTraits(): Record<string, string> {
  const status = readOrEmpty("/proc/self/status");
  const namespaces: [string, string][] = NAMESPACES.map((name) => [`${name} namespace`, readNamespace(name)]);
  const { dev, ino } = statSync("/");
  return {
    ...Object.fromEntries(namespaces),
    "root folder": `${String(dev)}:${String(ino)}`,
    "capabilities and seccomp": (status.match(STATUS_LINES) ?? []).join("\n"),
    "security label": readOrEmpty("/proc/self/attr/current"),
    "umask of the process": /^Umask:.*$/m.exec(status)?.[0] ?? "",
    "limits of files and processes": (readOrEmpty("/proc/self/limits").match(LIMITS) ?? []).join("\n"),
  };
}

/**
 * Returns the umask, the only further trait available from Node. `src/proxy/own-server.ts` recognizes other confinement by
 * variables.
 */
function portableTraits(): Record<string, string> {
  // oxlint-disable-next-line typescript/no-deprecated -- no other way to read it, and one thread runs
  return { "umask of the process": String(process.umask()) };
}

function readNamespace(name: string): string {
  try {
    return readlinkSync(`/proc/self/ns/${name}`);
  } catch {
    return "";
  }
}

/** Returns `""` if the kernel has no such file or denies access. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
