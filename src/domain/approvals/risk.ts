import { z } from "zod";

/**
 * Worst effect of a request. `reads`: looks at files inside the session's folders. `edits`: changes files there. `all`:
 * anything else, such as a command, the network, or a path outside.
 */
export const RISK_LEVELS = ["reads", "edits", "all"] as const;

export const Risk = z.object({
  level: z.enum(RISK_LEVELS),
  /** Reasons for the level: "network", "outside the session's folders", "destructive command". */
  why: z.array(z.string()),
});
export type Risk = z.infer<typeof Risk>;

/** Entry of `why` for a file that git, a shell, an editor or Claude Code runs or heeds by itself. */
export const CAN_RUN = "a file that can run commands";

/** Maximum risk that a caller may approve. */
export const BOUNDS = ["none", ...RISK_LEVELS] as const;
export const Bound = z.enum(BOUNDS);
export type Bound = z.infer<typeof Bound>;

export function isWithin(level: Bound, bound: Bound): boolean {
  return BOUNDS.indexOf(level) <= BOUNDS.indexOf(bound);
}

export function tighter(one: Bound, other: Bound): Bound {
  return isWithin(one, other) ? one : other;
}
