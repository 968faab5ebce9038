import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { NodeFacts, NodeRecord, StoreMachines } from "../../engine/ports.ts";
import { leaseTerms, type OwnNode } from "../node-row.ts";
import type { Database } from "./connect/database.ts";
import type { DatabaseWatch } from "./database-watch.ts";
import { type KnownNode, placeColumns, readNodes } from "./node-table.ts";
import { databaseTranscripts } from "./transcript-table.ts";

/** Parts of the store for several machines: nodes, keys, offers, copies of conversations. */

const KEY_BYTES = 32;
/** Number of offers read at a time. */
const OFFERS = 100;

const sql = {
  owned: "SELECT owner, count(*) AS number FROM sessions WHERE at_work = 1 AND owner IS NOT NULL GROUP BY owner",
  drain: `WITH named AS (SELECT id FROM nodes WHERE name = $1),
    drained AS (INSERT INTO drains(name) SELECT $1 WHERE EXISTS (SELECT 1 FROM named) ON CONFLICT DO NOTHING)
    SELECT count(*) AS number FROM named`,
  undrain: `WITH ended AS (DELETE FROM drains WHERE name = $1)
    SELECT count(*) AS number FROM nodes WHERE name = $1`,
  makeKey: "INSERT INTO keys(purpose, key) VALUES($1, $2) ON CONFLICT DO NOTHING",
  key: "SELECT key FROM keys WHERE purpose = $1",
  offer: "UPDATE sessions SET offered = true WHERE id = $1 AND NOT offered",
  offers: `SELECT id FROM sessions WHERE offered AND (place IS NULL OR place = ANY($1::text[])
      OR has_labels(place, $2::text[])) AND NOT EXISTS (SELECT 1 FROM drains WHERE name = $3)
    LIMIT ${String(OFFERS)}`,
} as const;

const Owned = z.object({ owner: z.string(), number: z.int() });
const Count = z.object({ number: z.int() });
const Key = z.object({ key: z.instanceof(Uint8Array) });
const Id = z.object({ id: z.string() });

/** Facts of a command, which runs no sessions. */
const NO_FACTS: NodeFacts = {
  name: "",
  version: "",
  folders: [],
  sharedFolders: [],
  labels: {},
  maxLive: 0,
  principals: "",
};

interface Options {
  readonly self: OwnNode;
  readonly changes: DatabaseWatch;
  readonly isAlive: (node: KnownNode) => Promise<boolean>;
  readonly use: <T>(work: (db: Database) => Promise<T>) => Promise<T>;
}

export function databaseMachines({ changes, isAlive, self: own, use }: Options): StoreMachines {
  const { facts: self = NO_FACTS } = own;
  const count = async (statement: string, name: string): Promise<number> =>
    (await use(async (db) => db.get(statement, Count, [name])))?.number ?? 0;
  return {
    lease: leaseTerms(own.leaseMs),
    self,
    nodes: async () => {
      const [nodes, owned] = await use(async (db) => Promise.all([readNodes(db), db.all(sql.owned, Owned)]));
      const sessions = new Map(owned.map(({ number, owner }) => [owner, number]));
      const records = nodes.map(async (node): Promise<NodeRecord[]> => {
        const { facts, isDraining, nodeId, seenAt } = node;
        if (!facts) return [];
        return [
          { ...facts, nodeId, isDraining, seenAt, isAlive: await isAlive(node), sessions: sessions.get(nodeId) ?? 0 },
        ];
      });
      return (await Promise.all(records)).flat();
    },
    setDraining: async (name, isDraining) => count(isDraining ? sql.drain : sql.undrain, name),
    key: async (purpose) =>
      use(async (db) => {
        await db.run(sql.makeKey, [purpose, randomBytes(KEY_BYTES)]);
        const found = await db.get(sql.key, Key, [purpose]);
        if (!found) throw new Error(`the key for ${purpose} was deleted`);
        return found.key;
      }),
    offer: async (sessionId) => {
      await use(async (db) => db.run(sql.offer, [sessionId]));
      changes.announce("", ["offers"]);
    },
    offers: (signal) => readOffers({ changes, self, signal, use }),
    transcripts: databaseTranscripts(use),
  };
}

interface OffersOptions extends Pick<Options, "changes" | "use"> {
  readonly self: NodeFacts;
  readonly signal: AbortSignal;
}

/** Yields the ids of offers, again with each change while the offers stand. */
async function* readOffers({ changes, self, signal, use }: OffersOptions): AsyncGenerator<string, void> {
  const { labels, places } = placeColumns([self]);
  let isRead = false;
  const look = async (): Promise<string[]> => {
    // Waits for a change after each round, because an offer stands until the session is claimed.
    isRead = !isRead;
    if (!isRead) return [];
    const found = await use(async (db) => db.all(sql.offers, Id, [places, labels, self.name]));
    if (found.length === 0) isRead = false;
    return found.map(({ id }) => id);
  };
  yield* changes.tail({ sessionId: "", topic: "offers", signal, look });
}
