/** Figures of processes from Linux's /proc. Elsewhere nothing is found, and the rows about it stay empty. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Clock ticks per second of processor time in /proc: 100 on every Linux that Node runs on. */
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

/** Of `/proc/PID/stat`, from the state on: the name before it may contain blanks. */
function fieldsOf(stat) {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** An inherited variable identifies the processes, so that those which left their parent are found too. */
export function livingIn(configFolder) {
  return allPids().flatMap((name) => {
    const variables = read(`/proc/${name}/environ`)?.split("\0");
    if (!variables?.includes(`CLAUDE_CONFIG_DIR=${configFolder}`)) return [];
    const command = read(`/proc/${name}/cmdline`)?.replaceAll("\0", " ").trim();
    return command ? [{ pid: Number(name), command: command.slice(0, 200) }] : [];
  });
}

/**
 * Those that have the folder in their environment, or are in it, and all that these have started: a shim has no environment, and a
 * daemon may keep little of it.
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

/** Memory of the process, MB; of what is shared, its part. */
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

/** Memory that is the process's own or shared, MB. */
export function residentMb(pid) {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${String(pid)}/status`) ?? "");
  return line ? Number(line[1]) / 1024 : undefined;
}

/** Processor time of the process and of its reaped children, s. */
export function processorTime(pid) {
  const stat = read(`/proc/${String(pid)}/stat`);
  if (stat === undefined) return undefined;
  // State is field 3, utime 14, stime 15, cutime 16, cstime 17.
  const [user, system, childUser, childSystem] = fieldsOf(stat)
    .slice(11, 15)
    .map((ticks) => Number(ticks) / TICKS);
  return { own: user + system, children: childUser + childSystem };
}

/** Files, pipes, sockets and watches that the process has open. */
export function openHandles(pid) {
  try {
    return readdirSync(`/proc/${String(pid)}/fd`).length;
  } catch {
    return undefined;
  }
}

/** Running children of the server, except for the reaper, which lives as long as the server. */
export function childrenOf(pid) {
  const tasks = read(`/proc/${String(pid)}/task/${String(pid)}/children`) ?? "";
  const isReaper = (child) => (read(`/proc/${child}/cmdline`) ?? "").includes("reaper-process");
  return tasks
    .split(" ")
    .filter((child) => child !== "" && !isReaper(child))
    .map(Number);
}
