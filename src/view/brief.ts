import type { JsonObject } from "../domain/json.ts";
import { firstCharacters, fit, jsonBytes } from "./size.ts";
import { subjectKey } from "./summary.ts";

/** Shortens a tool call to its subject and its outcome, for a caller following the work. */

/** Maximum bytes of JSON of a shortened input (`MAX_INPUT`), and of a value beside the subject (`MAX_BESIDE`). */
const MAX_INPUT = 300;
const MAX_BESIDE = 60;
/** Maximum characters from the beginning and from the end of an output. The end of a test run has the totals. */
const SHOWN = {
  good: { beginning: 20, end: 50 },
  failed: { beginning: 60, end: 100 },
  // Longer, because the reason comes after the name of the tool.
  denied: { beginning: 120, end: 100 },
};

export interface Brief<T> {
  readonly value: T;
  readonly cut: boolean;
}

/** Keeps the subject of the call and small values. Without a subject known for `tool`, cuts all values. */
export function briefInput(tool: string, input: JsonObject): Brief<JsonObject> {
  const subject = subjectKey(tool);
  if (subject === undefined || input[subject] === undefined) return fit(input, MAX_INPUT);
  // The command makes its `description` superfluous; `false` values are omitted.
  const said = Object.entries(input).filter(
    ([key, value]) => key === subject || (key !== "description" && value !== false),
  );
  const kept = said.filter(([key, value]) => key === subject || jsonBytes(value) <= MAX_BESIDE);
  const { value, cut } = fit(Object.fromEntries(kept), MAX_INPUT);
  return { value, cut: cut || kept.length < said.length };
}

export function briefOutput(text: string, outcome: keyof typeof SHOWN): Brief<string> {
  const most = SHOWN[outcome];
  if (text.length <= most.beginning + most.end) return { value: text, cut: false };
  const characters = Array.from(text.slice(-most.end * 2));
  const end = characters
    .slice(-most.end)
    .join("")
    .replace(/^\p{Cs}/u, "");
  return { value: `${firstCharacters(text, most.beginning)} … ${end}`, cut: true };
}
