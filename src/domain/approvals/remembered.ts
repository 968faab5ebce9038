import { z } from "zod";
import { VERIFICATION_TOOL } from "../verification.ts";
import { PermissionUpdate, type PermissionRequest } from "../permission.ts";
import { RISK_LEVELS } from "./risk.ts";
import { parseRule } from "./rule.ts";

/** Answers that hold until the session ends. Few and short, because they are part of the session's state. */

/** Maximum characters of a rule. */
const MAX_LENGTH = 200;
/** Maximum number of remembered rules, and their maximum characters in total. */
const [MAX_RULES, CHARACTERS] = [50, 4_000];

const level = z.enum(RISK_LEVELS);

/** Rules to remember an answer by, and the risk of the answered request. */
export const Remember = z.object({ rules: z.array(z.string()), level, eventId: z.number().int() });
export type Remember = z.infer<typeof Remember>;

/** Rule that allows requests up to the risk of the answered request, which is event `eventId`. */
export const Remembered = z.object({
  rule: z.string(),
  level,
  at: z.number(),
  eventId: z.number().int(),
  by: z.string(),
});
export type Remembered = z.infer<typeof Remembered>;

/** Puts `added` first. Drops duplicates, and the oldest rules beyond `MAX_RULES` or the maximum of characters. */
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
 * Returns the rules by which an answer to the request is remembered: the allow rules that Claude Code suggests, or else the
 * tool. For a command, only the exact command, unless its program is harmless with any arguments. Ignores all other suggestions
 * (further folders, a mode in which edits and deletions need no approval), because they exceed the approval of one tool. `[]`
 * if the answer cannot be remembered: for a verification, whose commands are allowed once, for one turn.
 */
export function rulesToRemember({ input, suggestions = [], toolName }: PermissionRequest): string[] {
  if (toolName === VERIFICATION_TOOL) return [];
  const suggested = suggestions.flatMap((suggestion) => {
    const update = PermissionUpdate.safeParse(suggestion).data;
    return update?.type === "addRules" && update.behavior === "allow" ? update.rules : [];
  });
  const { command } = input;
  const isEnough =
    suggested.length > 0 && (typeof command !== "string" || suggested.every((rule) => isHarmless(toolName, rule)));
  // A `*` in a rule matches any text, beyond the approved command.
  const isPattern = typeof command === "string" && command.includes("*");
  const own = isPattern ? [] : [ruleText(toolName, typeof command === "string" ? command : undefined)];
  const rules = isEnough ? suggested.map(({ ruleContent, toolName: name }) => ruleText(name, ruleContent)) : own;
  return [...new Set(rules)].filter((text) => text.length <= MAX_LENGTH && parseRule(text, "allow").ok);
}

/**
 * Programs that run nothing, write nothing and show the contents of no file, whatever their arguments: they print names (ls,
 * realpath, basename, dirname, which), sizes (df, stat), the machine and its user (id, uname, whoami, uptime), or their input
 * (echo, pwd). Add no others: `npm test` accepts a shell to run its script with, `git log` a file to write to, `tar cf` a
 * command, `du` a file of names, which its errors show.
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

function ruleText(toolName: string, content: string | undefined): string {
  return content === undefined ? toolName : `${toolName}(${content})`;
}
