import type { SessionDetail } from "../../../src/console/wire.ts";
import { count, moment } from "../parts/format.ts";
import { displayText } from "../parts/text.ts";
import { may } from "../state/me.ts";
import { act, useAttempt } from "./act.ts";
import styles from "./session.module.css";

/** Answers remembered until the session ends, with buttons to revoke. */
export function Remembered({ detail: { id, remembered } }: { readonly detail: SessionDetail }) {
  const attempt = useAttempt();
  if (remembered.length === 0) return null;
  const revoke = (body: { readonly rule?: string }) => void attempt.run(() => act(id, "revoke", body));
  return (
    <section class={styles["remembered"]} aria-label="Remembered answers">
      <p class="soft">
        {count(remembered.length, "answer is remembered", "answers are remembered")} until the session ends:
      </p>
      <ul>
        {remembered.map(({ at, by, level, rule }) => (
          <li key={`${rule} ${level} ${by}`}>
            <span>
              <code>{displayText(rule)}</code>{" "}
              <span class="soft">
                up to “{level}”, by {displayText(by)}, {moment(at)}
              </span>
            </span>
            {may("approve") && (
              <button
                type="button"
                class="small"
                disabled={attempt.isBusy}
                onClick={() => revoke({ rule })}
                aria-label={`Revoke ${displayText(rule)}`}
              >
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      {may("approve") && remembered.length > 1 && (
        <button type="button" class="small" disabled={attempt.isBusy} onClick={() => revoke({})}>
          Revoke all
        </button>
      )}
      {attempt.problem !== undefined && (
        <p role="alert" class="problem">
          {attempt.problem}
        </p>
      )}
    </section>
  );
}
