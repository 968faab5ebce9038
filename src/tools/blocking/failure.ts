import type { JsonObject } from "../../domain/json.ts";
import { cutText } from "../../view/size.ts";
import type { EndOfTurn } from "../session-view.ts";

/** Of what the API or Claude Code says of a failure, bytes of JSON. */
const SAID_BYTES = 2_048;

/**
 * Why a turn did not end well: the kind of failure, and what the API or Claude Code said of it, in words; and what a
 * program can decide by. `told` is the result as it is presented.
 */
export function failureOf({ data }: EndOfTurn, told: JsonObject): { readonly error: string } & JsonObject {
  const { category, errorSubtype, message, outcome } = data;
  const kind = category === undefined ? (errorSubtype ?? outcome) : kindOf(category, errorSubtype);
  const { advice, result, retryable } = told;
  const said = message ?? (category !== undefined && typeof result === "string" ? result : "");
  const error = said === "" ? kind : `${kind}: ${cutText(said, SAID_BYTES)}`;
  return category === undefined ? { error } : { error, category, retryable, advice };
}

function kindOf(category: string, subtype: string | undefined): string {
  return subtype === undefined || subtype === category ? category : `${category} (${subtype})`;
}
