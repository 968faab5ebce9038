import type { Refusal } from "../domain/error.ts";
import { isLoss } from "./ports.ts";

/** What callers are told while the log of a session cannot be written. */

export function cannotBeWritten(error: unknown): Refusal {
  const reason = messageOf(error).replace(/[.\s]*$/, ".");
  const lost = isLoss(error) ? "" : "; everything reported before is stored";
  const message = `The session's log cannot be written: ${reason} Its turn was stopped${lost}.`;
  return { code: "INTERNAL", message };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
