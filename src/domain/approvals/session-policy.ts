import { z } from "zod";
import { Bound } from "./risk.ts";
import { ApproverName } from "./answer-source.ts";

/**
 * Policy of a server's operator for the sessions of one principal. Stored with a session at its start, and so also in force if
 * a server with other settings continues the session (`security/tighter-policy.ts`).
 */

/**
 * Folders to work in, and settings that may run there. A policy has one entry for each server it comes from; all entries apply.
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
   * Entry for each server of origin. Empty for a principal unknown to the server, which then runs none of the principal's
   * sessions.
   */
  places: z.array(Places),
  /**
   * Terms while no client attends to the session: handling of requests that cannot be shown, and maximum cost of turns, USD.
   */
  unattended: z.object({ requests: z.enum(["wait", "deny"]), maxUsd: z.number() }),
});
export type SessionPolicy = z.infer<typeof SessionPolicy>;

const PARTS = SessionPolicy.shape;

/**
 * Parts of the sender's policy that tighten the policy under which the session began, already tightened. Of the `ask` and
 * `deny` rules, only the added ones.
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
