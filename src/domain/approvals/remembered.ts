import { z } from "zod";
import { PermissionUpdate, type PermissionRequest } from "../permission.ts";
import { RISK_LEVELS } from "./risk.ts";
import { parseRule } from "./rule.ts";

/** Answers that hold until the session ends. They are part of its state, so they are few and short. */

/** Characters of a rule. */
const MAX_LENGTH = 200;
/** Maximum number of remembered rules, and their maximum characters in total. */
const [MAX_RULES, CHARACTERS] = [50, 4_000];

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
    if (kept.length === MAX_RULES || characters > CHARACTERS) break;
    if (!kept.some(({ by, level: of, rule }) => rule === each.rule && of === each.level && by === each.by))
      kept.push(each);
  }
  return kept;
}

/**
 * The rules by which an answer to the request is remembered: what Claude Code suggests to allow from now on, or else the
 * tool. Of a command exactly this one, unless its program is harmless with any arguments. Rules only: Claude Code also
 * suggests further folders, and a mode in which edits and deletions need no approval, which is more than an approval of one tool
 * means. [] if it cannot be remembered.
 */
export function rulesToRemember({ input, suggestions = [], toolName }: PermissionRequest): string[] {
  const suggested = suggestions.flatMap((suggestion) => {
    const update = PermissionUpdate.safeParse(suggestion).data;
    return update?.type === "addRules" && update.behavior === "allow" ? update.rules : [];
  });
  const { command } = input;
  const isEnough =
    suggested.length > 0 && (typeof command !== "string" || suggested.every((rule) => isHarmless(toolName, rule)));
  // A star in a rule matches any text, which was not approved.
  const isPattern = typeof command === "string" && command.includes("*");
  const own = isPattern ? [] : [textOf(toolName, typeof command === "string" ? command : undefined)];
  const rules = isEnough ? suggested.map(({ ruleContent, toolName: name }) => textOf(name, ruleContent)) : own;
  return [...new Set(rules)].filter((text) => text.length <= MAX_LENGTH && parseRule(text, "allow").ok);
}

/**
 * Whatever their words, these run nothing, write nothing and show the contents of no file: they tell names (ls, realpath, basename,
 * dirname, which), sizes (df, stat), the machine and its user (id, uname, whoami, uptime), or what they were given (echo, pwd).
 * No others: `npm test` takes a shell to run its script with, `git log` a file to write to, `tar cf` a command, `du` a file of
 * names, which its errors show.
 */
const HARMLESS: ReadonlySet<string> = new Set(
  "basename df dirname echo id ls pwd realpath stat uname uptime which whoami".split(" "),
);

function isHarmless(
  asked: string,
  { ruleContent = "", toolName }: { toolName: string; ruleContent?: string },
): boolean {
  if (asked !== "Bash" || toolName !== "Bash") return false;
  const [, program = ""] = /^([a-z]+)(?::\*|(?: [^*]*)?(?: \*)?)$/.exec(ruleContent) ?? [];
  return HARMLESS.has(program);
}

function textOf(toolName: string, content: string | undefined): string {
  return content === undefined ? toolName : `${toolName}(${content})`;
}
