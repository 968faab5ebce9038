import { z } from "zod";
import { RISK_LEVELS } from "./risk.ts";

/** Answers that hold until the session ends. They are part of its state, so they are few and short. */

/** Characters of a rule. */
export const REMEMBERED_LONGEST = 200;
/** Of the newest, so many, and so many characters of all of them. */
const [MOST, CHARACTERS] = [50, 4_000];

const level = z.enum(RISK_LEVELS);

/** What an answer is to be remembered by: the rules, and how much the request would have let happen. */
export const Remember = z.object({ rules: z.array(z.string()), level, eventId: z.number().int() });
export type Remember = z.infer<typeof Remember>;

/** It holds for requests of no greater risk than the one that was answered, which is event `eventId`. */
export const Remembered = z.object({
  rule: z.string(),
  level,
  at: z.number(),
  eventId: z.number().int(),
  by: z.string(),
});
export type Remembered = z.infer<typeof Remembered>;

/** The newest first; one that is remembered again is moved, not doubled. */
export function withNewest(old: readonly Remembered[], added: readonly Remembered[]): Remembered[] {
  const kept: Remembered[] = [];
  let characters = 0;
  for (const each of [...added, ...old]) {
    characters += each.rule.length;
    if (kept.length === MOST || characters > CHARACTERS) break;
    if (!kept.some(({ by, level: of, rule }) => rule === each.rule && of === each.level && by === each.by))
      kept.push(each);
  }
  return kept;
}
