import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { z } from "zod";
import type { Lease } from "../../engine/ports.ts";
import type { Connection } from "./connect/connection.ts";
import { NodeRow } from "./rows.ts";

/** This process, as the other users of the store know it. */
export interface Self {
  /** Never used before: a name that returns would own what its last bearer left. */
  readonly nodeId: string;
  /** `startedAt` is in whatever unit `isRunning` understands. */
  readonly process: { readonly pid: number; readonly startedAt: string };
  /** Whether the process of that pid is still the one that started then. */
  readonly isRunning: (pid: number, startedAt: string) => Promise<boolean>;
  readonly clock: { now(): number };
}

/** A dead node without sessions is forgotten after a day, ms. */
const FORGET_MS = 24 * 60 * 60 * 1000;

const node = `id AS "nodeId", host, pid, started_at AS "startedAt", expires_at AS "expiresAt"`;

const sql = {
  renew: `INSERT INTO nodes(id, host, pid, started_at, expires_at) VALUES($id, $host, $pid, $startedAt, $expiresAt)
    ON CONFLICT(id) DO UPDATE SET expires_at = excluded.expires_at`,
  forget: `DELETE FROM nodes WHERE expires_at < $before
    AND id NOT IN (SELECT owner FROM sessions WHERE owner IS NOT NULL)`,
  expiry: "SELECT expires_at FROM nodes WHERE id = $id",
  leased: `SELECT ${node} FROM nodes WHERE expires_at > $now`,
  owner: "SELECT owner FROM sessions WHERE id = $id",
  claim: "UPDATE sessions SET owner = $owner, epoch = epoch + 1, rev = rev + 1 WHERE id = $id RETURNING epoch",
  release: "UPDATE sessions SET owner = NULL, rev = rev + 1 WHERE id = $id AND owner = $owner AND epoch = $epoch",
  held: "SELECT id FROM sessions WHERE id = $id AND owner = $owner AND epoch = $epoch",
} as const;

const Owner = z.object({ owner: z.string().nullable() });
const Epoch = z.object({ epoch: z.int() });
const Expiry = z.object({ expires_at: z.int() });

/** Begins or renews the lease of this node. */
export function renewLease(db: Connection, { clock, nodeId, process }: Self, ttlMs: number): void {
  const { pid, startedAt } = process;
  db.run(sql.renew, { id: nodeId, host: HOST, pid, startedAt, expiresAt: clock.now() + ttlMs });
  db.run(sql.forget, { before: clock.now() - FORGET_MS });
}

/**
 * Gives the session to this node, where nobody alive has it. `dead` was found dead before the transaction, for another
 * reason than its lease.
 */
export function claimSession(db: Connection, id: string, self: Self, dead: string | undefined): Lease | undefined {
  const now = self.clock.now();
  const row = db.get(sql.owner, Owner, { id });
  // A node that does not know whether it is still alive must not take what others may just be taking from it.
  if (!row || !holdsLease(db, self.nodeId, now)) return undefined;
  const tookOver = row.owner !== null && row.owner !== self.nodeId;
  if (tookOver && row.owner !== dead && holdsLease(db, row.owner, now)) return undefined;
  const claimed = db.get(sql.claim, Epoch, { id, owner: self.nodeId });
  return claimed && { sessionId: id, nodeId: self.nodeId, epoch: claimed.epoch, tookOver };
}

export function releaseSession(db: Connection, { epoch, nodeId, sessionId }: Lease): void {
  db.run(sql.release, { id: sessionId, owner: nodeId, epoch });
}

export function isHeld(db: Connection, { epoch, nodeId, sessionId }: Lease): boolean {
  return db.get(sql.held, z.unknown(), { id: sessionId, owner: nodeId, epoch }) !== undefined;
}

function holdsLease(db: Connection, nodeId: string | null, now: number): boolean {
  const row = db.get(sql.expiry, Expiry, { id: nodeId });
  return row !== undefined && row.expires_at > now;
}

/** The nodes whose lease has not run out. */
export function leasedNodes(db: Connection, now: number): NodeRow[] {
  return db.all(sql.leased, NodeRow, { now });
}

/** Who is alive, for the span of one call: the system is asked for each process once. */
export class Census {
  readonly #self: Self;
  readonly #now: number;
  readonly #asked = new Map<string, Promise<boolean>>();

  constructor(self: Self) {
    this.#self = self;
    this.#now = self.clock.now();
  }

  /** A hung node is known by its lease; one on this machine that has ended, at once. */
  async isAlive({ nodeId, host, pid, startedAt, expiresAt }: NodeRow): Promise<boolean> {
    if (expiresAt === null || expiresAt <= this.#now) return false;
    if (nodeId === this.#self.nodeId || host !== HOST || pid === null || startedAt === null) return true;
    const asked = this.#asked.get(nodeId) ?? this.#self.isRunning(pid, startedAt);
    this.#asked.set(nodeId, asked);
    return asked;
  }
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/** Within it a pid means the same to everybody: containers on one machine count theirs separately. */
const HOST = `${hostname()} ${pidNamespace()}`.trim();
