import { z } from "zod";
import { AccountWindows } from "../domain/plan.ts";

/** Output of `store-process.ts`. */
export const StoreReport = z.discriminatedUnion("kind", [
  /** `damage` is the result of `PRAGMA quick_check`; absent if whole, or if `isChecked` is false. */
  z.object({
    kind: z.literal("opened"),
    schema: z.number(),
    sqlite: z.string(),
    sessions: z.number(),
    damage: z.string().optional(),
    isChecked: z.boolean(),
    /** `unreadable`: sessions whose row cannot be read. `lossy`: sessions with unreadable events. A few of each. */
    unreadable: z.array(z.object({ id: z.string(), why: z.string(), isNewer: z.boolean() })),
    lossy: z.array(z.string()),
    /** Windows of accounts, those reported last first. */
    accounts: z.array(AccountWindows.extend({ id: z.string() })),
    /** Spending of budgets today, USD. */
    budgets: z.array(z.object({ scope: z.enum(["principal", "profile"]), name: z.string(), spentUsd: z.number() })),
  }),
  z.object({ kind: z.literal("fault"), fault: z.string(), message: z.string() }),
  z.object({ kind: z.literal("unknown"), reason: z.string() }),
]);
export type StoreReport = z.infer<typeof StoreReport>;
