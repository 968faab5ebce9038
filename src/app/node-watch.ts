import { ConfigError } from "../config/error.ts";
import { repeatEvery } from "../engine/clock.ts";
import { systemClock } from "./system-clock.ts";
import { withOtherUsers } from "../engine/nodes.ts";
import type { Clock, Logger, NodeRecord, SessionBackend, StoreMachines } from "../engine/ports.ts";

/** Watches the nodes of a store: this one may be drained, and all must have the same users. */

type Machines = Pick<StoreMachines, "lease" | "nodes" | "self">;

interface WatchParts {
  readonly backend: Pick<SessionBackend, "nodeId"> & { readonly machines: Machines };
  readonly clock: Pick<Clock, "after" | "elapsed">;
  readonly log: Pick<Logger, "error" | "info" | "warn">;
  /** Ends this server, which must not go on beside the nodes that have other users. */
  readonly end: (error: ConfigError) => void;
}

/** Begins to watch; `undefined` on a store of one machine. Closes the store and throws ConfigError if a node has other users. */
export async function watchNodes(
  backend: SessionBackend,
  log: WatchParts["log"],
  over: AbortSignal,
): Promise<NodeWatch | undefined> {
  const { machines, nodeId } = backend;
  if (!machines) return undefined;
  const parts = { backend: { machines, nodeId }, clock: systemClock, log };
  await requireSameUsers(parts, over).catch(async (error: unknown) => {
    await backend.close();
    throw error;
  });
  // Ends the process like any uncaught exception, so that a supervisor starts the server again.
  const end = (error: ConfigError) => {
    setImmediate(() => {
      throw error;
    });
  };
  return new NodeWatch({ ...parts, end });
}

/** Interval of the looks at a node that may be dead, ms. */
const LOOK_MS = 1_000;

/**
 * Resolves once no living node has other users. Waits for the end of the lease of a node that has ended. Throws ConfigError
 * once a node with other users renews its lease. Drained nodes may have other users, so that users can be changed.
 */
export async function requireSameUsers(
  { backend: { machines, nodeId }, clock, log }: Omit<WatchParts, "end">,
  over?: AbortSignal,
): Promise<void> {
  const first = new Map<string, number>();
  for (;;) {
    const others = withOtherUsers(await machines.nodes(), { nodeId, principals: machines.self.principals });
    if (others.length === 0 || over?.aborted === true) return;
    const renewed = others.find((node) => (first.get(node.nodeId) ?? Infinity) < node.seenAt);
    if (renewed) throw otherUsers(renewed);
    const unknown = others.filter((node) => !first.has(node.nodeId));
    for (const node of unknown) {
      first.set(node.nodeId, node.seenAt);
      log.warn("a node has other users: waiting for it to end", { node: node.name });
    }
    await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
  }
}

function otherUsers({ name }: NodeRecord): ConfigError {
  const problem = `principals: the node ${name} of this store has other users, so a token would not mean the same at both`;
  const advice = "Give all servers of a store the same principals and oauth";
  return new ConfigError(
    `${problem}. ${advice}; to change them, first stop ${name} or run \`claude-agents-mcp nodes drain ${name}\`.`,
  );
}

export class NodeWatch {
  readonly #parts: WatchParts;
  readonly #stop: () => Promise<void>;
  #isDraining = false;
  #lookedAt: number;
  /** True if the last look has found a node with other users. */
  #hadOthers = false;

  constructor(parts: WatchParts) {
    this.#parts = parts;
    this.#lookedAt = parts.clock.elapsed();
    this.#stop = repeatEvery(parts.clock, parts.backend.machines.lease.renewMs, async () => this.#look());
  }

  /** True if the operator wants no new turns at this node. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  async stop(): Promise<void> {
    await this.#stop();
  }

  async #look(): Promise<void> {
    const { backend, clock, log } = this.#parts;
    const { machines, nodeId } = backend;
    try {
      const nodes = await machines.nodes();
      const [since, now] = [this.#lookedAt, clock.elapsed()];
      this.#lookedAt = now;
      this.#noteDrain(nodes.find((node) => node.nodeId === nodeId)?.isDraining === true);
      const others = withOtherUsers(nodes, { nodeId, principals: machines.self.principals });
      this.#compareUsers(others, now - since > machines.lease.ttlMs);
    } catch (error) {
      log.warn("the nodes of the store cannot be read", { error: String(error) });
    }
  }

  #noteDrain(isDraining: boolean): void {
    if (isDraining === this.#isDraining) return;
    this.#isDraining = isDraining;
    const text = isDraining ? "this node is drained: it begins no more turns" : "this node begins turns again";
    this.#parts.log.info(text, { node: this.#parts.backend.machines.self.name });
  }

  /**
   * Ends this node if other nodes have other users: after a time cut off (`wasAway`), in which the users may have been changed,
   * and after a start at the same time as theirs, at all but one. A drained node may go on, so that users can be changed.
   */
  #compareUsers(others: readonly NodeRecord[], wasAway: boolean): void {
    const [other] = others;
    // Leaves a node that was away time to end by itself.
    const isLasting = this.#hadOthers;
    this.#hadOthers = other !== undefined && !this.#isDraining;
    if (!other || this.#isDraining) return;
    const error = otherUsers(other);
    this.#parts.log.error("a node of the store has other users", { node: other.name });
    const { nodeId } = this.#parts.backend;
    if (wasAway || (isLasting && others.some((each) => each.nodeId < nodeId))) this.#parts.end(error);
  }
}
