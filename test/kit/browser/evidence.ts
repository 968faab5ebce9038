import type { SessionEvent } from "../../../src/domain/event.ts";
import type { Receipt } from "../../../src/domain/receipt.ts";
import type { Verification } from "../../../src/domain/verification.ts";
import { NOTHING_CHANGED } from "../receipts.ts";

/** Receipts and verifications, as the engine stores them. */

export const receiptOf = (changes: Partial<Receipt> = {}): Receipt => ({
  ...NOTHING_CHANGED,
  folders: [{ path: "/repo", kind: "git", headBefore: "0".repeat(40), headAfter: "0".repeat(40) }],
  ...changes,
});

export const receiptEvent = (changes: Partial<Receipt> = {}) =>
  ({
    type: "turn.receipt",
    data: { turnId: "t", receipt: receiptOf(changes), after: { folders: [] } },
  }) satisfies SessionEvent;

export const verifying = (attempt: number, of: number, ...commands: string[]) =>
  ({ type: "verification.started", data: { turnId: "t", attempt, of, commands } }) satisfies SessionEvent;

export const verified = (verification: Verification) =>
  ({ type: "verification.ended", data: { turnId: "t", verification } }) satisfies SessionEvent;
