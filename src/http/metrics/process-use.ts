import { readFile } from "node:fs/promises";

/** What processes take of the machine, from Linux's /proc. */

export interface Use {
  readonly memoryBytes: number;
  /** Its own and that of its children that have ended. */
  readonly cpuSeconds: number;
}

export interface Known {
  readonly pid: number;
  /** As /proc has it: a pid that another process has by now is none of ours. */
  readonly startedAt: string | undefined;
}

/** Ticks a second in which /proc counts: the kernel gives programs 100, whatever it uses itself. */
const TICKS = 100;

/** Fields of /proc/PID/stat after the name, from 0: utime, stime and those of ended children; start; pages in memory. */
const [CPU_FROM, CPU_TO, STARTED] = [11, 15, 19];

/** Of all of them; undefined where the system does not tell. */
export async function useOf(processes: readonly Known[]): Promise<Use | undefined> {
  if (process.platform !== "linux") return undefined;
  const uses = await Promise.all(processes.map(useOfOne));
  return {
    memoryBytes: uses.reduce((sum, use) => sum + (use?.memoryBytes ?? 0), 0),
    cpuSeconds: uses.reduce((sum, use) => sum + (use?.cpuSeconds ?? 0), 0),
  };
}

/** Undefined when it has gone meanwhile. */
async function useOfOne({ pid, startedAt }: Known): Promise<Use | undefined> {
  const [stat, status] = await Promise.all([read(pid, "stat"), read(pid, "status")]);
  if (stat === undefined || status === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (startedAt !== undefined && fields[STARTED] !== startedAt) return undefined;
  const ticks = fields.slice(CPU_FROM, CPU_TO).reduce((sum, field) => sum + Number(field), 0);
  const [, kilobytes = "0"] = /^VmRSS:\s*(\d+) kB$/m.exec(status) ?? [];
  return { memoryBytes: Number(kilobytes) * 1024, cpuSeconds: ticks / TICKS };
}

async function read(pid: number, name: string): Promise<string | undefined> {
  return readFile(`/proc/${String(pid)}/${name}`, "utf8").catch(() => undefined);
}
