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
    /** Sessions whose row cannot be read, and those of which events cannot be read; a few of each. */
    unreadable: z.array(z.object({ id: z.string(), why: z.string(), isNewer: z.boolean() })),
    lossy: z.array(z.string()),
  }),
  z.object({ kind: z.literal("fault"), fault: z.string(), message: z.string() }),
  z.object({ kind: z.literal("unknown"), reason: z.string() }),
]);
export type StoreReport = z.infer<typeof StoreReport>;
