import { z } from "zod";

/**
 * Remaining bounds of unattended work: `leftMs` of running turns, `leftUsd` of cost. `over` names the bound that was passed.
 */
export const UnattendedWork = z.object({
  leftMs: z.number(),
  leftUsd: z.number(),
  over: z.enum(["time", "cost"]).exactOptional(),
});
export type UnattendedWork = z.infer<typeof UnattendedWork>;

/**
 * Time without clients: `leftMs` is the time, ms, until a session that no client attends to becomes unattended; `work` is
 * present from then on.
 */
export const Attendance = z.object({ leftMs: z.number(), work: UnattendedWork.exactOptional() });

/** Clients connected to this server that have called for the session: `caller` if any, `user` if any of them shows forms. */
export const Reach = z.object({ caller: z.boolean(), user: z.boolean() });
export type Reach = z.infer<typeof Reach>;
