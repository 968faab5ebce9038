import type { ShimRef } from "../../domain/process.ts";
import type { DetachedProcesses } from "./detached-processes.ts";

/** Supervises a running Claude Code, started by this server or by a shim. */

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

export interface ProcessHandle {
  readonly pid: number | undefined;
  /** Last lines on `stderr`, a few kilobytes at most. */
  stderrTail(): string;
  /** Reason for killing the process because of its output, see `limitLines`. */
  fault(): string | undefined;
  readonly exit: Promise<Exit>;
  /** Resolves after the end of the process and all descendants, or after a takeover by another server. */
  readonly gone: Promise<unknown>;
  /** Sends `SIGKILL` to the process and all descendants. */
  kill(): void;
  readonly detached: DetachedProcesses;
  /** `undefined` for a child of this server. */
  readonly inShim: ShimControls | undefined;
}

/**
 * Controls a process behind a shim. The Agent SDK cannot end such a process; `endInput` and `terminate` do, as long as no other
 * server has taken the process over.
 */
export interface ShimControls {
  readonly shim: ShimRef;
  /** Start time of the process, in the system's own unit. */
  readonly startedAt: string;
  /** After attaching: ids of the requests still open in Claude Code. */
  readonly pending: Promise<readonly string[]>;
  /** Number of the last line, or of the exit once the process has ended. */
  lastLine(): number;
  /** Binds a spare to a session claimed under `epoch`. */
  own(epoch: number): void;
  acknowledge(line: number): void;
  /** Notes that the request was reported to the session, so that further lines may follow. */
  settle(requestId: string): void;
  /** Leaves the process to another server: sends and receives nothing more. */
  letGo(): void;
  endInput(): void;
  /** Sends `SIGTERM` to the process alone. */
  terminate(): void;
}

/** Describes the end of a process before its first answer, from the exit alone: the SDK may report the failure later. */
export function endBeforeReady({ code = null, signal = null }: Partial<Exit> = {}): string {
  if (signal !== null) return `did not start: it was killed by ${signal}`;
  return code ? `did not start: it exited with code ${String(code)}` : "ended before it could answer";
}
