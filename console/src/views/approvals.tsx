import { useEffect } from "preact/hooks";
import { Problem } from "../parts/problem.tsx";
import { SessionName } from "../parts/session-name.tsx";
import { RequestCard } from "../requests/card.tsx";
import { DecidedList } from "../requests/decided.tsx";
import { useRecentDecisions, useShownRequests } from "../requests/recent.ts";
import { focusCard } from "../requests/card-focus.ts";
import { EscapedText } from "../requests/escaped-text.tsx";
import { whyReadOnly } from "../requests/words/deciders.ts";
import { type Group, groupBySession, requestKey } from "../requests/words/shown-requests.ts";
import { bindKeys } from "../state/keys.ts";
import { connection, requests } from "../state/live.ts";
import { me } from "../state/me.ts";
import { hrefOf } from "../state/route.ts";
import { notices, switchOff, switchOn } from "../requests/notify.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "../requests/requests.module.css";
import view from "./view.module.css";

/** Open requests of all sessions, and the latest decisions. */
export function ApprovalsView() {
  const open = requests.value;
  const { decided, problem } = useRecentDecisions(open.map(requestKey).join("\n"));
  const shown = useShownRequests(open, decided);
  useEffect(() => bindKeys({ j: () => focusCard(1), k: () => focusCard(-1) }), []);
  const isKnown = connection.value === "live" && (decided !== undefined || problem !== undefined);
  return (
    <div class={classNames(view, "view", styles["page"])}>
      <header class={view["head"]}>
        <h1>Approvals</h1>
        <p class="soft" role="status">
          {open.length > 0 ? countWords(open.length) : ""}
        </p>
        <NotifyButton />
      </header>
      {shown.length === 0 && (isKnown ? <NoRequests /> : open.length === 0 && <p class="soft">Loading…</p>)}
      {groupBySession(shown).map((group) => (
        <SessionGroup key={group.sessionId} group={group} />
      ))}
      <section aria-labelledby="recent-decisions">
        <h2 id="recent-decisions">Recent decisions</h2>
        <Problem of={problem} what="Recent decisions could not be loaded" />
        {decided ? <DecidedList decided={decided} /> : problem === undefined && <p class="soft">Loading…</p>}
      </section>
    </div>
  );
}

function countWords(count: number): string {
  return count === 1 ? "1 request" : `${String(count)} requests, oldest first`;
}

function SessionGroup({ group: { cwd, sessionId, shown, title } }: { readonly group: Group }) {
  const id = `session-${sessionId}`;
  return (
    <section aria-labelledby={id}>
      <header class={styles["group-head"]}>
        <h2 id={id}>
          <a href={hrefOf({ view: "session", id: sessionId })}>
            <SessionName title={title} />
          </a>
        </h2>
        <p class={styles["folder"]}>
          <EscapedText text={cwd} />
        </p>
      </header>
      {shown.map(({ request }) => (
        <RequestCard key={requestKey(request)} request={request} heading="h3" />
      ))}
    </section>
  );
}

function NoRequests() {
  const only = me.value && whyReadOnly(me.value);
  return (
    <div class={styles["nothing"]}>
      <p>
        <b>No open requests.</b>
      </p>
      <p>Permission requests, questions and plans of Claude Code appear here as they arrive.</p>
      {only !== undefined && <p>{only}</p>}
    </div>
  );
}

/** Switch for browser notifications. */
function NotifyButton() {
  switch (notices.value) {
    case "unknown":
      return undefined;
    case "blocked":
      return <p class="soft">Notifications for this page are blocked in the browser's settings.</p>;
    case "on":
      return (
        <button type="button" aria-pressed={true} onClick={switchOff}>
          Notifications are on
        </button>
      );
    case "off":
      return (
        <button type="button" aria-pressed={false} onClick={() => void switchOn()}>
          Notify me
        </button>
      );
  }
}
