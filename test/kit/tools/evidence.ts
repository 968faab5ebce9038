import type { FileChange, Receipt } from "../../../src/domain/receipt.ts";
import type { Verification } from "../../../src/domain/verification.ts";
import { NOTHING_CHANGED } from "../receipts.ts";

export const CHANGED: FileChange = { path: "src/a.ts", change: "changed", lines: [4, 1], by: ["tree", "Edit"] };

/** Receipt of a turn in which one file was changed and the tests passed. */
export function receiptOf(turn: number, over: Partial<Receipt> = {}): Receipt {
  return {
    ...NOTHING_CHANGED,
    turn,
    folders: [{ path: "/home/me", kind: "git", headBefore: "a1", headAfter: "b2" }],
    files: [CHANGED],
    commands: [{ eventId: 3, command: "npm test", exit: 0, check: "test", passed: 42 }],
    ...over,
  };
}

/** Verification with a red command at the end. */
export const RED: Verification = {
  status: "failed",
  attempts: 2,
  of: 2,
  commands: [
    { command: "npm run lint", exit: 0, ms: 20, tail: "all is well" },
    { command: "npm test", exit: 1, ms: 30, tail: "1 failed" },
  ],
};
