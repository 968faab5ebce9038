import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { JsonObject } from "../../domain/json.ts";
import type { ToolCall } from "../define.ts";

/**
 * A call that asks the person at its client goes in rounds: it ends with a form, and comes back with what was filled in.
 * What it has to know then it takes along in its state, so that any server instance can go on with it.
 */

/** Clients give up a call that looks like a loop: after ten rounds, fewer before 2026-07-28. */
export const MAX_FORMS = 7;

const Shown = z.object({
  sessionId: z.string(),
  requestId: z.string(),
  eventId: z.int(),
  again: z.boolean(),
  /** Of two forms for the request this is the second. */
  second: z.boolean(),
  /** ms since the epoch. */
  at: z.number(),
});

const Time = z.object({
  /** ms that the call still waits; the time in which a form is looked at does not count. */
  left: z.number(),
  /** When a call that runs while its form is shown must be over, ms since the epoch. */
  until: z.number(),
});
export type Time = z.infer<typeof Time>;

const Round = z.object({
  tool: z.string(),
  /** What the tool has done so far. */
  work: JsonObject,
  forms: z.int(),
  shown: Shown,
  /** Where the call reads on, by session. */
  from: z.record(z.string(), z.int()),
  /** Missing where the call lasts as long as its turn. */
  time: Time.exactOptional(),
});
export type Round = z.infer<typeof Round>;

/** What the call comes back with, if it does. The state is ours, but a client can send it with another call. */
export function roundBefore(tool: string, { resumeState }: ToolCall): Round | undefined {
  if (resumeState === undefined) return undefined;
  const round = Round.safeParse(resumeState).data;
  if (round?.tool === tool) return round;
  throw invalidArgument("requestState", "belongs to another call. Send the call without it.");
}

/** A client may show each key once: the second form for a request has a key of its own. */
export function requestKey(requestId: string, second: boolean): string {
  return second ? `perm_${requestId}_why` : `perm_${requestId}`;
}
