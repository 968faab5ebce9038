import { z } from "zod";
import { parseJson } from "../../domain/json.ts";
import { Labels, type Place, SharedFolder } from "../../domain/place.ts";
import type { Lease, NodeFacts } from "../../engine/ports.ts";
import { NodeRow, type OwnNode } from "../node-row.ts";
import { type Database, VERSION } from "./connect/database.ts";
import { MACHINE } from "./local-processes.ts";

/** Time limit of a renewal, ms: short, because a renewal that waits at a dead connection must be repeated in time. */
const RENEWAL_MS = 5_000;

const sql = {
  renew: `SELECT renew_lease($1, $2, $3, $4, $5, $6, $7, $8, $9) AS "leftMs"`,
  nodes: `SELECT id AS "nodeId", host, pid, started_at AS "startedAt", facts, renewed_at AS "seenAt",
      CASE WHEN expires_at > now_ms() THEN expires_at END AS "expiresAt",
      EXISTS (SELECT 1 FROM drains WHERE drains.name = nodes.name) AS "isDraining"
    FROM nodes`,
  urls: "SELECT urls FROM nodes WHERE urls IS NOT NULL",
  servers: `SELECT pid, started_at AS "startedAt", urls FROM nodes WHERE host = $1 AND id <> $2`,
  claim: `SELECT epoch, took_over AS "tookOver", owner FROM claim_session($1, $2, $3, $4, $5, $6, $7)`,
  release: "UPDATE sessions SET owner = NULL, rev = rev + 1 WHERE id = $1 AND owner = $2 AND epoch = $3",
} as const;

const Renewed = z.object({ leftMs: z.int().nullable() });

/**
 * Begins or renews the lease of this node. Forgets nodes long dead. Returns the time left of the former lease, ms; `undefined`
 * without one.
 */
export async function renewNode(db: Database, self: OwnNode, ttlMs: number): Promise<number | undefined> {
  const { facts, nodeId, process, urls = [] } = self;
  const reached = urls.length > 0 ? JSON.stringify(urls) : null;
  const told = facts ? JSON.stringify(facts) : null;
  const values = [VERSION, nodeId, ttlMs, MACHINE, process.pid, process.startedAt, reached, told, facts?.name ?? null];
  const found = await db.get(sql.renew, Renewed, values, { answerMs: RENEWAL_MS, attempts: 2, lane: "renewals" });
  return found?.leftMs ?? undefined;
}

/** Facts of a node. An older or newer server may lack some. */
const Facts = z.object({
  name: z.string(),
  version: z.string().catch(""),
  folders: z.array(z.string()).catch([]),
  sharedFolders: z.array(SharedFolder).catch([]),
  labels: Labels.catch({}),
  maxLive: z.int().catch(0),
  principals: z.string().catch(""),
});

const KnownNode = NodeRow.extend({
  facts: z.unknown().transform((text): NodeFacts | undefined => {
    return typeof text === "string" ? Facts.safeParse(parseJson(text)).data : undefined;
  }),
  seenAt: z.int(),
  isDraining: z.boolean(),
});
export type KnownNode = z.infer<typeof KnownNode>;

/** Returns all nodes except forgotten ones, dead or alive. */
export async function readNodes(db: Database): Promise<KnownNode[]> {
  return db.all(sql.nodes, KnownNode);
}

/** Returns the text of a place, which queries compare. */
export function placeText(place: Place): string {
  return JSON.stringify(place);
}

/** Places of nodes, as the queries of the session table take them. */
export interface PlaceColumns {
  /** Texts of places by name and by shared folder. */
  readonly places: readonly string[];
  /** Labels of each node, as JSON. */
  readonly labels: readonly string[];
}

export function placeColumns(nodes: readonly NodeFacts[]): PlaceColumns {
  const places = nodes.flatMap(({ name, sharedFolders }): Place[] => [
    { node: name },
    ...sharedFolders.map(({ volume }) => ({ volume })),
  ]);
  return { places: places.map(placeText), labels: nodes.map(({ labels }) => JSON.stringify(labels)) };
}

/** Unreadable URLs count as none until the next renewal, which writes the row again. */
const Urls = z.object({ urls: z.unknown().transform(urlsIn) });

function urlsIn(text: unknown): string[] {
  try {
    return z.array(z.string()).parse(JSON.parse(z.string().parse(text)));
  } catch {
    return [];
  }
}

/** Includes dead nodes: a restarted server often has the former URL. */
export async function readUrls(db: Database): Promise<string[]> {
  return [...new Set((await db.all(sql.urls, Urls)).flatMap(({ urls }) => urls))];
}

const Server = z.object({ pid: z.int(), startedAt: z.string(), ...Urls.shape });

/** Returns all nodes of this machine but `id`, dead or alive. */
export async function readServers(db: Database, id: string): Promise<z.infer<typeof Server>[]> {
  return db.all(sql.servers, Server, [MACHINE, id]);
}

const Claimed = z.object({ epoch: z.int().nullable(), tookOver: z.boolean().nullable(), owner: z.string().nullable() });

/** Owner whose process has exited, and the end of its lease. */
export interface DeadOwner {
  readonly nodeId: string;
  readonly expiresAt: number | null;
}

export type Claim = { readonly lease: Lease } | { readonly owner: string | undefined };

/**
 * Gives the session to this node in one transaction. Waits for the row instead of skipping a locked one, because a lock is
 * mostly an append or a renamed title, after which the claim succeeds. Otherwise returns the living owner.
 */
export async function claimForNode(
  db: Database,
  sessionId: string,
  { facts, nodeId }: OwnNode,
  dead?: DeadOwner,
): Promise<Claim> {
  const place = facts ? [placeText({ node: facts.name }), JSON.stringify(facts.labels)] : [null, null];
  const values = [VERSION, sessionId, nodeId, dead?.nodeId ?? null, dead?.expiresAt ?? null, ...place];
  const found = await db.get(sql.claim, Claimed, values);
  const epoch = found?.epoch ?? undefined;
  if (!found || epoch === undefined) return { owner: found?.owner ?? undefined };
  return { lease: { sessionId, nodeId, epoch, tookOver: found.tookOver === true } };
}

export async function releaseFromNode(db: Database, { epoch, nodeId, sessionId }: Lease): Promise<void> {
  await db.run(sql.release, [sessionId, nodeId, epoch]);
}
