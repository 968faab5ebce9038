import { inputRequired, type InputRequiredResult, type ServerContext } from "@modelcontextprotocol/server";
import type { Form, FormAnswer, NeedsInput } from "../tools/elicitation/needs-input.ts";
import { formAnswer, type Round } from "./call.ts";
import type { States } from "./states.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/**
 * Forms on their way to a client. From 2026-07-28 on a call ends with them, and the client sends it again with what was
 * filled in. Before, they are requests to the client while the call runs. The SDK's own bridge between the two is not
 * used: there a dialog that fails ends the whole call, and one that is no longer needed stays open.
 */

export async function sendAway(
  { requests, state }: NeedsInput,
  context: ServerContext,
  states: States,
): Promise<InputRequiredResult> {
  const inputRequests = Object.fromEntries(
    Object.entries(requests).map(([key, form]) => [key, inputRequired.elicit(paramsOf(form))]),
  );
  return inputRequired({ inputRequests, requestState: await states.mint(state, context) });
}

/** The round that follows. A client gives its call up after a time of its own, so a dialog gets no more than `withinMs`. */
export async function askDuring(needs: NeedsInput, context: ServerContext): Promise<Round> {
  const enough = new AbortController();
  const { signal } = context.mcpReq;
  const stop = () => enough.abort();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const timer = setTimeout(stop, needs.withinMs);
  void needs.settled(enough.signal).then(stop, stop);
  try {
    const asked = Object.entries(needs.requests).map(async ([key, form]) => {
      return [key, await askFor(form, context, enough.signal)] as const;
    });
    return { state: needs.state, answers: Object.fromEntries(await Promise.all(asked)) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    stop();
  }
}

async function askFor(form: Form, { mcpReq }: ServerContext, signal: AbortSignal): Promise<FormAnswer> {
  try {
    const request = { method: "elicitation/create" as const, params: paramsOf(form) };
    // The call ends the form itself: the time limit of the SDK for requests does not hold.
    const answer = await mcpReq.send(request, { signal, timeout: MAX_TIMER_MS });
    return formAnswer({ form: answer }, "form") ?? { action: "cancel" };
  } catch {
    // A client that cannot show this form has not shown it: the next approver is asked.
    return { action: signal.aborted ? "none" : "cancel" };
  }
}

export function paramsOf({ message, schema }: Form) {
  return { mode: "form" as const, message, requestedSchema: { ...schema, properties: { ...schema.properties } } };
}
