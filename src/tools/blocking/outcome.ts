import type { JsonObject } from "../../domain/json.ts";
import { OUTCOME_WORDS } from "../../domain/turn.ts";
import { cutText } from "../../view/size.ts";
import { answerNow } from "../check/answer.ts";
import { readRequest } from "../check/request.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import type { ReadableSession, EndOfTurn } from "../readable-session.ts";

/** Parts of a blocking call's answer besides messages: open requests and failures. Also records the start of the call. */

const NEXT_STEP =
  "Answer each of actions[] with claude_code_check (until: end, cursor: nextCursor); it then waits for the rest.";

/** Returns open requests in the form of `claude_code_check`, for a call that returns before its turn has ended. */
export async function readOpenRequests(
  view: ReadableSession,
  { cursor, maxBytes }: { cursor: number; maxBytes: number },
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const without = { includeEvents: false, includeResult: false };
  const request = readRequest({ waitMs: 0, maxBytes, pollOptions: without }, deps.limits);
  const check = await answerNow({ ...request, targets: [{ view, cursor }], several: false }, call, deps);
  const { actions, status, truncated, truncatedFields } = check;
  const cut = truncated === undefined ? {} : { truncated, truncatedFields };
  // Callers must not cut this answer: its requests count as shown.
  return { status, actions, nextCursor: cursor, next: NEXT_STEP, ...cut };
}

/** Maximum size of a failure message of the API or Claude Code, bytes of JSON. */
const MAX_MESSAGE_BYTES = 2_048;

/**
 * Describes a failed turn: `error` for people (kind and message), the other fields for programs. `answer` is the presented
 * result of the turn.
 */
export function failureOf(end: EndOfTurn, answer: JsonObject): { readonly error: string } & JsonObject {
  const { category } = end.data;
  const { advice, resetsAt, retryable, window } = answer;
  const { kind, said } = causeOf(end, answer);
  const error = said === "" ? kind : `${kind}: ${said}`;
  if (category === undefined) return { error };
  const limit = { ...(window !== undefined && { window }), ...(resetsAt !== undefined && { resetsAt }) };
  return { error, category, ...limit, retryable, advice };
}

/** Describes a failed turn in one sentence: outcome, kind and message. */
export function describeFailure(end: EndOfTurn, answer: JsonObject): string {
  const { outcome } = end.data;
  const { kind, said } = causeOf(end, answer);
  const why = [kind === outcome ? "" : kind, said].filter((part) => part !== "");
  return ["The turn " + OUTCOME_WORDS[outcome], ...why].join(": ");
}

function causeOf({ data }: EndOfTurn, { result }: JsonObject): { readonly kind: string; readonly said: string } {
  const { category, errorSubtype, message, outcome } = data;
  const kind = category === undefined ? (errorSubtype ?? outcome) : kindOf(category, errorSubtype);
  const said = message ?? (category !== undefined && typeof result === "string" ? result : "");
  return { kind, said: cutText(said, MAX_MESSAGE_BYTES) };
}

function kindOf(category: string, subtype: string | undefined): string {
  return subtype === undefined || subtype === category ? category : `${category} (${subtype})`;
}

/**
 * Records the start of a query in the audit log and on stderr, once the session is known. `runTool` records the end. A query
 * that never ends has only this entry.
 */
export function recordBegin(
  tool: string,
  begun: { readonly sessionId: string } & JsonObject,
  { principal }: ToolCall,
  { audit, log }: ToolDeps,
): void {
  const entry = { principal, tool, ...begun, outcome: "begun" };
  audit?.(entry);
  log.info("query begun", entry);
}
