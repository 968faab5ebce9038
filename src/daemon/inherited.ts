import { readFileSync, readlinkSync, statSync } from "node:fs";

/**
 * Returns inherited traits, which a process keeps for life, by display name. Therefore a daemon serves only clients with equal
 * traits.
 */
export function inheritedTraits(): Record<string, string> {
  const { geteuid, getgid, getgroups, getuid } = process;
  const ids = [getuid?.(), geteuid?.(), getgid?.(), getgroups?.().toSorted((one, other) => one - other)];
  return { "user and groups": JSON.stringify(ids), ...(process.platform === "linux" ? ofLinux() : ofOthers()) };
}

const NAMESPACES = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
const OF_STATUS = /^(?:NoNewPrivs|Seccomp|Seccomp_filters|Cap\w+):.*$/gm;
const LIMITS = /^Max (?:open files|processes) .*$/gm;

function ofLinux(): Record<string, string> {
  const status = textOf("/proc/self/status");
  const namespaces: [string, string][] = NAMESPACES.map((name) => [`${name} namespace`, namespaceOf(name)]);
  const { dev, ino } = statSync("/");
  return {
    ...Object.fromEntries(namespaces),
    "root folder": `${String(dev)}:${String(ino)}`,
    "capabilities and seccomp": (status.match(OF_STATUS) ?? []).join("\n"),
    "security label": textOf("/proc/self/attr/current"),
    "umask of the process": /^Umask:.*$/m.exec(status)?.[0] ?? "",
    "limits of files and processes": (textOf("/proc/self/limits").match(LIMITS) ?? []).join("\n"),
  };
}

/** Reports only what Node can read. `src/proxy/own-server.ts` detects other confinement by variables. */
function ofOthers(): Record<string, string> {
  // oxlint-disable-next-line typescript/no-deprecated -- no other way to read it, and one thread runs
  return { "umask of the process": String(process.umask()) };
}

function namespaceOf(name: string): string {
  try {
    return readlinkSync(`/proc/self/ns/${name}`);
  } catch {
    return "";
  }
}

/** Returns `""` if the kernel has no such file or denies access. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
