import { z } from "zod";

/**
 * Remaining bounds of unattended work: `leftMs` of running turns, `leftUsd` of cost. `over` names the first bound that was
 * reached.
 */
export const UnattendedWork = z.object({
  leftMs: z.number(),
  leftUsd: z.number(),
  over: z.enum(["time", "cost"]).exactOptional(),
});
export type UnattendedWork = z.infer<typeof UnattendedWork>;

/** State of a session that no client attends to: the session becomes unattended in `leftMs` ms, and has `work` from then on. */
export const Attendance = z.object({ leftMs: z.number(), work: UnattendedWork.exactOptional() });

/**
 * Approvers of a session at connected clients: `caller` is true if a client has named the session in a call, `user` if one of
 * these clients can show forms.
 */
export const Reach = z.object({ caller: z.boolean(), user: z.boolean() });
export type Reach = z.infer<typeof Reach>;
