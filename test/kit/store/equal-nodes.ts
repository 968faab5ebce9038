import { once } from "node:events";
import type { StoreMachines } from "../../../src/engine/ports.ts";
import { leaseTerms } from "../../../src/store/node-row.ts";

const NOT_HERE = "nothing in these tests asks for it";
const refuse = async (): Promise<never> => Promise.reject(new Error(NOT_HERE));

/** Terms of PostgreSQL, without a setting. */
export const MACHINES_LEASE = leaseTerms();

/** Makes the nodes of a memory store nodes of several machines, all with one place, and with leases that end by themselves. */
export function equalNodes(lease = MACHINES_LEASE): StoreMachines {
  return {
    lease,
    self: { name: "n", version: "1", folders: [], sharedFolders: [], labels: {}, maxLive: 10, principals: "" },
    nodes: async () => Promise.resolve([]),
    setDraining: refuse,
    key: refuse,
    offer: refuse,
    async *offers(signal) {
      if (!signal.aborted) await once(signal, "abort");
      yield* [];
    },
    transcripts: { write: refuse, seal: refuse, manifest: refuse, read: refuse },
  };
}
