import { z } from "zod";

/** On whose behalf a verb runs: "local" on stdio, the authenticated subject on HTTP. A session belongs to the one that opened it. */
export const Principal = z.string().min(1).max(256);
export type Principal = z.infer<typeof Principal>;

export const LOCAL_PRINCIPAL: Principal = "local";
