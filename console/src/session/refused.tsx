import type { SessionDetail } from "../../../src/console/wire.ts";
import { shortTime } from "../parts/format.ts";
import { windowWords } from "../parts/wait-words.ts";
import { now } from "../state/clock.ts";
import { may } from "../state/me.ts";
import { act, useAttempt } from "./act.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./session.module.css";

/** Offers to send the request again that the API refused at a limit of the plan. The button waits for the reset. */
export function Refused({ detail: { id, refused } }: { readonly detail: SessionDetail }) {
  const attempt = useAttempt();
  if (!refused) return null;
  const { resetsAt = 0, window } = refused;
  const isEarly = resetsAt > now.value;
  const isOff = isEarly || attempt.isBusy;
  return (
    <div class={classNames(styles, "strip", "asks")}>
      <span>
        The {windowWords(window)} {isEarly ? "is" : "was"} used up: the last request was refused.
        {may("run") && " Continue sends the same request again."}
      </span>
      {may("run") && (
        <button
          type="button"
          class="small"
          aria-disabled={isOff}
          onClick={() => isOff || void attempt.run(() => act(id, "continue", {}))}
        >
          Continue{isEarly && ` from ${shortTime(resetsAt, now.value)}`}
        </button>
      )}
      {attempt.problem !== undefined && (
        <p role="alert" class="problem">
          {attempt.problem}
        </p>
      )}
    </div>
  );
}
