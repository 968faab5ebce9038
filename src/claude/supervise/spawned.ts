import type { ShimRef } from "../../domain/session.ts";
import type { DetachedProcesses } from "./detached-processes.ts";

/** A Claude Code that this server follows, whether it has started it or a shim has. */

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

export interface Spawned {
  readonly pid: number | undefined;
  /** The last words of the process on stderr, a few kilobytes at most. */
  stderrTail(): string;
  /** Why this server has ended it, where its output was nothing that can be read. */
  fault(): string | undefined;
  readonly exit: Promise<Exit>;
  /** Resolves when it has ended and nothing is left of what it has started; or when another server has taken it over. */
  readonly gone: Promise<unknown>;
  /** SIGKILL to it and to all that it has started. */
  kill(): void;
  /** What it has started and no longer knows of. */
  readonly detached: DetachedProcesses;
  /** Undefined for a child of this server. */
  readonly held: Held | undefined;
}

/**
 * A process that has its pipes at a shim. The Agent SDK ends no such process: what is to end it is said here, and reaches it only as
 * long as no other server has taken it over.
 */
export interface Held {
  readonly shim: ShimRef;
  /** Of the process, in the system's own unit. */
  readonly startedAt: string;
  /** Of a process that had another owner before: ids of the requests that Claude Code still waits for. */
  readonly pending: Promise<readonly string[]>;
  /** The number of its last line; of its exit, when it has ended. */
  lastLine(): number;
  /** A spare has got the session that was claimed under this epoch. */
  own(epoch: number): void;
  acknowledge(line: number): void;
  /** The request was reported to the session: further lines may follow. */
  settle(requestId: string): void;
  /** Another server has its session: nothing more is said to it, and nothing more of it is heard. */
  letGo(): void;
  endInput(): void;
  /** SIGTERM to the process alone. */
  terminate(): void;
}

/** What a process did that has ended before it could answer, as far as the system tells: the SDK may tell its failure later. */
export function endBeforeReady({ code = null, signal = null }: Partial<Exit> = {}): string {
  if (signal !== null) return `did not start: it was killed by ${signal}`;
  return code ? `did not start: it exited with code ${String(code)}` : "ended before it could answer";
}
