import { z } from "zod";

/**
 * Whom a request can be put to, beside the rules: the person at a client that can show a form (elicitation), the console,
 * a webhook's receiver, and the calling model. The operator puts some of them in an order: the ladder.
 */
export const RUNGS = ["user", "console", "webhook", "caller"] as const;
export const Rung = z.enum(RUNGS);
export type Rung = z.infer<typeof Rung>;

/**
 * Why a request went on to the next rung: its time was over, nobody is there, whoever was asked would not say, or a program
 * has declined the form before a person could have read it.
 */
export const Passed = z.enum(["time", "unreachable", "dismissed", "unattended"]);
export type Passed = z.infer<typeof Passed>;
