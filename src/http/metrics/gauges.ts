import { readFile } from "node:fs/promises";
import { SessionStatus } from "../../domain/session.ts";
import type { SessionBackend, SessionRecord, Spares } from "../../engine/ports.ts";
import type { Instruments } from "./instruments.ts";

/** Gauges, read from the store at each scrape. */

/** Where the sessions are, and the processes that no session has. */
export interface GaugeSources {
  readonly store: Pick<SessionBackend, "leases" | "maintenance" | "nodeId">;
  readonly spares: Pick<Spares, "available">;
}

const PHASES = ["starting", "live", "ending"] as const;

/** Rejects when the store cannot be read. */
export async function readGauges({ spares, store }: GaugeSources, to: Instruments): Promise<void> {
  const [counts, atWork] = await Promise.all([store.maintenance.count(), store.leases.atWork()]);
  for (const status of SessionStatus.options) to.sessions.set({ status }, counts[status] ?? 0);
  const requests = atWork.flatMap(({ state }) => state.requests);
  for (const kind of ["permission", "question"] as const) {
    to.openRequests.set({ kind }, requests.filter((request) => request.kind === kind).length);
  }
  const processes = atWork.flatMap(processOf);
  to.queue.set(processes.filter(({ waiting }) => waiting).length);
  const own = processes.filter(({ nodeId, waiting }) => !waiting && nodeId === store.nodeId);
  for (const phase of PHASES) to.processes.set({ phase }, own.filter((each) => each.phase === phase).length);
  to.spares.set(spares.available);
  const use = await useOf(own.flatMap(({ pid, startedAt }) => (pid === undefined ? [] : [{ pid, startedAt }])));
  setOrRemove(to.memory, use?.memoryBytes);
  setOrRemove(to.cpu, use?.cpuSeconds);
}

/** An unset gauge would report 0. */
function setOrRemove(gauge: Instruments["memory"], value: number | undefined): void {
  if (value === undefined) gauge.remove();
  else gauge.set(value);
}

function processOf({ owner, state: { process } }: SessionRecord) {
  if (process.phase === "none") return [];
  const { phase, pid, startedAt, waiting = false } = process;
  return [{ phase, pid, startedAt, waiting, nodeId: owner?.nodeId }];
}

/** The gauges of the store, without a value: an old one would be taken for the present. */
export function clearGauges({ cpu, memory, openRequests, processes, queue, sessions, spares }: Instruments): void {
  for (const gauge of [cpu, memory, queue, spares]) gauge.remove();
  for (const gauge of [openRequests, processes, sessions]) gauge.reset();
}

/** What processes take of the machine, from Linux's /proc. */

interface Use {
  readonly memoryBytes: number;
  /** Its own and that of its children that have ended. */
  readonly cpuSeconds: number;
}

interface Known {
  readonly pid: number;
  /** As /proc has it: a pid that another process has by now is none of ours. */
  readonly startedAt: string | undefined;
}

/** Ticks a second in which /proc counts: the kernel gives programs 100, whatever it uses itself. */
const TICKS = 100;

/** Fields of /proc/PID/stat after the name, from 0: utime, stime and those of ended children; start; pages in memory. */
const [CPU_FROM, CPU_TO, STARTED] = [11, 15, 19];

/** Of all of them; undefined where the system does not tell. */
async function useOf(processes: readonly Known[]): Promise<Use | undefined> {
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
