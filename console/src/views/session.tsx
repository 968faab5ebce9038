import { useEffect, useMemo, useState } from "preact/hooks";
import type { ActionBodies, PendingRequest, SessionDetail } from "../../../src/console/wire.ts";
import { sessionName } from "../parts/session-name.tsx";
import { RequestCard } from "../requests/card.tsx";
import { getDraft } from "../requests/draft.ts";
import { useRecentDecisions, useShownRequests } from "../requests/recent.ts";
import { requestKey } from "../requests/words/shown-requests.ts";
import { Refused } from "../session/refused.tsx";
import { Reply } from "../session/reply.tsx";
import { SessionHeader } from "../session/header.tsx";
import { requests } from "../state/live.ts";
import { useTitle } from "../state/title.ts";
import { EventWindow } from "../timeline/event-window.ts";
import { Timeline } from "../timeline/timeline.tsx";
import { count } from "../parts/format.ts";
import { may } from "../state/me.ts";
import { act, useAttempt } from "../session/act.ts";
import { isAtWork, isOver } from "../session/status.ts";
import { WaitText } from "../parts/wait.tsx";
import { classNames } from "../parts/class-names.ts";
import { NotFound } from "./not-found.tsx";
import styles from "../session/session.module.css";

export function SessionView({ id }: { readonly id: string }) {
  const eventWindow = useMemo(() => new EventWindow(id), [id]);
  const eventId = useEventOfAddress();
  useEffect(() => {
    void eventWindow.open(eventOfAddress());
    return () => eventWindow.close();
  }, [eventWindow]);
  const detail = eventWindow.detail.value;
  const problem = eventWindow.problem.value;
  useTitle(detail && sessionName(detail.title));
  if (eventWindow.isGone.value || problem?.isMissing === true) {
    return <NotFound what="Session" why="It was deleted, or it belongs to another user." />;
  }
  return (
    <div class={styles["view"]}>
      {detail ? <SessionHeader detail={detail} verification={eventWindow.verification.value} /> : <HeaderSkeleton />}
      {problem && (
        <p role="alert" class="problem">
          {problem.words}{" "}
          <button type="button" class="small" onClick={() => void eventWindow.open(eventId)}>
            Try again
          </button>
        </p>
      )}
      <Timeline eventWindow={eventWindow} eventId={eventId} foot={detail && <Foot detail={detail} />}>
        <Pending eventWindow={eventWindow} />
      </Timeline>
    </div>
  );
}

function Foot({ detail }: { readonly detail: SessionDetail }) {
  return (
    <>
      <Refused detail={detail} />
      <HeldPrompts detail={detail} />
      <Reply detail={detail} />
    </>
  );
}

function HeaderSkeleton() {
  return (
    <header class={styles["head"]}>
      <h1 class={styles["title"]}>Session</h1>
      <p role="status">Loading…</p>
    </header>
  );
}

/** Requests of this session, with forms to answer. */
function Pending({ eventWindow }: { readonly eventWindow: EventWindow }) {
  const { sessionId } = eventWindow;
  const all = requests.value;
  const open = useMemo(() => all.filter((request) => request.sessionId === sessionId), [all, sessionId]);
  // Loads decisions only after a request was open: before, there is nothing to show.
  const isOpen = open.length > 0;
  const [hasAsked, setAsked] = useState(false);
  useEffect(() => {
    if (isOpen) setAsked(true);
  }, [isOpen]);
  return isOpen || hasAsked ? <OpenRequests open={open} eventWindow={eventWindow} /> : null;
}

interface OpenRequestsProps {
  readonly open: readonly PendingRequest[];
  readonly eventWindow: EventWindow;
}

/**
 * Open requests and, until the turn ends, closed requests with their outcome; then `TurnEnd` in the timeline shows the result.
 */
function OpenRequests({ eventWindow, open }: OpenRequestsProps) {
  const { decided } = useRecentDecisions(open.map(requestKey).join("\n"));
  const shown = useShownRequests(open, decided);
  const lastEnd = eventWindow.items.value.findLast(({ kind }) => kind === "turn")?.eventId ?? 0;
  return shown.map(({ goneAt, request }) => (
    <RequestCard
      key={requestKey(request)}
      request={request}
      heading="h3"
      isHidden={(goneAt !== undefined || getDraft(request).outcome.value !== "") && request.eventId < lastEnd}
    />
  ));
}

/** Id of the event in the address: #/sessions/ID?event=N */
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

const WHY_HELD: Readonly<Record<NonNullable<SessionDetail["lastOutcome"]>, string>> = {
  done: "",
  cancelled: "",
  failed: ": the previous turn failed",
  interrupted: " since the turn was interrupted",
  lost: ": the previous turn was lost",
};

/** Queued prompts. After an interrupt, a failure or a loss, prompts are held until the user releases or drops them. */
function HeldPrompts({ detail: session }: { readonly detail: SessionDetail }) {
  const attempt = useAttempt();
  const { held, id, lastOutcome, queued, waiting } = session;
  if (isOver(session)) return null;
  if (waiting && !isAtWork(session) && held === 0) return <Stopped waiting={waiting} />;
  if (queued === 0) return null;
  if (held === 0)
    return (
      <p class={classNames(styles, "strip", "soft")}>
        {count(queued, "prompt is queued", "prompts are queued")} until this turn ends.
      </p>
    );
  // An interrupt by the user is not a failure and needs no warning.
  const isOwn = lastOutcome === "interrupted" || waiting !== undefined;
  const run = (action: keyof Pick<ActionBodies, "release-queue" | "drop-queue">) =>
    void attempt.run(() => act(id, action, {}));
  return (
    <div class={classNames(styles, "strip", isOwn ? "asks" : "warn")}>
      <span>
        {count(held, "prompt is held", "prompts are held")}
        {waiting ? <Standstill waiting={waiting} /> : `${WHY_HELD[lastOutcome ?? "done"]}.`}
      </span>
      {may("run") && (
        <span class={styles["buttons"]}>
          <button type="button" class="small" disabled={attempt.isBusy} onClick={() => run("release-queue")}>
            Run {held === 1 ? "it" : "them"}
          </button>
          <button type="button" class="small" disabled={attempt.isBusy} onClick={() => run("drop-queue")}>
            Drop
          </button>
        </span>
      )}
      {attempt.problem !== undefined && (
        <p role="alert" class="problem">
          {attempt.problem}
        </p>
      )}
    </div>
  );
}

interface WaitProps {
  readonly waiting: NonNullable<SessionDetail["waiting"]>;
}

/** Wait of a session without a turn and without held prompts: the operator's limits have stopped its turn. */
function Stopped({ waiting }: WaitProps) {
  return (
    <p class={classNames(styles, "strip", "asks")}>
      <span>
        The turn was stopped
        <Standstill waiting={waiting} />
      </span>
    </p>
  );
}

function Standstill({ waiting }: WaitProps) {
  return (
    <>
      : the session <WaitText key={JSON.stringify(waiting)} waiting={waiting} />. Reply to go on.
    </>
  );
}
