import type { Decided } from "../../../src/console/wire.ts";
import { hrefOf } from "../state/route.ts";
import { useNow } from "./clock.ts";
import { isMine } from "./draft.ts";
import { Plain } from "./plain.tsx";
import { decidedWords } from "./words/deciders.ts";
import { keyOf } from "./words/shown.ts";
import { agoWords, clockWords } from "./words/times.ts";

/** What was decided last, by whom. */
export function DecidedList({ decided }: { readonly decided: readonly Decided[] }) {
  if (decided.length === 0) return <p class="rq-soft">Nothing has been decided yet.</p>;
  return (
    <ol class="rq-decided">
      {decided.map((each) => (
        <Row key={keyOf(each)} decided={each} />
      ))}
    </ol>
  );
}

function Row({ decided }: { readonly decided: Decided }) {
  const { at, behavior, eventId, message, remembered = [], sessionId, title, toolName } = decided;
  const now = useNow();
  const where = eventId === undefined ? "" : `?event=${String(eventId)}`;
  return (
    <li>
      <span class={`rq-sign rq-sign-${behavior}`} aria-hidden="true">
        {behavior === "allow" ? "✓" : "✕"}
      </span>
      <div class="rq-decided-what">
        <p>
          <code>
            <Plain text={toolName} />
          </code>{" "}
          <Plain text={decidedWords(decided, isMine(decided))} />
          {remembered.length > 0 && (
            <>
              , and until the session ends also{" "}
              <code>
                <Plain text={remembered.join(", ")} />
              </code>
            </>
          )}
        </p>
        {message !== undefined && message !== "" && (
          <p class="rq-quote">
            <Plain text={message} />
          </p>
        )}
        <p class="rq-soft">
          <a href={`${hrefOf({ view: "session", id: sessionId })}${where}`}>
            <Plain text={title === "" ? "Session without a name" : title} />
          </a>
        </p>
      </div>
      <time class="rq-soft" dateTime={new Date(at).toISOString()} title={clockWords(at, now)}>
        {agoWords(now - at)}
      </time>
    </li>
  );
}
