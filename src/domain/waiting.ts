import { z } from "zod";

/**
 * Reason why the work of a session stands still. `usage_limit`: the API has refused a request until the window resets;
 * `plan_reserve`: the operator keeps the rest of the window; `budget`: the money of the day is spent or reserved; `environment`:
 * no client of the session's identity is connected, whose environment the next process needs; `workspace`: no node that begins
 * turns has the folder of the session; `slot`: all slots for processes are in use.
 */
export const WaitingKind = z.enum(["usage_limit", "plan_reserve", "budget", "environment", "workspace", "slot"]);
export type WaitingKind = z.infer<typeof WaitingKind>;

/** Wait recorded in the state of a session. A wait for a slot is derived from the process. */
export const Waiting = z.object({
  kind: WaitingKind.exclude(["slot"]),
  window: z.string().exactOptional(),
  /** End of the wait as far as known, ms since the epoch. */
  until: z.number().exactOptional(),
  /** Time awake until the server looks again, ms; at most until `until`, whichever way the clock is set. */
  leftMs: z.number().exactOptional(),
  /** True while the owner looks for an environment for the next process. */
  isSearching: z.boolean().exactOptional(),
  /** Begin of the wait, ms since the epoch. */
  since: z.number(),
});
export type Waiting = z.infer<typeof Waiting>;

/** Behavior of a turn at a limit. */
export const OnLimit = z.enum(["report", "wait"]);
export type OnLimit = z.infer<typeof OnLimit>;

/** Rank of a session. `background` yields to all others. */
export const Priority = z.enum(["normal", "background"]);
export type Priority = z.infer<typeof Priority>;
