import { z } from "zod";

/**
 * The name of an approver. Any name is valid here, since another server of the store may have other approvers; those of this one
 * are the table in src/approvers/approvers.ts.
 */
export const ApproverName = z.string().regex(/^[a-z][a-z\d-]{0,31}$/);
export type ApproverName = z.infer<typeof ApproverName>;

/**
 * Sessions are driven from these three, so the engine knows them by name: the person at a client that can show a form
 * (elicitation), the user of the console, and the calling model. They fetch requests themselves. All other approvers are
 * services that requests are delivered to, all alike.
 */
export const USER = "user";
export const CONSOLE = "console";
export const CALLER = "caller";

export function isService(approver: ApproverName): boolean {
  return approver !== USER && approver !== CONSOLE && approver !== CALLER;
}

/** The display name of an approver on the page. */
export interface ApproverWords {
  /** Behind "waits for". */
  readonly who: string;
  /** Behind "allowed" or "denied". */
  readonly by: string;
}

/** How a request is settled other than by an approver. */
export const UNASKED = ["rule", "timeout", "cancel", "withdrawn", "shutdown"] as const;
export type Unasked = (typeof UNASKED)[number];

/**
 * Why a request went to the next approver: its time was over, the approver could not be reached or gave no answer, or a program
 * declined the form before a person could have read it.
 */
export const Passed = z.enum(["time", "unreachable", "dismissed", "unattended"]);
export type Passed = z.infer<typeof Passed>;
