import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { z } from "zod";
import type { Clock } from "../engine/ports.ts";

/** Nodes, as every storage engine that several servers share knows them. */

/** This process, as the other users of the store know it. */
export interface Self {
  /** Never used before: a name that returns would own what its last bearer left. */
  readonly nodeId: string;
  /** `startedAt` is in whatever unit `isRunning` understands. */
  readonly process: { readonly pid: number; readonly startedAt: string };
  /** Whether the process of that pid is still the one that started then. */
  readonly isRunning: (pid: number, startedAt: string) => Promise<boolean>;
  readonly clock: Pick<Clock, "now" | "tick">;
  /** Where it is reached over HTTP; * stands for any text. */
  readonly urls?: readonly string[] | undefined;
}

/**
 * A node, as far as it takes to tell whether it is alive. What cannot be read of it is left to its lease, and an unreadable lease
 * counts as expired: it is watched for a while, and its owner renews it meanwhile.
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

/** The pid namespace: containers on one machine have pids of their own. */
export const HOST = `${hostname()} ${pidNamespace()}`.trim();
