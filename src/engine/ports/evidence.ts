import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { PermissionRequest } from "../../domain/permission.ts";
import type { Principal } from "../../domain/principal.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { Comparison, Snapshot } from "../../domain/receipt.ts";
import type { VerifiedCommand } from "../../domain/verification.ts";

/** The engine's ports to what happened: the folders of a session, and the commands of a verification. */

/** Session whose folders are watched: its own and the additional ones. */
export interface WatchedSession {
  readonly principal: Principal;
  readonly policy: SessionPolicy;
  /** Environment record of its processes; "" is the server's own. */
  readonly environmentId: string;
  readonly options: Pick<SessionOptions, "additionalDirectories" | "cwd" | "env">;
}

/** The engine's port to the folders of a session. No method rejects; none changes a folder or starts a program of a repository. */
export interface FolderWatch {
  /**
   * Returns the state of the folders. `key` names the turn: until `forget`, the watch keeps old bytes of dirty files under it,
   * for lines and tests, and the stamps of folders outside git. At most 3 s.
   */
  look(session: WatchedSession, key: string): Promise<Snapshot>;
  /**
   * Compares the folders with `before`, which `look` returned, perhaps at another server. `undefined`: lost. At most 3 s.
   * `reported`: absolute paths of files that tools have changed, to be found in `outOfSight` if the comparison cannot see them.
   */
  compare(
    session: WatchedSession,
    before: Snapshot | undefined,
    key: string,
    reported?: readonly string[],
  ): Promise<Comparison>;
  /** Number of files that differ between two states; `undefined` if that is not known. */
  differences(earlier: Snapshot, later: Snapshot): number | undefined;
  /** Deletes everything kept under `key`. */
  forget(key: string): Promise<void>;
}

/**
 * Session in whose folder and environment commands run. `processTag` is of the run, not of Claude Code: `endLeftover` ends all
 * processes of a tag.
 */
export interface CheckedSession extends WatchedSession {
  readonly sessionId: string;
  readonly options: SessionOptions;
  readonly processTag: string;
}

/** Assessment of a command, as of a request for `Bash`. */
export interface JudgedCommand extends Pick<PermissionRequest, "cwd" | "paths" | "refused" | "risk"> {
  /** Absolute paths that a shell command could mean, as far as the text shows. */
  readonly mentions?: readonly string[];
}

/** Result of a run. `commands` ends with the first command that is red. */
export interface CheckOutcome {
  readonly status: "passed" | "failed" | "timeout" | "stopped" | "lost";
  readonly commands: VerifiedCommand[];
  /** Reason for `lost`, a sentence. */
  readonly message?: string;
}

/** The engine's port to the commands of a verification. */
export interface CheckRunner {
  /** Reason, in sentences, why no command may run for the session; `undefined` if commands may run. */
  refusal(session: CheckedSession): string | undefined;
  /** Judges commands in order, by the paths that they touch and what they can run. Rejects if the risk cannot be determined. */
  judge(session: CheckedSession, commands: readonly string[]): Promise<JudgedCommand[]>;
  /**
   * Runs commands in order, until the first red one, each with a closed stdin, as a supervised process behind the wrapper of
   * the session: no process of the run outlives it. Aborting `stop` ends the run within 0.5 s. Never rejects.
   */
  run(
    session: CheckedSession,
    commands: readonly string[],
    limits: { readonly timeoutMs: number; readonly stop: AbortSignal },
  ): Promise<CheckOutcome>;
}
