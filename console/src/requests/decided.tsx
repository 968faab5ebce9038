import type { Decision } from "../../../src/console/wire.ts";
import { Ago } from "../parts/time.tsx";
import { SessionName } from "../parts/session-name.tsx";
import { hrefOf } from "../state/route.ts";
import { isMine } from "./draft.ts";
import { EscapedText } from "./escaped-text.tsx";
import { isUndecided } from "../state/answer-source.ts";
import { decidedName, decidedWords } from "./words/deciders.ts";
import { requestKey } from "./words/shown-requests.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./requests.module.css";

export function DecidedList({ decided }: { readonly decided: readonly Decision[] }) {
  if (decided.length === 0) return <p class="soft">No decisions yet.</p>;
  return (
    <ol class={styles["decided"]}>
      {decided.map((each) => (
        <Row key={requestKey(each)} decided={each} />
      ))}
    </ol>
  );
}

function Row({ decided }: { readonly decided: Decision }) {
  const { at, behavior, by, eventId, message, remembered = [], sessionId, title } = decided;
  const [sign, mark] = isUndecided(by) ? [undefined, "■"] : [`sign-${behavior}`, behavior === "allow" ? "✓" : "✕"];
  const where = eventId === undefined ? "" : `?event=${String(eventId)}`;
  return (
    <li>
      <span class={classNames(styles, "sign", sign)} aria-hidden="true">
        {mark}
      </span>
      <div>
        <p>
          <code>
            <EscapedText text={decidedName(decided)} />
          </code>{" "}
          <EscapedText text={decidedWords(decided, isMine(decided))} />
          {remembered.length > 0 && (
            <>
              . Until the session ends also allowed:{" "}
              <code>
                <EscapedText text={remembered.join(", ")} />
              </code>
            </>
          )}
        </p>
        {message !== undefined && message !== "" && (
          <p class={styles["quote"]}>
            <EscapedText text={message} />
          </p>
        )}
        <p class="soft">
          <a href={`${hrefOf({ view: "session", id: sessionId })}${where}`}>
            <SessionName title={title} />
          </a>
        </p>
      </div>
      <span class="soft">
        <Ago at={at} />
      </span>
    </li>
  );
}
