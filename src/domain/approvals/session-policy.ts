import { z } from "zod";
import { Bound } from "./risk.ts";
import { ApproverName } from "./answer-source.ts";

/**
 * What the operator of one server allows the sessions of one principal. It is stored with a session when that begins, so that
 * it holds as well where another server with other settings goes on with the session (security/tighter-policy.ts).
 */

/** Where sessions may work, and whose settings may run there. A policy has one of these for each server it comes from; all hold. */
const Places = z.object({
  /** Only these folders and what is below them, by real path; [] means any. */
  allowDirs: z.array(z.string()).readonly(),
  /** Here, and below, settings of a project may run commands. */
  trustDirs: z.array(z.string()).readonly(),
  /** And where Claude Code's own record of trust says so. */
  trustsRecord: z.boolean(),
  /** Put before the command of every process; [] is nothing. */
  spawnWrapper: z.array(z.string()).readonly(),
});
export type Places = Readonly<z.infer<typeof Places>>;

const Milliseconds = z.number();

export const SessionPolicy = z.object({
  /** As they were written. */
  rules: z.object({ allow: z.array(z.string()), ask: z.array(z.string()), deny: z.array(z.string()) }),
  /** The folder that `~` means in them. */
  home: z.string(),
  callerApproves: Bound,
  allowsBypass: z.boolean(),
  /** Whether its sessions run in the sandbox only (--sandbox required). */
  sandbox: z.enum(["off", "required"]),
  /** Hosts that commands in that sandbox may reach. */
  sandboxDomains: z.array(z.string()),
  /** Whether a session may start sessions of its own. */
  mayNest: z.boolean(),
  approvalChain: z.array(ApproverName),
  /** By name, of all who have a time there. */
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
  /** Empty for a principal that the server does not know: then it runs nothing of theirs in any case. */
  places: z.array(Places),
  /** While no client attends to the session: whether requests that no one can be shown wait, and what turns may cost, USD. */
  unattended: z.object({ requests: z.enum(["wait", "deny"]), maxUsd: z.number() }),
});
export type SessionPolicy = z.infer<typeof SessionPolicy>;

const PARTS = SessionPolicy.shape;

/**
 * What the policy of the sender of a prompt adds to the one that its session began under: the parts that it tightens, as they are
 * then. Of the rules that ask and deny only those that it adds.
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
