import type { JsonObject } from "../domain/json.ts";
import { firstCharacters, fit, jsonBytes } from "./size.ts";
import { subjectKey } from "./summary.ts";

/** A tool call in brief, for a caller that follows the work: its subject and its outcome. */

/** Bytes of an input as JSON; and of a value that is kept beside what the call is about. */
const MAX_INPUT = 300;
const MAX_BESIDE = 60;
/** Characters of an output: how it begins, and how it ends, which is where the sum of a test run stands. */
const SHOWN = {
  good: { beginning: 20, end: 50 },
  failed: { beginning: 60, end: 100 },
  // The reason follows the name of the tool.
  denied: { beginning: 120, end: 100 },
};

export interface Brief<T> {
  readonly value: T;
  readonly cut: boolean;
}

/** The field that says what the call is about, and small ones beside it; of a tool not known here all, cut. */
export function briefInput(tool: string, input: JsonObject): Brief<JsonObject> {
  const subject = subjectKey(tool);
  if (subject === undefined || input[subject] === undefined) return fit(input, MAX_INPUT);
  // The command makes its description superfluous; false values are omitted.
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
