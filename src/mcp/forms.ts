import {
  inputRequired,
  type InputRequest,
  type InputRequiredResult,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { Form, FormAnswer, NeedsInput, RequestLink } from "../tools/elicitation/needs-input.ts";
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
  return inputRequired({ inputRequests: inputRequestsOf(requests), requestState: await states.mint(state, context) });
}

export function inputRequestsOf(requests: NeedsInput["requests"]): Record<string, InputRequest> {
  const asked = Object.entries(requests).map(([key, form]) => {
    return [key, "url" in form ? inputRequired.elicitUrl(form) : inputRequired.elicit(formParams(form))] as const;
  });
  return Object.fromEntries(asked);
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
  const forms = Object.entries(needs.requests).map(([key, form]) => [key, elicitParams(form)] as const);
  const settle = async () => {
    await needs.settled(enough.signal);
    if (!enough.signal.aborted) await Promise.all(forms.map(async ([, params]) => notifyComplete(params, context)));
  };
  void settle().then(stop, stop);
  try {
    const asked = forms.map(async ([key, params]) => [key, await askFor(params, context, enough.signal)] as const);
    return { state: needs.state, answers: Object.fromEntries(await Promise.all(asked)) };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    stop();
  }
}

async function askFor(params: ElicitParams, { mcpReq }: ServerContext, signal: AbortSignal): Promise<FormAnswer> {
  try {
    const request = { method: "elicitation/create" as const, params };
    // `signal` ends the form, so the SDK's timeout for requests is set to the maximum.
    const answer = await mcpReq.send(request, { signal, timeout: MAX_TIMER_MS });
    const taken = formAnswer({ form: answer }, "form") ?? { action: "cancel" };
    if (params.mode === "form" || taken.action !== "accept") return taken;
    // The user has only opened the page. The call goes on once the request is answered there.
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    return { action: "none" };
  } catch {
    // A failure counts as `cancel`: the client cannot show the form, so the next approver is asked.
    return { action: signal.aborted ? "none" : "cancel" };
  }
}

type ElicitParams = ReturnType<typeof elicitParams>;

/** Parameters of `elicitation/create` of the 2025 era, which identifies each page. */
function elicitParams(form: Form | RequestLink) {
  return "url" in form ? { ...form, mode: "url" as const, elicitationId: crypto.randomUUID() } : formParams(form);
}

/** Reports that the user is done with a page. Ignores failures: a client that has left needs no notification. */
async function notifyComplete(params: ElicitParams, { mcpReq }: ServerContext): Promise<void> {
  if (params.mode === "form") return;
  const { elicitationId } = params;
  const complete = { method: "notifications/elicitation/complete" as const, params: { elicitationId } };
  await mcpReq.notify(complete).catch(() => undefined);
}

function formParams({ message, schema }: Form) {
  return { mode: "form" as const, message, requestedSchema: { ...schema, properties: { ...schema.properties } } };
}
