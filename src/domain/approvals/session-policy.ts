import { z } from "zod";
import { Bound } from "./risk.ts";
import { ApproverName } from "./answer-source.ts";

/**
 * Policy of a server's operator for the sessions of one principal. Stored with a session at its start, so that the policy still
 * applies when a server with other settings continues the session (`security/tighter-policy.ts`).
 */

/**
 * Folders that sessions may work in, and folders with trusted settings. A policy combined from several servers has an entry of
 * each; all entries apply.
 */
const Places = z.object({
  /** Allowed folders, with everything below, by real path; `[]` means any folder. */
  allowDirs: z.array(z.string()).readonly(),
  /** Folders in and below which a project's settings may run commands. */
  trustDirs: z.array(z.string()).readonly(),
  /** True if Claude Code's own record of trusted folders counts, too. */
  trustsRecord: z.boolean(),
  /** Command put before the command of every process; `[]` means none. */
  spawnWrapper: z.array(z.string()).readonly(),
});
export type Places = Readonly<z.infer<typeof Places>>;

const Milliseconds = z.number();

export const SessionPolicy = z.object({
  /** Rules as written. */
  rules: z.object({ allow: z.array(z.string()), ask: z.array(z.string()), deny: z.array(z.string()) }),
  /** Folder that `~` means in `rules`. */
  home: z.string(),
  callerApproves: Bound,
  allowsBypass: z.boolean(),
  /** `required`: sessions run only in the sandbox (`--sandbox required`). */
  sandbox: z.enum(["off", "required"]),
  /** Hosts that commands in the sandbox may reach. */
  sandboxDomains: z.array(z.string()),
  /** True if a session may start sessions of its own. */
  mayNest: z.boolean(),
  approvalChain: z.array(ApproverName),
  /** Time limit by approver name, ms, for every approver that has one. */
  approverTimeoutMs: z.record(ApproverName, Milliseconds),
  limits: z.object({
    requestDeliveredMs: Milliseconds,
    requestMaxMs: Milliseconds,
    requestUnseenMs: Milliseconds,
    turnMaxMs: Milliseconds,
    inactivityMs: Milliseconds,
    idleProcessMs: Milliseconds,
    stopGraceMs: Milliseconds,
  }),
  /**
   * Entry for each server that the policy comes from. Empty if the server does not know the principal, and then runs none
   * of the principal's sessions.
   */
  places: z.array(Places),
  /**
   * Terms while no client attends to the session. `requests`: a request that no client can be shown waits or is denied.
   * `maxUsd`: maximum cost of turns, USD.
   */
  unattended: z.object({ requests: z.enum(["wait", "deny"]), maxUsd: z.number() }),
});
export type SessionPolicy = z.infer<typeof SessionPolicy>;

const PARTS = SessionPolicy.shape;

/**
 * Stricter parts of the policy of a prompt's sender: each part is missing, or replaces that part of the policy under which the
 * session began. `rules.ask` and `rules.deny` have only the additional rules.
 */
export const AddedPolicy = z.object({
  rules: PARTS.rules.exactOptional(),
  callerApproves: PARTS.callerApproves.exactOptional(),
  allowsBypass: PARTS.allowsBypass.exactOptional(),
  sandbox: PARTS.sandbox.exactOptional(),
  sandboxDomains: PARTS.sandboxDomains.exactOptional(),
  mayNest: PARTS.mayNest.exactOptional(),
  approvalChain: PARTS.approvalChain.exactOptional(),
  approverTimeoutMs: PARTS.approverTimeoutMs.exactOptional(),
  limits: PARTS.limits.exactOptional(),
  places: PARTS.places.exactOptional(),
  unattended: PARTS.unattended.exactOptional(),
} satisfies { [K in keyof Omit<typeof PARTS, "home">]: unknown });
export type AddedPolicy = z.infer<typeof AddedPolicy>;
