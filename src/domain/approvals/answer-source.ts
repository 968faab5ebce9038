import { z } from "zod";

/**
 * Name of an approver. Any name is valid, because another server of the store may have other approvers.
 * `src/approvers/approvers.ts` lists the approvers of this server.
 */
export const ApproverName = z.string().regex(/^[a-z][a-z\d-]{0,31}$/);
export type ApproverName = z.infer<typeof ApproverName>;

/**
 * Approvers that the engine knows by name, because sessions are driven from there: the person at a client that can show a form
 * (elicitation), the user of the console, and the calling model. All three fetch requests themselves; every further approver is
 * a service that requests are delivered to.
 */
export const USER = "user";
export const CONSOLE = "console";
export const CALLER = "caller";

export function isService(approver: ApproverName): boolean {
  return approver !== USER && approver !== CONSOLE && approver !== CALLER;
}

/** Display names of an approver on the page. */
export interface ApproverWords {
  /** Text after "waits for". */
  readonly who: string;
  /** Text after "allowed" or "denied". */
  readonly by: string;
}

/** Ways to settle a request without an approver. */
export const UNASKED = ["rule", "timeout", "cancel", "withdrawn", "shutdown"] as const;
export type Unasked = (typeof UNASKED)[number];

/**
 * Reason for passing a request to the next approver: time limit, approver unreachable, no answer (`dismissed`), or a form
 * declined by a program before a person could have read it (`unattended`).
 */
export const PassReason = z.enum(["time", "unreachable", "dismissed", "unattended"]);
export type PassReason = z.infer<typeof PassReason>;
