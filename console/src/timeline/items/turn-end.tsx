import { count, duration, shortTime, usd } from "../../parts/format.ts";
import { displayText, truncateLine } from "../../parts/text.ts";
import { windowWords } from "../../parts/wait-words.ts";
import { Disclosure } from "../disclosure.tsx";
import { RED } from "../evidence/verification-words.ts";
import type { PlanLimit } from "../../../../src/domain/plan.ts";
import type { TurnItem } from "../reducer/item.ts";
import { Json } from "../output.tsx";
import { classNames } from "../../parts/class-names.ts";
import styles from "../timeline.module.css";
import markdown from "../../parts/markdown.module.css";

export const END_WORDS = {
  done: "Turn done",
  failed: "Turn failed",
  interrupted: "Turn interrupted",
  lost: "Turn lost",
  cancelled: "Turn cancelled",
} as const;

const TONES = { done: "good", failed: "bad", lost: "bad", cancelled: "warn" } as const;

/** Maximum characters of a cause in the summary. */
const SHORT_CAUSE = 300;

/** End of a turn: outcome, duration, cost, calls and warnings. */
export function TurnEnd({ item }: { readonly item: TurnItem }) {
  const { at, ended, result } = item;
  const { costUsd, durationMs, errorSubtype, message, numTurns, outcome, warnings = [] } = ended;
  // Shows only the author of an interrupt, because an interrupt is not a failure.
  const by = /^The turn was interrupted (by .{1,200}?)\.?$/.exec(message ?? "")?.[1];
  const why = errorSubtype === undefined || errorSubtype === outcome ? "" : ` (${errorSubtype.replaceAll("_", " ")})`;
  const how = END_WORDS[outcome] + (by === undefined ? why : ` ${displayText(by)}`);
  const cause = causeOf(item);
  const line = cause === undefined ? how : truncateLine(cause, SHORT_CAUSE);
  const summary = (
    <span class={styles["words"]}>
      <b class={outcome === "interrupted" ? undefined : styles[TONES[outcome]]}>{line}</b>{" "}
      <span class="soft">
        {cause !== undefined && `${END_WORDS[outcome]} · `}
        {duration(durationMs)} · {usd(costUsd)} · {count(numTurns, "model call")}
      </span>
    </span>
  );
  return (
    <>
      <Disclosure summary={summary}>
        {() => (
          <>
            {cause !== undefined && line !== cause && <p class={markdown["as-written"]}>{displayText(cause)}</p>}
            <Json value={ended} label="The end of the turn, as JSON" />
            {result && <Json value={result} label="Claude Code's result, as JSON" />}
          </>
        )}
      </Disclosure>
      {ended.limit && <p class="soft">{limitWords(ended.limit, at)}</p>}
      {message !== undefined && message !== cause && by === undefined && (
        <p class={classNames(markdown, "as-written", "problem")}>{displayText(message)}</p>
      )}
      {warnings.map((warning) => (
        <p key={warning} class={classNames(markdown, "as-written")}>
          {displayText(warning)}
        </p>
      ))}
    </>
  );
}

/** Reset of the limit at which the turn ended, and the way on. */
function limitWords({ resetsAt, window }: PlanLimit, at: number): string {
  const reset = `The ${windowWords(window)} resets ${resetsAt === undefined ? "later" : shortTime(resetsAt, at)}`;
  return `${reset}. From then on, Continue sends the refused request again.`;
}

/** Reason to show in place of the outcome: a limit, an error of the API, or a red verification. */
function causeOf({ cause, ended: { errorSubtype, limit, message = "The verification failed." } }: TurnItem) {
  // Claude Code's own words name the reset in the time zone of the server.
  if (limit) return `The ${windowWords(limit.window)} is used up`;
  return cause ?? (errorSubtype === RED ? message : undefined);
}
