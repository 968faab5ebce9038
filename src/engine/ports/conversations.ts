import type { SessionOptions } from "../../domain/options.ts";
import type { Principal } from "../../domain/principal.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { SessionRecord } from "./store.ts";

/** Files in which Claude Code keeps a conversation, in the configuration folder of a session. */

/** `name` is the same in every configuration folder and for every working folder; `conversation` is made of such names. */
export interface ConversationFile {
  readonly name: string;
  /** Size in bytes. */
  readonly size: number;
  /** Time of the last change, ms since the epoch. A file of equal size and time was not changed. */
  readonly changedAt: number;
}

export interface ConversationListing {
  /** The transcript first; empty if Claude Code has kept no message. */
  readonly files: readonly ConversationFile[];
  /** Names of files and folders that a resumed conversation does not need. */
  readonly leftOut: readonly string[];
}

/** A conversation in the configuration folder of a session with these fields. `transcriptId` is Claude Code's own id. */
export interface ConversationPlace {
  readonly environmentId: string;
  readonly policy: SessionPolicy;
  readonly principal: Principal;
  readonly transcriptId: string;
  readonly options: Pick<SessionOptions, "cwd" | "env" | "profile">;
}

/** A part of a file. */
export interface FileRange {
  /** First byte. Default: 0. */
  readonly offset?: number;
  /** Maximum number of bytes. Default: up to the end. */
  readonly length?: number;
}

export interface WrittenFile {
  readonly name: string;
  readonly parts: AsyncIterable<Uint8Array>;
}

/** A session to be packed into a file. */
export interface PackRequest {
  readonly record: SessionRecord;
  readonly readLog: (from: number, limit: number) => Promise<readonly StoredEvent[]>;
  /** Called before the file is kept; rejects if the session went on meanwhile. */
  readonly check: () => Promise<void>;
}

export interface PackReport {
  /** Path on this machine. */
  readonly file: string;
  readonly bytes: number;
  /** Sentences on what the file lacks, and on what it holds. */
  readonly notes: readonly string[];
}

/** All methods throw PERMISSION_DENIED if the configuration folder of the session is unknown. */
export interface Conversations {
  list(place: ConversationPlace): Promise<ConversationListing>;
  /** Reads a file named by `list`. Throws for any other name, for a symbolic link, and for a file that is gone. */
  read(place: ConversationPlace, name: string, range?: FileRange): AsyncIterable<Uint8Array>;
  /**
   * Writes files, so that Claude Code in `options.cwd` can resume the conversation: all or none, the transcript last. Consumes
   * each file before the next. Throws INVALID_ARGUMENT for a name that no conversation has, for a folder replaced by a symbolic
   * link, and, unless `replaces`, for a conversation that is already there.
   */
  write(
    place: ConversationPlace,
    files: AsyncIterable<WrittenFile> | Iterable<WrittenFile>,
    options?: { readonly replaces?: boolean },
  ): Promise<void>;
}

/** Conversation of a session, alone and with all else that belongs to the session. */
export interface SessionFiles {
  readonly conversations: Conversations;
  /**
   * Packs the session into a file below the state folder, in place of an earlier one. Throws SESSION_BUSY while a turn runs, and
   * refuses a folder as `plan` does.
   */
  pack(place: ConversationPlace, request: PackRequest): Promise<PackReport>;
}
