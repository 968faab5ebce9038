import { randomBytes } from "node:crypto";
import type { NodeFacts, NodeRecord, StoreMachines } from "../../../src/engine/ports.ts";

type NodesPort = Pick<StoreMachines, "key" | "lease" | "nodes" | "self" | "setDraining">;

/** Nodes and keys of a store that several machines share, without a database, for code that shows or compares nodes. */
export class NodesInMemory {
  readonly #nodes = new Map<string, NodeRecord>();
  readonly #keys = new Map<string, Uint8Array>();

  /** Renews a node, or announces one, with changed properties if given. */
  renew(nodeId: string, changes: Partial<NodeRecord> = {}): void {
    const before = this.#nodes.get(nodeId) ?? { ...FACTS, name: nodeId, nodeId, sessions: 0, isDraining: false };
    const seenAt = (this.#nodes.get(nodeId)?.seenAt ?? 0) + 1;
    this.#nodes.set(nodeId, { ...before, isAlive: true, seenAt, ...changes });
  }

  /** Ends the lease of a node. */
  end(nodeId: string): void {
    const node = this.#nodes.get(nodeId);
    if (node) this.#nodes.set(nodeId, { ...node, isAlive: false });
  }

  /** Returns the part of the port about nodes and keys, as seen by a node with these facts. */
  seenBy(facts: Partial<NodeFacts> = {}): NodesPort {
    return {
      self: { ...FACTS, ...facts },
      lease: { ttlMs: 45_000, renewMs: 10_000, endMs: 27_000 },
      nodes: async () => Promise.resolve([...this.#nodes.values()]),
      setDraining: async (name, isDraining) => {
        const named = [...this.#nodes.values()].filter((node) => node.name === name);
        for (const node of named) this.#nodes.set(node.nodeId, { ...node, isDraining });
        return Promise.resolve(named.length);
      },
      key: async (purpose) => {
        const key = this.#keys.get(purpose) ?? randomBytes(32);
        this.#keys.set(purpose, key);
        return Promise.resolve(key);
      },
    };
  }
}

const FACTS: NodeFacts = {
  name: "n1",
  version: "1.0.0",
  folders: [],
  sharedFolders: [],
  labels: {},
  maxLive: 8,
  principals: "",
};
