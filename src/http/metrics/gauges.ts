import { readFile } from "node:fs/promises";
import type { Gauge } from "prom-client";
import type { Budget } from "../../domain/budget.ts";
import type { OpenRequest } from "../../domain/permission.ts";
import { SessionStatus, waitingOf } from "../../domain/session.ts";
import { WaitingKind } from "../../domain/waiting.ts";
import { presentNodes } from "../../engine/nodes.ts";
import type { NodeRecord, SessionBackend, SessionRecord, Spares } from "../../engine/ports.ts";
import type { ScrapedGauges } from "./instruments.ts";
import { readBudgets, readWindows } from "./plan-gauges.ts";

/** Gauges that are read at each scrape: from the store, from /proc and from the spares. */

/** Sources of the gauges: the sessions, and processes without a session. */
export interface GaugeSources {
  readonly store: Pick<SessionBackend, "leases" | "ledger" | "machines" | "maintenance" | "nodeId">;
  readonly spares: Pick<Spares, "available">;
  /** Budgets of users and profiles that the settings name. */
  readonly budgets: readonly Budget[];
  readonly now: () => number;
}

const REQUEST_KINDS = ["permission", "question"] as const;
const PHASES = ["starting", "live", "ending"] as const;

/** Values read for a scrape. */
interface ScrapeData {
  readonly counts: Awaited<ReturnType<GaugeSources["store"]["maintenance"]["count"]>>;
  readonly requests: readonly OpenRequest[];
  readonly waits: readonly WaitingKind[];
  /** Processes that wait for a slot. */
  readonly waiting: number;
  /** Processes of this server. */
  readonly own: readonly FoundProcess[];
  readonly use: ResourceUse | undefined;
  readonly spares: number;
  readonly windows: Awaited<ReturnType<typeof readWindows>>;
  readonly budgets: Awaited<ReturnType<typeof readBudgets>>;
  readonly nodes: readonly NodeGauges[];
}

/** Sums over the nodes of a name: several servers of a machine may share a name. */
interface NodeGauges {
  readonly labels: { readonly node: string };
  readonly isAlive: boolean;
  readonly isDraining: boolean;
  readonly sessions: number;
  readonly maxLive: number;
}

interface GaugeValue {
  readonly labels?: Readonly<Record<string, string>>;
  /** `undefined` if unknown, because an unset gauge would report 0. */
  readonly value: number | undefined;
}

/**
 * Computes the values of each gauge of `scrapedGauges`, by its name in instruments.ts. Without a store the gauges have no value.
 */
const VALUES: Readonly<Record<keyof ScrapedGauges, (found: ScrapeData) => readonly GaugeValue[]>> = {
  sessions: ({ counts }) => SessionStatus.options.map((status) => ({ labels: { status }, value: counts[status] ?? 0 })),
  openRequests: ({ requests }) =>
    REQUEST_KINDS.map((kind) => ({ labels: { kind }, value: requests.filter((each) => each.kind === kind).length })),
  waiting: ({ waits }) =>
    WaitingKind.options.map((kind) => ({ labels: { kind }, value: waits.filter((each) => each === kind).length })),
  queue: ({ waiting }) => [{ value: waiting }],
  processes: ({ own }) =>
    PHASES.map((phase) => ({ labels: { phase }, value: own.filter((each) => each.phase === phase).length })),
  memory: ({ use }) => [{ value: use?.memoryBytes }],
  cpu: ({ use }) => [{ value: use?.cpuSeconds }],
  spares: ({ spares }) => [{ value: spares }],
  nodeUp: ({ nodes }) => nodes.map(({ isAlive, labels }) => ({ labels, value: Number(isAlive) })),
  nodeDraining: ({ nodes }) => nodes.map(({ isDraining, labels }) => ({ labels, value: Number(isDraining) })),
  nodeSessions: ({ nodes }) => nodes.map(({ labels, sessions: value }) => ({ labels, value })),
  nodeSlots: ({ nodes }) => nodes.map(({ labels, maxLive: value }) => ({ labels, value })),
  planUsed: ({ windows }) => windows.map(({ labels, usedRatio: value }) => ({ labels, value })),
  planReset: ({ windows }) => windows.map(({ labels, resetsAtS: value }) => ({ labels, value })),
  planReported: ({ windows }) => windows.map(({ labels, reportedAtS: value }) => ({ labels, value })),
  budgetSpent: ({ budgets }) => budgets.map(({ labels, spentUsd: value }) => ({ labels, value })),
  budgetUnknown: ({ budgets }) => budgets.map(({ labels, unknownUsd: value }) => ({ labels, value })),
  budgetReserved: ({ budgets }) => budgets.map(({ labels, reservedUsd: value }) => ({ labels, value })),
  budgetLimit: ({ budgets }) => budgets.map(({ labels, limitUsd: value }) => ({ labels, value })),
};

const GAUGES = Object.keys(VALUES).filter(isScrapedGauge);

/** Rejects if the store cannot be read. */
export async function readGauges(sources: GaugeSources, gauges: ScrapedGauges): Promise<void> {
  const found = await readSources(sources);
  clearGauges(gauges);
  for (const name of GAUGES) {
    const gauge: Gauge = gauges[name];
    for (const { labels = {}, value } of VALUES[name](found)) if (value !== undefined) gauge.set(labels, value);
  }
}

/** Removes all values, because an old value would look current. */
export function clearGauges(gauges: ScrapedGauges): void {
  for (const name of GAUGES) {
    const gauge: Gauge = gauges[name];
    // `reset` sets a gauge without labels to 0, so `remove` must follow.
    gauge.reset();
    gauge.remove({});
  }
}

function isScrapedGauge(name: string): name is keyof ScrapedGauges {
  return Object.hasOwn(VALUES, name);
}

async function readSources({ budgets, now, spares, store }: GaugeSources): Promise<ScrapeData> {
  const { leases, ledger, machines, maintenance } = store;
  const [counts, atWork] = await Promise.all([maintenance.count(), leases.atWork()]);
  const processes = atWork.flatMap(processOf);
  const own = processes.filter(({ nodeId, waiting }) => !waiting && nodeId === store.nodeId);
  const known = own.flatMap(({ pid, startedAt }) => (pid === undefined ? [] : [{ pid, startedAt }]));
  return {
    counts,
    requests: atWork.flatMap(({ state }) => state.requests),
    waits: atWork.flatMap(({ state }) => waitingOf(state)?.kind ?? []),
    windows: await readWindows(ledger, now()),
    budgets: await readBudgets(ledger, budgets, now()),
    waiting: processes.filter(({ waiting }) => waiting).length,
    own,
    use: await readUse(known),
    spares: spares.available,
    nodes: nodeGauges((await machines?.nodes()) ?? []),
  };
}

function nodeGauges(nodes: readonly NodeRecord[]): NodeGauges[] {
  const byName = new Map<string, NodeGauges>();
  for (const { isAlive, isDraining, maxLive, name, sessions } of presentNodes(nodes)) {
    const other = byName.get(name);
    byName.set(name, {
      labels: { node: name },
      isAlive,
      isDraining,
      sessions: sessions + (other?.sessions ?? 0),
      maxLive: maxLive + (other?.maxLive ?? 0),
    });
  }
  return [...byName.values()];
}

type FoundProcess = ReturnType<typeof processOf>[number];

function processOf({ owner, state: { process } }: SessionRecord) {
  if (process.phase === "none") return [];
  const { phase, pid, startedAt, waiting = false } = process;
  return [{ phase, pid, startedAt, waiting, nodeId: owner?.nodeId }];
}

/** Resource usage of processes, from Linux's /proc. */

interface ResourceUse {
  readonly memoryBytes: number;
  /** Includes children that have ended. */
  readonly cpuSeconds: number;
}

interface KnownProcess {
  readonly pid: number;
  /** Start time in /proc, which differs if another process has reused the pid. */
  readonly startedAt: string | undefined;
}

/** Clock ticks per second in /proc: always 100 for programs, even if the kernel uses another rate. */
const TICKS = 100;

/** Fields of /proc/PID/stat after the name, from 0: `utime`, `stime`, `cutime`, `cstime`; `starttime`. */
const [CPU_FROM, CPU_TO, STARTED] = [11, 15, 19];

/** Sums up all processes; `undefined` if the system has no /proc. */
async function readUse(processes: readonly KnownProcess[]): Promise<ResourceUse | undefined> {
  if (process.platform !== "linux") return undefined;
  const uses = await Promise.all(processes.map(readProcessUse));
  return {
    memoryBytes: uses.reduce((sum, use) => sum + (use?.memoryBytes ?? 0), 0),
    cpuSeconds: uses.reduce((sum, use) => sum + (use?.cpuSeconds ?? 0), 0),
  };
}

/** Resolves to `undefined` if the process has ended. */
async function readProcessUse({ pid, startedAt }: KnownProcess): Promise<ResourceUse | undefined> {
  const [stat, status] = await Promise.all([readProcFile(pid, "stat"), readProcFile(pid, "status")]);
  if (stat === undefined || status === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (startedAt !== undefined && fields[STARTED] !== startedAt) return undefined;
  const ticks = fields.slice(CPU_FROM, CPU_TO).reduce((sum, field) => sum + Number(field), 0);
  const [, kilobytes = "0"] = /^VmRSS:\s*(\d+) kB$/m.exec(status) ?? [];
  return { memoryBytes: Number(kilobytes) * 1024, cpuSeconds: ticks / TICKS };
}

async function readProcFile(pid: number, name: string): Promise<string | undefined> {
  return readFile(`/proc/${String(pid)}/${name}`, "utf8").catch(() => undefined);
}
