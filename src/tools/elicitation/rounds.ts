import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { JsonObject } from "../../domain/json.ts";
import type { ToolCall } from "../define.ts";

/**
 * State of a call that shows forms. The call ends with a form, and the client repeats it with the answer. The state travels
 * with the client, so that any server instance can continue.
 */

/**
 * Maximum number of forms in a call. Clients take many rounds for a loop and give up: after ten rounds, earlier before
 * 2026-07-28.
 */
export const MAX_FORMS = 7;

const Shown = z.object({
  sessionId: z.string(),
  requestId: z.string(),
  eventId: z.int(),
  again: z.boolean(),
  /** True for the second form of a request. */
  second: z.boolean(),
  /** Time at which the form was shown, ms since the epoch. */
  at: z.number(),
});

const Time = z.object({
  /** Remaining wait, ms. Time spent on a form does not count. */
  left: z.number(),
  /** Deadline of a call that runs while its form is shown, ms since the epoch. */
  until: z.number(),
});
export type Time = z.infer<typeof Time>;

const Round = z.object({
  tool: z.string(),
  /** State of the tool. */
  work: JsonObject,
  forms: z.int(),
  shown: Shown,
  /** Cursor at which the call reads on, by session. */
  from: z.record(z.string(), z.int()),
  /** Absent if the call lasts as long as its turn. */
  time: Time.exactOptional(),
});
export type Round = z.infer<typeof Round>;

/** Returns the state of the previous round, if any. The state is signed by us, but a client can send it with another call. */
export function previousRound(tool: string, { resumeState }: ToolCall): Round | undefined {
  if (resumeState === undefined) return undefined;
  const round = Round.safeParse(resumeState).data;
  if (round?.tool === tool) return round;
  throw invalidArgument("requestState", "belongs to another call. Send the call without it.");
}

/** Returns the key of a form. A client may show each key only once, so the second form of a request has its own key. */
export function requestKey(requestId: string, second: boolean): string {
  return second ? `perm_${requestId}_why` : `perm_${requestId}`;
}
