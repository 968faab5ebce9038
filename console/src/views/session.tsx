import "../style/session.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { PendingRequest, SessionDetail } from "../../../src/console/wire.ts";
import { sessionName } from "../parts/session-name.tsx";
import { RequestCard } from "../requests/card.tsx";
import { useDecided } from "../requests/lately.ts";
import { useLingering } from "../requests/lingering.ts";
import { keyOf } from "../requests/words/shown.ts";
import { HeldPrompts } from "../session/queue.tsx";
import { Reply } from "../session/reply.tsx";
import { SessionHeader } from "../session/header.tsx";
import { requests } from "../state/live.ts";
import { useTitle } from "../state/title.ts";
import { hrefOf } from "../state/route.ts";
import { Feed } from "../timeline/feed.ts";
import { Timeline } from "../timeline/timeline.tsx";

/** One session as a timeline. */
export function SessionView({ id }: { readonly id: string }) {
  const feed = useMemo(() => new Feed(id), [id]);
  const eventId = useEventOfAddress();
  useEffect(() => {
    void feed.open(eventOfAddress());
    return () => feed.close();
  }, [feed]);
  const detail = feed.detail.value;
  const problem = feed.problem.value;
  useTitle(detail && sessionName(detail.title));
  if (feed.isGone.value || problem?.isMissing === true) return <Gone />;
  return (
    <div class="session-view">
      {detail ? <SessionHeader detail={detail} /> : <Waiting />}
      {problem && (
        <p role="alert" class="problem">
          {problem.words}{" "}
          <button type="button" class="small" onClick={() => void feed.open(eventId)}>
            Try again
          </button>
        </p>
      )}
      <Timeline feed={feed} eventId={eventId} foot={detail && <Foot detail={detail} />}>
        <Pending feed={feed} />
      </Timeline>
    </div>
  );
}

function Foot({ detail }: { readonly detail: SessionDetail }) {
  return (
    <>
      <HeldPrompts detail={detail} />
      <Reply detail={detail} />
    </>
  );
}

function Waiting() {
  return (
    <header class="session-head">
      <h1 class="title">Session</h1>
      <p role="status">Loading…</p>
    </header>
  );
}

function Gone() {
  return (
    <div class="session-view">
      <h1>Session not found</h1>
      <p>It was deleted, or it belongs to another user.</p>
      <p>
        <a href={hrefOf({ view: "sessions" })}>All sessions</a>
      </p>
    </div>
  );
}

/** What Claude Code asks in this session, to be answered here. */
function Pending({ feed }: { readonly feed: Feed }) {
  const { sessionId } = feed;
  const all = requests.value;
  const open = useMemo(() => all.filter((request) => request.sessionId === sessionId), [all, sessionId]);
  // As long as nothing has been asked there is nothing to learn of what was decided.
  const isOpen = open.length > 0;
  const [hasAsked, setAsked] = useState(false);
  useEffect(() => {
    if (isOpen) setAsked(true);
  }, [isOpen]);
  return isOpen || hasAsked ? <Asked open={open} feed={feed} /> : null;
}

interface AskedProps {
  readonly open: readonly PendingRequest[];
  readonly feed: Feed;
}

/** And for a moment what was open, with what became of it: until the turn is over, which is said above. */
function Asked({ feed, open }: AskedProps) {
  const { decided } = useDecided(open.map(keyOf).join("\n"));
  const shown = useLingering(open, decided).toSorted((one, other) => one.request.createdAt - other.request.createdAt);
  const lastEnd = feed.items.value.findLast(({ kind }) => kind === "turn")?.eventId ?? 0;
  return shown.map(({ goneAt, request }) => (
    <RequestCard
      key={keyOf(request)}
      request={request}
      heading="h3"
      isHidden={goneAt !== undefined && request.eventId < lastEnd}
    />
  ));
}

/** #/sessions/ID?event=N */
function useEventOfAddress(): number | undefined {
  const [eventId, setEventId] = useState(eventOfAddress);
  useEffect(() => {
    const read = () => setEventId(eventOfAddress());
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return eventId;
}

function eventOfAddress(): number | undefined {
  const id = Number(/[?&]event=(\d{1,15})\b/.exec(location.hash)?.[1]);
  return id > 0 ? id : undefined;
}
