import { readFileSync } from "node:fs";
import { HOST, type NodeRow, type OwnNode } from "../node-row.ts";

/** Processes of this machine, which can be looked at, unlike those of other machines with the same pids. */

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/**
 * Name of this machine for pids. Includes the start of the kernel, because virtual machines often have equal names, and equal
 * numbers of the first pid namespace.
 */
export const MACHINE = `${HOST} ${bootId()}`.trim();

/** A node as read: `expiresAt` is null if the lease has run out by the database's clock. */
export type LeasedNode = Omit<NodeRow, "nodeId"> & { readonly nodeId: string };

/**
 * Finds nodes of this machine whose processes have exited: they are dead at once, whatever their leases. All other nodes live
 * as long as their leases.
 */
export class LocalProcesses {
  readonly #self: OwnNode;
  /** Nodes whose processes have exited. Never alive again, because a reused pid has another start time. */
  readonly #gone = new Set<string>();

  constructor(self: OwnNode) {
    this.#self = self;
  }

  /** Returns a check for one call, so that the system is asked for each process only once. */
  createCheck(): (node: LeasedNode) => Promise<boolean> {
    const asked = new Map<string, Promise<boolean>>();
    return async (node) => {
      if (node.expiresAt === null) return false;
      const known = asked.get(node.nodeId) ?? this.#hasProcess(node);
      asked.set(node.nodeId, known);
      return known;
    };
  }

  async #hasProcess({ host, nodeId, pid, startedAt }: LeasedNode): Promise<boolean> {
    if (this.#gone.has(nodeId)) return false;
    if (nodeId === this.#self.nodeId || host !== MACHINE || pid === null || startedAt === null) return true;
    const runs = await this.#self.isRunning(pid, startedAt);
    if (!runs) this.#gone.add(nodeId);
    return runs;
  }
}
