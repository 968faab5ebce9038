import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { JsonObject } from "../../domain/json.ts";
import type { OpenAsk } from "../../domain/permission.ts";
import type { ToolCall } from "../define.ts";
import type { SessionView } from "../session-view.ts";
import type { NeedsInput } from "./needs-input.ts";
import { showForm, takeForm, untilSettled, type Asker, type Taken } from "./user.ts";

/**
 * A call that asks the person at its client goes in rounds: it ends with a form, and comes back with what was filled in.
 * What it has to know then it takes along in its state, so that any server instance can go on with it.
 */

/** Clients give a call up after so many rounds as it takes to look like a loop (ten, and less before 2026-07-28). */
export const FORMS_MOST = 7;

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

export const Round = z.object({
  tool: z.string(),
  /** What the tool has done so far. */
  work: JsonObject,
  forms: z.int(),
  shown: Shown,
});
export type Round = z.infer<typeof Round>;

/** What the call comes back with. The state is ours, but a client can send it with another call. */
export function resumed<T extends Round>(schema: z.ZodType<T>, tool: string, { resumeState }: ToolCall): T | undefined {
  if (resumeState === undefined) return undefined;
  const round = schema.safeParse(resumeState).data;
  if (round?.tool === tool) return round;
  throw invalidArgument("requestState", "is of another call. Send the call without it.");
}

interface Showing<T extends Round> {
  /** A request whose form came back unclear. */
  readonly again: string | undefined;
  /** Of this round, but for what is shown. */
  readonly round: Omit<T, "shown">;
  readonly withinMs: number;
}

/** The end of this round, with the form for a request; undefined where that is gone. */
export async function endWithForm<T extends Round>(
  view: SessionView,
  open: OpenAsk,
  { again: unclear, round, withinMs }: Showing<T>,
  asker: Asker,
): Promise<NeedsInput | undefined> {
  const { eventId, filled, requestId } = open;
  const again = requestId === unclear;
  const form = await showForm(view, open, again, asker);
  if (!form) return undefined;
  const second = filled !== undefined;
  const shown = { sessionId: view.id, requestId, eventId, again, second, at: asker.deps.now() };
  return {
    requests: { [requestKey(requestId, second)]: form },
    state: { ...round, forms: round.forms + 1, shown },
    sessionId: view.id,
    withinMs,
    settled: async (signal) => untilSettled(view, requestId, signal, asker),
  };
}

/** What came of the form; undefined where the client has not shown it. */
export async function takeShown(
  view: SessionView,
  { forms, shown }: Pick<Round, "forms" | "shown">,
  asker: Asker,
): Promise<Taken | undefined> {
  const answer = asker.call.inputResponses[requestKey(shown.requestId, shown.second)];
  return answer && takeForm(view, { ...shown, last: forms >= FORMS_MOST }, answer, asker);
}

/** A client may show each key once: the second form for a request has a key of its own. */
export function requestKey(requestId: string, second: boolean): string {
  return second ? `perm_${requestId}_why` : `perm_${requestId}`;
}
