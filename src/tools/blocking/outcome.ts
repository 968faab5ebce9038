import type { JsonObject } from "../../domain/json.ts";
import { OUTCOME_WORDS } from "../../domain/turn.ts";
import { cutText } from "../../view/size.ts";
import { answerNow } from "../check/answer.ts";
import { readRequest } from "../check/request.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import type { SessionView, EndOfTurn } from "../session-view.ts";

/** What a blocking call says and records beside its messages: open requests, a failure, its start. */

const HOW =
  "Answer each of actions[] with claude_code_check (until: end, cursor: nextCursor); it then waits for the rest.";

/** What is asked, as claude_code_check tells it, for a call that returns before its turn has ended. */
export async function tellRequests(
  view: SessionView,
  { cursor, maxBytes }: { cursor: number; maxBytes: number },
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const without = { includeEvents: false, includeResult: false };
  const request = readRequest({ waitMs: 0, maxBytes, pollOptions: without }, deps.limits);
  const check = await answerNow({ ...request, targets: [{ view, cursor }], several: false }, call, deps);
  const { actions, status, truncated, truncatedFields } = check;
  const cut = truncated === undefined ? {} : { truncated, truncatedFields };
  // As they are told here they count as shown: nothing may be cut of them afterwards.
  return { status, actions, nextCursor: cursor, next: HOW, ...cut };
}

/** Of what the API or Claude Code says of a failure, bytes of JSON. */
const SAID_BYTES = 2_048;

/**
 * Why a turn did not end well: the kind of failure, and what the API or Claude Code said of it, in words; and what a
 * program can decide by. `told` is the result as it is presented.
 */
export function failureOf(end: EndOfTurn, answer: JsonObject): { readonly error: string } & JsonObject {
  const { category } = end.data;
  const { advice, retryable } = answer;
  const { kind, said } = causeOf(end, answer);
  const error = said === "" ? kind : `${kind}: ${said}`;
  return category === undefined ? { error } : { error, category, retryable, advice };
}

/** Says the same as a sentence. */
export function failureWords(end: EndOfTurn, answer: JsonObject): string {
  const { outcome } = end.data;
  const { kind, said } = causeOf(end, answer);
  const why = [kind === outcome ? "" : kind, said].filter((part) => part !== "");
  return ["The turn " + OUTCOME_WORDS[outcome], ...why].join(": ");
}

function causeOf({ data }: EndOfTurn, { result }: JsonObject): { readonly kind: string; readonly said: string } {
  const { category, errorSubtype, message, outcome } = data;
  const kind = category === undefined ? (errorSubtype ?? outcome) : kindOf(category, errorSubtype);
  const said = message ?? (category !== undefined && typeof result === "string" ? result : "");
  return { kind, said: cutText(said, SAID_BYTES) };
}

function kindOf(category: string, subtype: string | undefined): string {
  return subtype === undefined || subtype === category ? category : `${category} (${subtype})`;
}

/**
 * A query is written down twice, for the audit log and on stderr: here when its session is known, and by `runTool` when
 * it is over, with what came of it. One that never ends by itself has left its first line.
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
