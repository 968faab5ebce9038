import { useEffect, useRef } from "preact/hooks";
import type { PendingRequest } from "../../../src/console/wire.ts";
import { me } from "../state/me.ts";
import { isAlone } from "../state/request-page.ts";
import { hrefOf } from "../state/route.ts";
import { About, RiskBadge } from "./about.tsx";
import { type Draft, getDraft } from "./draft.ts";
import { InputShown } from "./input.tsx";
import { PermissionForm } from "./forms/permission-form.tsx";
import { EscapedText } from "./escaped-text.tsx";
import { PlanForm } from "./forms/plan-form.tsx";
import { useGuard, useHeight } from "./card-focus.ts";
import { QuestionForm } from "./forms/question-form.tsx";
import { whyReadOnly } from "./words/deciders.ts";
import { headline } from "./words/subject.ts";
import type { RefObject } from "preact";
import { keysAreOn } from "../state/keys.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./requests.module.css";

interface Props {
  readonly request: PendingRequest;
  /** Level below the heading of the surrounding section. */
  readonly heading?: "h2" | "h3" | "h4";
  /** Hides the card of a closed request, but keeps the element for a user whose focus is inside, and for screen readers. */
  readonly isHidden?: boolean;
}

/** Card with a request and the form to answer; after the answer, the outcome. */
export function RequestCard({ heading: Heading = "h2", isHidden = false, request }: Props) {
  const draft = getDraft(request);
  const card = useRef<HTMLElement>(null);
  useGuard(draft, card);
  const outcome = draft.outcome.value;
  useKeys(card);
  const id = `request-${draft.key}`;
  const isAnswered = outcome !== "";
  useHeight(draft, card, isAnswered && !isHidden);
  return (
    <article
      ref={card}
      class={classNames(styles, "card", isHidden ? "visually-hidden" : undefined)}
      aria-labelledby={id}
      tabIndex={isAnswered ? -1 : 0}
      data-request={draft.key}
      data-answered={isAnswered ? "" : undefined}
      data-risk={request.type === "permission" ? (request.risk?.level ?? "unknown") : undefined}
    >
      <header class={styles["head"]}>
        <Heading id={id}>
          <EscapedText text={headline(request, isAnswered)} />
        </Heading>
        {request.type === "permission" && !isAnswered && <Tags request={request} />}
      </header>
      {!isAnswered && <OpenBody request={request} draft={draft} />}
      <p class={styles["outcome"]} role="status" title={outcome}>
        {isAnswered ? <EscapedText text={outcome} /> : draft.isSending.value ? "Sending…" : ""}
      </p>
    </article>
  );
}

function Tags({ request: { risk, toolName } }: { readonly request: PendingRequest }) {
  return (
    <span class={styles["tags"]}>
      <code class={styles["tool"]}>
        <EscapedText text={toolName} />
      </code>
      <RiskBadge risk={risk} />
    </span>
  );
}

/** Link to the call that started the asking subagent, where the log shows the subagent's work. */
function AgentLine({ request: { agent, sessionId } }: { readonly request: PendingRequest }) {
  if (!agent || isAlone) return null;
  return (
    <p class={styles["session"]}>
      <a href={`${hrefOf({ view: "session", id: sessionId })}?event=${String(agent.eventId)}`}>Its task</a>
    </p>
  );
}

/** Body of an unanswered card. */
function OpenBody({ draft, request }: { readonly request: PendingRequest; readonly draft: Draft }) {
  const only = me.value && whyReadOnly(me.value, request.approvals);
  const form = { request, draft, mayAnswer: isAlone || (me.value !== undefined && only === undefined) };
  return (
    <div>
      <AgentLine request={request} />
      {request.type === "permission" && <InputShown request={request} />}
      {request.type === "plan" && <PlanForm {...form} facts={<About request={request} mayAnswer={form.mayAnswer} />} />}
      {request.type === "question" && (
        <QuestionForm {...form} facts={<About request={request} mayAnswer={form.mayAnswer} />} />
      )}
      {request.type === "permission" && <About request={request} mayAnswer={form.mayAnswer} />}
      {request.type === "permission" && <PermissionForm {...form} />}
      {only !== undefined && <p class={styles["note"]}>{only}</p>}
    </div>
  );
}

/** Shortcuts of the focused card click its buttons (`data-key`), so that keys and buttons can do exactly as much. */
function useKeys(card: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = card.current;
    const onKeyDown = (event: KeyboardEvent) => pressByKey(event, element);
    element?.addEventListener("keydown", onKeyDown);
    return () => element?.removeEventListener("keydown", onKeyDown);
  }, [card]);
}

/** Elements in which a letter is text, not a shortcut. */
const TYPED_IN = "input, textarea, select, [contenteditable]";

function pressByKey(event: KeyboardEvent, card: HTMLElement | null): void {
  const { target } = event;
  if (
    !keysAreOn.value ||
    event.repeat ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    !(target instanceof Element)
  )
    return;
  if (target.matches(TYPED_IN)) return;
  const button = card?.querySelector<HTMLButtonElement>(`button[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!button || button.disabled) return;
  event.preventDefault();
  button.click();
}
