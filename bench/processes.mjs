/** Figures of processes from Linux's /proc. Elsewhere nothing is found, and the rows about it stay empty. */
import { readdirSync, readFileSync } from "node:fs";

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

/** An inherited variable identifies the processes, so that those which left their parent are found too. */
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

/** Memory that is the process's own or shared, MB. */
export function residentMb(pid) {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${String(pid)}/status`) ?? "");
  return line ? Number(line[1]) / 1024 : undefined;
}

/** Processor time of the process and of its reaped children, s. */
export function processorTime(pid) {
  const stat = read(`/proc/${String(pid)}/stat`);
  if (stat === undefined) return undefined;
  // After the name, which may contain blanks: state is field 3, utime 14, stime 15, cutime 16, cstime 17.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, childUser, childSystem] = fields.slice(11, 15).map((ticks) => Number(ticks) / TICKS);
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
