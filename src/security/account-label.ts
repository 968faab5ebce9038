import { createHash } from "node:crypto";

/**
 * Returns a short stable label for an account of the ledger. Reveals neither its login nor its configuration folder, so that it may
 * leave the machine.
 */
export function accountLabel(accountId: string): string {
  return createHash("sha256").update(accountId).digest("hex").slice(0, 12);
}
