import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { z } from "zod";
import type { Clock, LeaseTerms, NodeFacts } from "../engine/ports.ts";

/** Nodes, for every storage engine that several servers share. */

/** This process, as known to other users of the store. */
export interface OwnNode {
  /** Unique for all time: a node with a reused name would own everything left by the former node. */
  readonly nodeId: string;
  /** `startedAt` is in the unit of `isRunning`. */
  readonly process: { readonly pid: number; readonly startedAt: string };
  /** True if the process with `pid` is still the one started at `startedAt`. */
  readonly isRunning: (pid: number, startedAt: string) => Promise<boolean>;
  readonly clock: Pick<Clock, "now" | "tick">;
  /** URLs of the node over HTTP; `*` stands for any text. */
  readonly urls?: readonly string[] | undefined;
  /** Facts for the other machines of the store. */
  readonly facts?: NodeFacts | undefined;
  /** Length of the lease on a store of several machines, ms. */
  readonly leaseMs?: number | undefined;
}

const LEASE_MS = 45_000;

/**
 * Returns the terms of a lease of `ttlMs`. With 45 s, a failover of the database that lasts 20 s ends nothing, whenever it begins:
 * a renewal is due 4.5 s after the last, and the node ends its processes after 27 s, so that 18 s are left for a machine that is
 * slow to kill.
 */
export function leaseTerms(ttlMs = LEASE_MS): LeaseTerms {
  return { ttlMs, renewMs: Math.round(ttlMs / 10), endMs: Math.round(ttlMs * 0.6) };
}

/**
 * Properties that tell a living node from a dead one. An unreadable property leaves the decision to the lease. An unreadable
 * `expiresAt` counts as expired: the lease is watched for a while, and a living owner renews the lease meanwhile.
 */
export const NodeRow = z.object({
  nodeId: z.string(),
  host: z.string().nullable().catch(null),
  pid: z.int().nullable().catch(null),
  startedAt: z.string().nullable().catch(null),
  expiresAt: z.int().nullable().catch(0),
});
export type NodeRow = z.infer<typeof NodeRow>;

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/** Host name and pid namespace, because containers on a machine have separate pids. */
export const HOST = `${hostname()} ${pidNamespace()}`.trim();
