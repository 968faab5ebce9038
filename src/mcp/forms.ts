import { inputRequired, type InputRequiredResult, type ServerContext } from "@modelcontextprotocol/server";
import type { Form, FormAnswer, NeedsInput } from "../tools/elicitation/needs-input.ts";
import { formAnswer, type Round } from "./tool-call.ts";
import type { RequestStates } from "./form-state.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/**
 * Sends forms to a client. Since 2026-07-28, a call ends with its forms, and the client repeats the call with the answers.
 * Earlier clients get forms as requests while the call runs. The SDK's own bridge between both ways is not used: there a failed
 * dialog ends the whole call, and an obsolete dialog stays open.
 */

export async function endWithForms(
  { requests, state }: NeedsInput,
  context: ServerContext,
  states: RequestStates,
): Promise<InputRequiredResult> {
  const inputRequests = Object.fromEntries(
    Object.entries(requests).map(([key, form]) => [key, inputRequired.elicit(elicitParams(form))]),
  );
  return inputRequired({ inputRequests, requestState: await states.mint(state, context) });
}

/**
 * Asks a legacy client during the call, and resolves to the next round. Limits dialogs to `withinMs`, because the client gives
 * up its call after a time of its own.
 */
export async function askDuringCall(needs: NeedsInput, context: ServerContext): Promise<Round> {
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
    const request = { method: "elicitation/create" as const, params: elicitParams(form) };
    // `signal` ends the form, so the SDK's timeout for requests is set to the maximum.
    const answer = await mcpReq.send(request, { signal, timeout: MAX_TIMER_MS });
    return formAnswer({ form: answer }, "form") ?? { action: "cancel" };
  } catch {
    // A failure counts as `cancel`: the client cannot show the form, so the next approver is asked.
    return { action: signal.aborted ? "none" : "cancel" };
  }
}

export function elicitParams({ message, schema }: Form) {
  return { mode: "form" as const, message, requestedSchema: { ...schema, properties: { ...schema.properties } } };
}
