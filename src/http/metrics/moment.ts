import { SessionStatus } from "../../domain/session.ts";
import type { SessionBackend, SessionRecord, Spares } from "../../engine/ports.ts";
import type { Instruments } from "./instruments.ts";
import { useOf } from "./process-use.ts";

/** What is true just now, read off the store when somebody asks. */

/** Where the sessions are, and the processes that no session has. */
export interface Watched {
  readonly store: Pick<SessionBackend, "leases" | "maintenance" | "nodeId">;
  readonly spares: Pick<Spares, "parked">;
}

const PHASES = ["starting", "live", "ending"] as const;

/** Rejects when the store cannot be read. */
export async function readMoment({ spares, store }: Watched, to: Instruments): Promise<void> {
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
  to.spares.set(spares.parked);
  const use = await useOf(own.flatMap(({ pid, startedAt }) => (pid === undefined ? [] : [{ pid, startedAt }])));
  setOrRemove(to.memory, use?.memoryBytes);
  setOrRemove(to.cpu, use?.cpuSeconds);
}

/** A gauge that nobody has set would say 0. */
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
export function forgetMoment({ cpu, memory, openRequests, processes, queue, sessions, spares }: Instruments): void {
  for (const gauge of [cpu, memory, queue, spares]) gauge.remove();
  for (const gauge of [openRequests, processes, sessions]) gauge.reset();
}
