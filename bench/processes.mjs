/** Figures of processes from Linux's /proc. Other systems yield no figures, and their rows stay empty. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Clock ticks per second of processor time in /proc: 100 on every Linux on which Node runs. */
const TICKS = 100;

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process has ended or is not ours, or the system is not Linux.
    return undefined;
  }
}

function allPids() {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** Splits `/proc/PID/stat` from the state on. The name before the state may contain blanks. */
function fieldsOf(stat) {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Finds processes by the inherited variable `CLAUDE_CONFIG_DIR`, including processes that have left their parent. */
export function livingIn(configFolder) {
  return allPids().flatMap((name) => {
    const variables = read(`/proc/${name}/environ`)?.split("\0");
    if (!variables?.includes(`CLAUDE_CONFIG_DIR=${configFolder}`)) return [];
    const command = read(`/proc/${name}/cmdline`)?.replaceAll("\0", " ").trim();
    return command ? [{ pid: Number(name), command: command.slice(0, 200) }] : [];
  });
}

/**
 * Finds processes with `folder` in their environment or as current folder, and all their descendants: a shim has no
 * environment, and a daemon may keep little of its own.
 */
export function processesAround(folder) {
  const all = allPids().flatMap((pid) => {
    const [stat, command] = [read(`/proc/${pid}/stat`), read(`/proc/${pid}/cmdline`)?.replaceAll("\0", " ").trim()];
    if (stat === undefined || !command) return [];
    const parent = Number(fieldsOf(stat)[1]);
    const isAround = [read(`/proc/${pid}/environ`), currentFolder(pid)].some((text) => text?.includes(folder));
    return [{ pid: Number(pid), parent, command, isAround }];
  });
  const found = new Set(all.filter(({ isAround }) => isAround).map(({ pid }) => pid));
  const isNew = ({ parent, pid }) => found.has(parent) && !found.has(pid);
  for (let next = all.find(isNew); next; next = all.find(isNew)) found.add(next.pid);
  return all.filter(({ pid }) => found.has(pid));
}

/** Returns the memory of the process with its part of shared memory (PSS), MB. */
export function proportionalMb(pid) {
  const line = /^Pss:\s+(\d+) kB$/m.exec(read(`/proc/${String(pid)}/smaps_rollup`) ?? "");
  return line ? Number(line[1]) / 1024 : undefined;
}

function currentFolder(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

/** Returns the memory of the process, including shared memory (RSS), MB. */
export function residentMb(pid) {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${String(pid)}/status`) ?? "");
  return line ? Number(line[1]) / 1024 : undefined;
}

/** Returns the processor time of the process and of its reaped children, s. */
export function processorTime(pid) {
  const stat = read(`/proc/${String(pid)}/stat`);
  if (stat === undefined) return undefined;
  // State is field 3, utime 14, stime 15, cutime 16, cstime 17.
  const [user, system, childUser, childSystem] = fieldsOf(stat)
    .slice(11, 15)
    .map((ticks) => Number(ticks) / TICKS);
  return { own: user + system, children: childUser + childSystem };
}

/** Returns the number of open files, pipes, sockets and watches of the process. */
export function openHandles(pid) {
  try {
    return readdirSync(`/proc/${String(pid)}/fd`).length;
  } catch {
    return undefined;
  }
}

/** Returns running children of the server, except for the reaper, which lives as long as the server. */
export function childrenOf(pid) {
  const tasks = read(`/proc/${String(pid)}/task/${String(pid)}/children`) ?? "";
  const isReaper = (child) => (read(`/proc/${child}/cmdline`) ?? "").includes("reaper-process");
  return tasks
    .split(" ")
    .filter((child) => child !== "" && !isReaper(child))
    .map(Number);
}
