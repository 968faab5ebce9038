import { z } from "zod";

/** What is left of the bounds of unattended work; `over` once one of them is passed. */
export const UnattendedWork = z.object({
  leftMs: z.number(),
  leftUsd: z.number(),
  over: z.enum(["time", "cost"]).exactOptional(),
});
export type UnattendedWork = z.infer<typeof UnattendedWork>;

/** `leftMs` is the time until a session that no client attends to is unattended; `work` is given once it works on as such. */
export const Attendance = z.object({ leftMs: z.number(), work: UnattendedWork.exactOptional() });

/** Who can be reached through this server at present: clients whose calls it has seen, and those of them that show forms. */
export const Reach = z.object({ caller: z.boolean(), user: z.boolean() });
export type Reach = z.infer<typeof Reach>;
