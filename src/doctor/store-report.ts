import { z } from "zod";

/** What `store-process.ts` prints. */
export const StoreReport = z.discriminatedUnion("kind", [
  /** Opened, with the result of `PRAGMA quick_check`; undefined where it was not run. */
  z.object({
    kind: z.literal("opened"),
    schema: z.number(),
    sqlite: z.string(),
    sessions: z.number(),
    damage: z.string().optional(),
    isChecked: z.boolean(),
  }),
  z.object({ kind: z.literal("fault"), fault: z.string(), message: z.string() }),
  z.object({ kind: z.literal("unknown"), reason: z.string() }),
]);
export type StoreReport = z.infer<typeof StoreReport>;
