/** Leases of sessions and of nodes. */

/** Right to write a session. `epoch` grows with each claim; a writer with an older epoch is fenced. */
export interface Lease {
  readonly sessionId: string;
  readonly nodeId: string;
  readonly epoch: number;
  /** True if the claim took the session from a node with an expired lease. */
  readonly tookOver: boolean;
}

/** Times of the leases of nodes, ms. */
export interface LeaseTerms {
  readonly ttlMs: number;
  readonly renewMs: number;
  /** Time since the last renewal after which a node ends its processes of Claude Code, well before `ttlMs`. */
  readonly endMs: number;
}
