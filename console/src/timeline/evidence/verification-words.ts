import { duration } from "../../parts/format.ts";
import { truncateLine } from "../../parts/text.ts";
import type { Item, VerificationItem } from "../reducer/item.ts";

/** Words for a verification. */

/** `errorSubtype` of a turn whose verification is red. */
export const RED = "verification_failed";

type Tone = "good" | "bad" | "warn" | "running" | "quiet";

const STATES: Readonly<Record<VerificationItem["state"], readonly [mark: string, tone: Tone, words: string]>> = {
  running: ["●", "running", "Verifying"],
  passed: ["✓", "good", "Verification passed"],
  failed: ["✕", "bad", "Verification failed"],
  timeout: ["✕", "bad", "Verification timed out"],
  lost: ["✕", "bad", "Verification lost"],
  denied: ["⊘", "warn", "Verification denied"],
  refused: ["⊘", "warn", "Verification refused"],
  interrupted: ["■", "quiet", "Verification interrupted"],
  stopped: ["■", "quiet", "Verification stopped"],
};

export interface Title {
  readonly mark: string;
  readonly tone: Tone;
  /** "Verification failed, attempt 2 of 3" */
  readonly text: string;
  /** The commands, or the red command with its end, and the time of all. */
  readonly more: string;
}

/** The verification on one line. A state of a newer server is shown by its name. */
export function verificationTitle({ attempt, commands, ended, of, state }: VerificationItem): Title {
  const [mark, tone, words] = Object.hasOwn(STATES, state) ? STATES[state] : (["·", "quiet", state] as const);
  const results = ended?.commands ?? [];
  const red = state === "failed" || state === "timeout" ? results.at(-1) : undefined;
  const names = results.length > 0 ? results.map(({ command }) => command) : commands;
  const subject = red ? `${truncateLine(red.command, 100)}: ${endWords(red)}` : truncateLine(names.join(" · "), 160);
  const took = results.reduce((ms, each) => ms + each.ms, 0);
  const name = truncateLine(words, 60);
  // The result of a verification that ran nothing belongs to no attempt.
  const hasAttempt = of > 1 && (!ended || results.length > 0);
  return {
    mark,
    tone,
    text: hasAttempt ? `${name}, ${attemptWords({ attempt, of })}` : name,
    more: [...(subject === "" ? [] : [subject]), ...(results.length === 0 ? [] : [duration(took)])].join(" · "),
  };
}

function attemptWords({ attempt, of }: Pick<VerificationItem, "attempt" | "of">): string {
  return `attempt ${String(attempt)} of ${String(of)}`;
}

type Result = NonNullable<VerificationItem["ended"]>["commands"][number];

export function isRed({ exit }: Pick<Result, "exit">): boolean {
  return exit !== 0;
}

/** End of a command: its exit code or its signal. */
export function endWords({ exit, signal }: Pick<Result, "exit" | "signal">): string {
  if (exit !== null) return `exit ${String(exit)}`;
  return signal === undefined ? "no exit code" : `ended by ${truncateLine(signal, 20)}`;
}

/** State of the verification for the head of the session; "" if there is nothing to say. */
export function verificationNow(items: readonly Item[], isAtWork: boolean): string {
  const last = items.findLast(({ kind }) => kind === "verification" || kind === "turn");
  if (last?.kind === "turn") return !isAtWork && last.ended.errorSubtype === RED ? "Verification failed" : "";
  if (!isAtWork || last?.kind !== "verification" || last.state !== "running") return "";
  return `verifying${last.of > 1 ? `, ${attemptWords(last)}` : ""}`;
}
