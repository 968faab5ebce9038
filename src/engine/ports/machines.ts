import type { Labels, SharedFolder } from "../../domain/place.ts";
import type { Lease, LeaseTerms } from "./lease.ts";

/** Parts of a store that several machines share. A store of one machine lacks them. */

/** Facts about a node, published with each heartbeat. */
export interface NodeFacts {
  /** Name of the machine or container, equal after a restart (`--node`). */
  readonly name: string;
  readonly version: string;
  /** Folders in which sessions of the node may run; none for any folder. */
  readonly folders: readonly string[];
  readonly sharedFolders: readonly SharedFolder[];
  readonly labels: Labels;
  /** Maximum number of Claude Code processes. */
  readonly maxLive: number;
  /** Digest of the file of principals, "" without one. */
  readonly principals: string;
}

export interface NodeRecord extends NodeFacts {
  readonly nodeId: string;
  readonly isAlive: boolean;
  /** True if the node begins no more turns, as its operator asked. */
  readonly isDraining: boolean;
  /** Time of the last heartbeat by the database's clock, ms since the epoch. */
  readonly seenAt: number;
  /** Number of sessions at work that the node owns. An idle session stays with its owner until that ends. */
  readonly sessions: number;
}

/** A file of a conversation, as stored in whole. `path`: name in `Conversations`, with `:2` behind it if stored anew once. */
export interface StoredFile {
  readonly path: string;
  /** bytes */
  readonly size: number;
  /** SHA-256 of the first `size` bytes, hex. */
  readonly digest: string;
}

/** The files of a conversation at the end of a turn. Only what a manifest names is ever resumed. */
export interface TranscriptManifest {
  readonly transcriptId: string;
  /** Event that ended the last turn, 0 before the first end. */
  readonly eventId: number;
  readonly files: readonly StoredFile[];
}

/** Copies of conversations, for the next node of a session. Deleted with the session. */
export interface StoredTranscripts {
  /** Stores bytes of a file at `offset`, and drops what is stored beyond. Throws `FencedError`. */
  write(lease: Lease, path: string, offset: number, bytes: Uint8Array): Promise<void>;
  /** Makes the manifest the valid one, once all its bytes are stored, and drops other files. Throws `FencedError`. */
  seal(lease: Lease, manifest: TranscriptManifest): Promise<void>;
  /** Returns the last sealed manifest. */
  manifest(sessionId: string): Promise<TranscriptManifest | undefined>;
  /** Returns at most `length` bytes from `offset` on. */
  read(sessionId: string, path: string, offset: number, length: number): Promise<Uint8Array>;
}

export interface StoreMachines {
  readonly lease: LeaseTerms;
  /** Facts of this node, as last published. */
  readonly self: NodeFacts;
  /** Returns the nodes of the last day, this one included. */
  nodes(): Promise<NodeRecord[]>;
  /** Begins or ends the drain of the nodes named `name`, dead ones included; returns their number. */
  setDraining(name: string, isDraining: boolean): Promise<number>;
  /** Returns the key for a purpose, 32 bytes, equal at all nodes. The first caller creates the key. */
  key(purpose: string): Promise<Uint8Array>;
  /** Offers an unowned session, whose commands wait in the inbox, to the nodes that have its place. The next claim ends the offer. */
  offer(sessionId: string): Promise<void>;
  /** Yields ids of offered sessions whose place this node has, now and later; an id again while its offer stands. */
  offers(signal: AbortSignal): AsyncIterable<string>;
  readonly transcripts: StoredTranscripts;
}
