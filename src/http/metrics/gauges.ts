import { readFile } from "node:fs/promises";
import type { Gauge } from "prom-client";
import type { OpenRequest } from "../../domain/permission.ts";
import { SessionStatus } from "../../domain/session.ts";
import type { SessionBackend, SessionRecord, Spares } from "../../engine/ports.ts";
import type { ScrapedGauges } from "./instruments.ts";

/** Gauges, read at each scrape: from the store, from /proc and from the spares. */

/** Where the sessions are, and the processes that no session has. */
export interface GaugeSources {
  readonly store: Pick<SessionBackend, "leases" | "maintenance" | "nodeId">;
  readonly spares: Pick<Spares, "available">;
}

const REQUEST_KINDS = ["permission", "question"] as const;
const PHASES = ["starting", "live", "ending"] as const;

/** What the gauges are read from. */
interface Found {
  readonly counts: Awaited<ReturnType<GaugeSources["store"]["maintenance"]["count"]>>;
  readonly requests: readonly OpenRequest[];
  /** Processes that wait for a slot. */
  readonly waiting: number;
  /** Processes of this server. */
  readonly own: readonly FoundProcess[];
  readonly use: Use | undefined;
  readonly spares: number;
}

interface Value {
  readonly labels?: Readonly<Record<string, string>>;
  /** Undefined where it is unknown: an unset gauge would report 0. */
  readonly value: number | undefined;
}

/** Every gauge of `readAtScrape`, by its name in instruments.ts. It is filled from here, and without a store it has no value. */
const VALUES: Readonly<Record<keyof ScrapedGauges, (found: Found) => readonly Value[]>> = {
  sessions: ({ counts }) => SessionStatus.options.map((status) => ({ labels: { status }, value: counts[status] ?? 0 })),
  openRequests: ({ requests }) =>
    REQUEST_KINDS.map((kind) => ({ labels: { kind }, value: requests.filter((each) => each.kind === kind).length })),
  queue: ({ waiting }) => [{ value: waiting }],
  processes: ({ own }) =>
    PHASES.map((phase) => ({ labels: { phase }, value: own.filter((each) => each.phase === phase).length })),
  memory: ({ use }) => [{ value: use?.memoryBytes }],
  cpu: ({ use }) => [{ value: use?.cpuSeconds }],
  spares: ({ spares }) => [{ value: spares }],
};

const GAUGES = Object.keys(VALUES).filter(isScrapedGauge);

/** Rejects when the store cannot be read. */
export async function readGauges(sources: GaugeSources, gauges: ScrapedGauges): Promise<void> {
  const found = await readSources(sources);
  clearGauges(gauges);
  for (const name of GAUGES) {
    const gauge: Gauge = gauges[name];
    for (const { labels = {}, value } of VALUES[name](found)) if (value !== undefined) gauge.set(labels, value);
  }
}

/** An old value would be taken for the present. */
export function clearGauges(gauges: ScrapedGauges): void {
  for (const name of GAUGES) {
    const gauge: Gauge = gauges[name];
    // A gauge without labels is 0 after its reset.
    gauge.reset();
    gauge.remove({});
  }
}

function isScrapedGauge(name: string): name is keyof ScrapedGauges {
  return Object.hasOwn(VALUES, name);
}

async function readSources({ spares, store }: GaugeSources): Promise<Found> {
  const [counts, atWork] = await Promise.all([store.maintenance.count(), store.leases.atWork()]);
  const processes = atWork.flatMap(processOf);
  const own = processes.filter(({ nodeId, waiting }) => !waiting && nodeId === store.nodeId);
  const known = own.flatMap(({ pid, startedAt }) => (pid === undefined ? [] : [{ pid, startedAt }]));
  return {
    counts,
    requests: atWork.flatMap(({ state }) => state.requests),
    waiting: processes.filter(({ waiting }) => waiting).length,
    own,
    use: await useOf(known),
    spares: spares.available,
  };
}

type FoundProcess = ReturnType<typeof processOf>[number];

function processOf({ owner, state: { process } }: SessionRecord) {
  if (process.phase === "none") return [];
  const { phase, pid, startedAt, waiting = false } = process;
  return [{ phase, pid, startedAt, waiting, nodeId: owner?.nodeId }];
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
