import { z } from "zod";

/**
 * How much a request would let happen. `reads`: looking at what lies inside the session's folders. `edits`: changing files
 * there. `all`: anything else, such as a command, the network, or a path outside.
 */
export const RISK_LEVELS = ["reads", "edits", "all"] as const;

export const Risk = z.object({
  level: z.enum(RISK_LEVELS),
  /** What makes it so, in words: "network", "outside the session's folders", "destructive command". */
  why: z.array(z.string()),
});
export type Risk = z.infer<typeof Risk>;

/** In `why`, of a file that git, a shell, an editor or Claude Code runs or heeds by itself. */
export const CAN_RUN = "a file that can run commands";

/** The maximum risk that a caller may approve. */
export const BOUNDS = ["none", ...RISK_LEVELS] as const;
export const Bound = z.enum(BOUNDS);
export type Bound = z.infer<typeof Bound>;

export function isWithin(level: Bound, bound: Bound): boolean {
  return BOUNDS.indexOf(level) <= BOUNDS.indexOf(bound);
}

export function tighter(one: Bound, other: Bound): Bound {
  return isWithin(one, other) ? one : other;
}
