import type { SessionEvent } from "../../../src/domain/event.ts";
import type { Receipt } from "../../../src/domain/receipt.ts";
import type { Verification } from "../../../src/domain/verification.ts";

/** Receipts and verifications, as the engine stores them. */

export const receiptOf = (changes: Partial<Receipt> = {}): Receipt => ({
  turn: 1,
  by: "tree",
  complete: true,
  folders: [{ path: "/repo", kind: "git", headBefore: "0".repeat(40), headAfter: "0".repeat(40) }],
  files: [],
  commits: [],
  gitFiles: [],
  notSeen: [],
  outside: [],
  commands: [],
  requests: [],
  denied: 0,
  background: 0,
  others: 0,
  between: 0,
  leftOut: 0,
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
