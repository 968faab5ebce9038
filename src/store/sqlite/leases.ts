import { z } from "zod";
import type { Lease } from "../../engine/ports.ts";
import type { Connection } from "./connect/connection.ts";
import { HOST, NodeRow, type OwnNode } from "../node-row.ts";

/** Time after which a dead node without sessions is forgotten, ms. */
const FORGET_MS = 24 * 60 * 60 * 1000;

const node = `id AS "nodeId", host, pid, started_at AS "startedAt", expires_at AS "expiresAt"`;

const sql = {
  renew: `INSERT INTO nodes(id, host, pid, started_at, expires_at, urls)
    VALUES($id, $host, $pid, $startedAt, $expiresAt, $urls)
    ON CONFLICT(id) DO UPDATE SET host = excluded.host, pid = excluded.pid, started_at = excluded.started_at,
      expires_at = excluded.expires_at, urls = excluded.urls`,
  forget: `DELETE FROM nodes WHERE expires_at < $before
    AND id NOT IN (SELECT owner FROM sessions WHERE owner IS NOT NULL)`,
  expiry: "SELECT expires_at FROM nodes WHERE id = $id",
  urls: "SELECT urls FROM nodes WHERE urls IS NOT NULL",
  nodes: `SELECT ${node} FROM nodes`,
  servers: `SELECT pid, started_at AS "startedAt", urls FROM nodes
    WHERE host = $host AND id <> $id AND typeof(pid) = 'integer' AND typeof(started_at) = 'text'`,
  owner: "SELECT owner FROM sessions WHERE id = $id",
  claim: "UPDATE sessions SET owner = $owner, epoch = epoch + 1, rev = rev + 1 WHERE id = $id RETURNING epoch",
  release: "UPDATE sessions SET owner = NULL, rev = rev + 1 WHERE id = $id AND owner = $owner AND epoch = $epoch",
  held: "SELECT id FROM sessions WHERE id = $id AND owner = $owner AND epoch = $epoch",
} as const;

const Owner = z.object({ owner: z.string().nullable() });
const Epoch = z.object({ epoch: z.int() });
/** Unreadable URLs count as none until the next renewal, which writes the row again. */
const Urls = z.object({ urls: z.unknown().transform(urlsIn) });
const Server = z.object({ pid: z.int(), startedAt: z.string(), ...Urls.shape });
const Expiry = z.object({ expires_at: z.int().catch(0) });

function urlsIn(text: unknown): string[] {
  try {
    return z.array(z.string()).parse(JSON.parse(z.string().parse(text)));
  } catch {
    return [];
  }
}

/** Begins or renews the lease of this node. Forgets nodes dead for `FORGET_MS`. */
export function renewLease(db: Connection, self: OwnNode, ttlMs: number): void {
  writeLease(db, self, ttlMs);
  db.run(sql.forget, { before: self.clock.now() - FORGET_MS });
}

function writeLease(db: Connection, { clock, nodeId, process, urls = [] }: OwnNode, ttlMs: number): void {
  const { pid, startedAt } = process;
  const reached = urls.length > 0 ? JSON.stringify(urls) : null;
  db.run(sql.renew, { id: nodeId, host: HOST, pid, startedAt, expiresAt: clock.now() + ttlMs, urls: reached });
}

/** Node found dead, and the expiry of the node's lease then. */
export interface DeadNode {
  readonly nodeId: string;
  readonly expiresAt: number | null;
}

/** Gives the session to this node, unless a live node owns the session. `dead` was found dead before the transaction. */
export function claimSession(
  db: Connection,
  id: string,
  { self, ttlMs }: { self: OwnNode; ttlMs: number },
  dead: DeadNode | undefined,
): Lease | undefined {
  const row = db.get(sql.owner, Owner, { id });
  if (!row) return undefined;
  const tookOver = row.owner !== null && row.owner !== self.nodeId;
  if (tookOver && !(dead?.nodeId === row.owner && isUnrenewed(db, dead))) return undefined;
  // Renews first: another node may be about to declare this node dead, and a node without a row is dead at once.
  writeLease(db, self, ttlMs);
  const claimed = db.get(sql.claim, Epoch, { id, owner: self.nodeId });
  return claimed && { sessionId: id, nodeId: self.nodeId, epoch: claimed.epoch, tookOver };
}

function isUnrenewed(db: Connection, { expiresAt, nodeId }: DeadNode): boolean {
  const row = db.get(sql.expiry, Expiry, { id: nodeId });
  return row === undefined || row.expires_at === expiresAt;
}

export function releaseSession(db: Connection, { epoch, nodeId, sessionId }: Lease): void {
  db.run(sql.release, { id: sessionId, owner: nodeId, epoch });
}

export function isHeld(db: Connection, { epoch, nodeId, sessionId }: Lease): boolean {
  return db.get(sql.held, z.unknown(), { id: sessionId, owner: nodeId, epoch }) !== undefined;
}

/** Includes dead nodes: a restarted server often has the former URL. */
export function readNodeUrls(db: Connection): string[] {
  return [...new Set(db.all(sql.urls, Urls, {}).flatMap(({ urls }) => urls))];
}

/** Returns all nodes of this machine but `id`, dead or alive. */
export function otherServers(db: Connection, id: string): z.infer<typeof Server>[] {
  return db.all(sql.servers, Server, { host: HOST, id });
}

/** Returns all nodes except forgotten ones, dead or alive. */
export function allNodes(db: Connection): NodeRow[] {
  return db.all(sql.nodes, NodeRow, {});
}
