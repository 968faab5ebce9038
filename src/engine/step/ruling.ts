import type { Ask, Decision } from "../../domain/permission.ts";
import { judge } from "../rules/judge.ts";
import type { Draft } from "./draft.ts";

export interface Ruling {
  readonly decision: Decision;
  readonly rule: string;
}

/** What a rule says of a request that nobody then need be asked; undefined where somebody is to be. */
export function ruleFor({ policy }: Draft, ask: Ask): Ruling | undefined {
  const verdict = judge(ask, policy.rules, policy.cwd);
  if (!verdict || verdict.behavior === "ask") return undefined;
  const { behavior, rule } = verdict;
  if (behavior === "allow") return { decision: { behavior }, rule };
  const message = `A rule of the operator of this server denies it: ${rule}. Nobody can allow it here; do without.`;
  return { decision: { behavior, message }, rule };
}
