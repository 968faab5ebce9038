import { AppError, invalidArgument } from "../domain/error.ts";
import type { SessionOptions } from "../domain/options.ts";
import { hasPlace, placeText, type Place } from "../domain/place.ts";
import { waitsForNode, type SessionState } from "../domain/session.ts";
import { normalPath } from "../security/normal-path.ts";
import { pause, unlessAborted } from "./clock.ts";
import type { Clock, Lease, Logger, NodeRecord, SessionBackend, SessionRecord, StoreMachines } from "./ports.ts";
import { messageOf } from "./ports/store.ts";

/**
 * Decides which node runs a session, on a store of several machines. A session whose folder is on another node is offered to that
 * node; a session that no node may run is looked after by the node that was asked, which starts no Claude Code.
 */

/** Maximum age of the list of nodes, ms. */
const FRESH_MS = 1_000;

/** Relation of a session's place to this node. `nowhere`: no living node begins turns there. */
export type Whereabouts = "here" | "elsewhere" | "nowhere";

type Placed = Pick<SessionOptions, "cwd" | "labels" | "node" | "persistSession">;

interface OwnPlace {
  readonly backend: Pick<SessionBackend, "leases" | "machines" | "nodeId">;
  readonly clock: Pick<Clock, "tick">;
}

export class Placement {
  readonly #backend: OwnPlace["backend"];
  readonly #clock: OwnPlace["clock"];
  #looked: { readonly at: number; readonly nodes: Promise<readonly NodeRecord[]> } | undefined;

  constructor({ backend, clock }: OwnPlace) {
    this.#backend = backend;
    this.#clock = clock;
  }

  get #machines(): StoreMachines | undefined {
    return this.#backend.machines;
  }

  async whereabouts(place: Place | undefined): Promise<Whereabouts> {
    if (!this.#machines || place === undefined) return "here";
    const isHere = hasPlace(this.#machines.self, place);
    if (isHere && !(await this.isDrained())) return "here";
    // Looks anew, because a node may have come, or the drain may be over.
    const nodes = await this.#nodes(0);
    if (isHere && !nodes.some(({ isDraining, nodeId }) => isDraining && nodeId === this.#backend.nodeId)) return "here";
    const isOther = (node: NodeRecord) => node.nodeId !== this.#backend.nodeId && node.isAlive && !node.isDraining;
    return nodes.some((node) => isOther(node) && hasPlace(node, place)) ? "elsewhere" : "nowhere";
  }

  /** True while this node begins no turns. A node that is not announced yet is not drained either. */
  async isDrained(): Promise<boolean> {
    if (!this.#machines) return false;
    const own = this.#backend.nodeId;
    return (await this.#nodes()).some(({ isDraining, nodeId }) => isDraining && nodeId === own);
  }

  /** Returns why this node may begin no turn of a session at `place`, a sentence for people. */
  async whyAway(place: Place | undefined): Promise<string | undefined> {
    const where = await this.whereabouts(place);
    if (where === "here" || place === undefined) return undefined;
    const state = where === "elsewhere" ? "is not this one" : "is not alive, or is being drained";
    return `The session runs on ${placeText(place)} only, which ${state} (claude-agents-mcp nodes).`;
  }

  /** Offers an unowned session to the nodes that have its place, those to come included. */
  async offer(sessionId: string): Promise<void> {
    await this.#machines?.offer(sessionId);
  }

  /** Offers the session to others if only they may run it. Returns false if this node should claim it. */
  async passesOn({ id, place }: Pick<SessionRecord, "id" | "place">): Promise<boolean> {
    const isOthers = (await this.whereabouts(place)) === "elsewhere";
    if (isOthers) await this.offer(id);
    return isOthers;
  }

  /** Gives a session up, for the next node that has its place if the session waits for one. */
  async release(lease: Lease, state: SessionState): Promise<void> {
    await this.#backend.leases.release(lease);
    if (waitsForNode(state)) await this.offer(lease.sessionId);
  }

  /**
   * Returns the place of a new session. Throws INVALID_ARGUMENT for a node or labels that no node of the store has, and
   * SESSION_BUSY if none of them begins turns at present.
   */
  async placeOf(options: Placed): Promise<Place | undefined> {
    const { labels, node } = options;
    if (!this.#machines) return refuseNodes(options);
    if (node !== undefined && labels !== undefined) throw invalidArgument("labels", "cannot be given beside node.");
    const place = this.#wanted(options, this.#machines);
    if ((node === undefined && labels === undefined) || (await this.whereabouts(place)) === "here") return place;
    if (options.persistSession === false)
      throw invalidArgument(
        "persistSession",
        "false keeps a session on the node that is called. Leave out node and labels.",
      );
    await this.#requireNode(place, node === undefined ? "labels" : "node");
    return place;
  }

  #wanted({ cwd, labels, node }: Placed, { self }: StoreMachines): Place {
    if (node !== undefined) return { node };
    if (labels !== undefined) return { labels };
    const shared = self.sharedFolders.find(({ folder }) => isBelow(cwd, folder));
    return shared ? { volume: shared.volume } : { node: self.name };
  }

  async #requireNode(place: Place, field: "labels" | "node"): Promise<void> {
    const nodes = await this.#nodes(0);
    const fitting = nodes.filter((node) => hasPlace(node, place));
    const names = [...new Set(nodes.filter(({ isAlive }) => isAlive).map(({ name }) => name))].toSorted();
    const advice = `Nodes alive: ${names.join(", ")} (claude-agents-mcp nodes).`;
    if (fitting.length === 0) throw invalidArgument(field, `names no node of this store. ${advice}`);
    if (fitting.some(({ isAlive, isDraining }) => isAlive && !isDraining)) return;
    const message = `${field}: ${placeText(place)} is not alive, or is being drained. Try again later. ${advice}`;
    throw new AppError("SESSION_BUSY", message);
  }

  async #nodes(maxAgeMs = FRESH_MS): Promise<readonly NodeRecord[]> {
    const now = this.#clock.tick();
    if (!this.#looked || now - this.#looked.at > maxAgeMs) {
      const nodes = this.#machines?.nodes() ?? Promise.resolve([]);
      this.#looked = { at: now, nodes };
      // A failed look counts for its callers only.
      nodes.catch(() => (this.#looked = undefined));
    }
    return this.#looked.nodes;
  }
}

/** Returns the error for a command that the owner of its session did not answer. */
export function silentOwner(sessionId: string, machines: Pick<StoreMachines, "lease"> | undefined): AppError {
  const within =
    machines && `. If it has died, another takes the session within ${String(machines.lease.ttlMs / 1000)} s`;
  return new AppError("TIMEOUT", `The server that owns the session did not answer${within ?? ""}. Try again.`, {
    sessionId,
  });
}

function refuseNodes({ labels, node }: Placed): undefined {
  if (node === undefined && labels === undefined) return undefined;
  const field = node === undefined ? "labels" : "node";
  throw invalidArgument(
    field,
    "the store of this server is on one machine. Nodes need --store postgres://HOST/DATABASE.",
  );
}

function isBelow(named: string, folder: string): boolean {
  const path = normalPath(named, { cwd: "/", home: "/" }) ?? "";
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

interface Following {
  readonly backend: SessionBackend;
  readonly log: Pick<Logger, "warn">;
  readonly clock: Pick<Clock, "after">;
}

/** Takes sessions that other nodes offer, until the returned function is called. */
export function followOffers(
  { backend, clock, log }: Following,
  take: (record: SessionRecord) => Promise<void>,
): () => Promise<void> {
  const ended = new AbortController();
  /** Ids of offers in hand: an offer comes again while it stands. */
  const taking = new Set<string>();
  const following = follow();
  return async () => {
    ended.abort();
    await following;
  };

  async function follow(): Promise<void> {
    while (backend.machines && !ended.signal.aborted) {
      try {
        // Not awaited, because a claim may wait for the environment of a client.
        for await (const id of backend.machines.offers(ended.signal)) void takeOne(id);
      } catch (error) {
        log.warn("offers of sessions cannot be read", { error: messageOf(error) });
      }
      await unlessAborted(pause(clock, FRESH_MS).over, ended.signal);
    }
  }

  async function takeOne(id: string): Promise<void> {
    if (taking.has(id)) return;
    taking.add(id);
    try {
      const record = await backend.rows.get(id);
      if (record && !record.owner?.alive) await take(record);
    } catch (error) {
      log.warn("an offered session was not taken", { sessionId: id, error: messageOf(error) });
    } finally {
      taking.delete(id);
    }
  }
}
