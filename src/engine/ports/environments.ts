import type { SessionOptions } from "../../domain/options.ts";
import type { Account } from "../../domain/plan.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Identity } from "../../domain/process.ts";

/** The environment records of clients, in memory only. */
export interface SessionEnvironments {
  /** Returns the configuration and payer of a process with this record; `undefined` if this server has no such record. */
  identityOf(
    environmentId: string,
    principal: Principal,
    options: Pick<SessionOptions, "env" | "profile">,
  ): Identity | undefined;
  /** Returns the account that would pay for a process; `undefined` if this server has no such record. */
  accountOf(
    environmentId: string,
    principal: Principal,
    options: Pick<SessionOptions, "env" | "profile">,
  ): Promise<Account | undefined>;
  /** Keeps the record for the session, and masks secrets of the record in the session's events. */
  hold(sessionId: string, environmentId: string): void;
  /** Keeps held records of sessions for which `isAtWork` holds, however many sessions come after them. */
  keepWhile(isAtWork: (sessionId: string) => boolean): void;
  /**
   * Finds a record, of a connection open now or within `ms`, that gives a process of the session `identity`. `ms` may be
   * `Infinity`. Resolves with `undefined` once `signal` aborts.
   */
  find(
    identity: Identity,
    session: { readonly principal: Principal; readonly options: Pick<SessionOptions, "env" | "profile"> },
    ms: number,
    signal?: AbortSignal,
  ): Promise<string | undefined>;
}
