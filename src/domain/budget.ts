import { z } from "zod";
import { roundUsd } from "./usage.ts";

/** Budgets in money: the most that the turns of a principal, or of a profile, may spend on a day of the server's local time. */

/** Values of a budget, in words that follow "must be". */
export const USD_PER_DAY = "an amount of USD per day above 0 and up to 1000000, such as 12.5";

const unlikeUsd = `must be ${USD_PER_DAY}`;
export const UsdPerDay = z.number(unlikeUsd).gt(0, unlikeUsd).max(1_000_000, unlikeUsd);

/** Budget of a session. `scope` and `name` say whose. */
export interface Budget {
  readonly scope: "principal" | "profile";
  readonly name: string;
  readonly usdPerDay: number;
}

/** Reservation of a running turn, USD, in the entry `key` of the ledger. */
export const Reservation = z.object({ key: z.string(), usd: z.number() });
export type Reservation = z.infer<typeof Reservation>;

/** Spending of a budget on one day, as stored for all servers. All amounts are estimates of Claude Code, USD. */
export const BudgetDay = z.object({
  spentUsd: z.number(),
  /** Part of `spentUsd` of models whose prices Claude Code does not know. */
  unknownUsd: z.number(),
  /** Reserved amounts of running turns, by turn id. */
  reserved: z.record(z.string(), z.number()),
  /** True once somebody was told that 80 % are spent. */
  isNoticed: z.boolean().exactOptional(),
});
export type BudgetDay = z.infer<typeof BudgetDay>;

export const EMPTY_DAY: BudgetDay = { spentUsd: 0, unknownUsd: 0, reserved: {} };

/** Returns the amount that is neither spent nor reserved, USD. */
export function leftUsd({ reserved, spentUsd }: BudgetDay, usdPerDay: number): number {
  return roundUsd(usdPerDay - spentUsd - Object.values(reserved).reduce((sum, usd) => sum + usd, 0));
}
