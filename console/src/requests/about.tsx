import type { ComponentChildren } from "preact";
import type { ActionBodies, PendingRequest } from "../../../src/console/wire.ts";
import type { Risk } from "../../../src/domain/approvals/risk.ts";
import { post } from "../net/api.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { timeLeft, moment } from "../parts/format.ts";
import { approverName } from "../state/answer-source.ts";
import { isAlone } from "../state/request-page.ts";
import { now } from "../state/clock.ts";
import { EscapedText } from "./escaped-text.tsx";
import { laterApprovers } from "./words/deciders.ts";
import { RISK_WORDS } from "./words/subject.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./requests.module.css";

export function RiskBadge({ risk }: { readonly risk: Risk | undefined }) {
  const level = risk?.level ?? "unknown";
  return <span class={classNames(styles, "risk", `risk-${level}`)}>{RISK_WORDS[level].name}</span>;
}

/** Facts about the request: risk, reason, blocked path, unchecked rule, and approver with deadline. */
export function About({ mayAnswer, request }: { readonly request: PendingRequest; readonly mayAnswer: boolean }) {
  const { blockedPath, decisionReason, risk, type, unchecked } = request;
  return (
    <dl class={styles["about"]}>
      {type === "permission" && (
        <Fact name="Risk">
          {RISK_WORDS[risk?.level ?? "unknown"].meaning}
          {risk && risk.why.length > 0 && (
            <>
              {" "}
              <b>
                <EscapedText text={risk.why.join(", ")} />
              </b>
            </>
          )}
        </Fact>
      )}
      {decisionReason !== undefined && (
        <Fact name="Reason">
          <EscapedText text={decisionReason} />
        </Fact>
      )}
      {blockedPath !== undefined && (
        <Fact name="Path">
          <code>
            <EscapedText text={blockedPath} />
          </code>
        </Fact>
      )}
      {unchecked !== undefined && (
        <Fact name="Not checked">
          <EscapedText text={unchecked} />
        </Fact>
      )}
      <Fact name="Waiting for">
        <Waits request={request} /> {mayAnswer && !isAlone && <MoreTime request={request} />}
      </Fact>
    </dl>
  );
}

function Fact({ children, name }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Waits({
  request: { expiresAt, approvals, approver, approverDeadline },
}: {
  readonly request: PendingRequest;
}) {
  const then = laterApprovers(approver, approvals);
  const isLast = approverDeadline >= expiresAt;
  return (
    <>
      {approverName(approver)}
      {!isLast && (
        <>
          , <Until at={approverDeadline} /> left
          {then !== "" && `, then ${then}`}
        </>
      )}
      . Without an answer it is denied in <Until at={expiresAt} />.
    </>
  );
}

/** Extends the deadline, for users who need more time to read. */
function MoreTime({ request: { requestId, sessionId } }: { readonly request: PendingRequest }) {
  const extend = async () => {
    const body: ActionBodies["more-time"] = { requestId };
    await post(`sessions/${encodeURIComponent(sessionId)}/more-time`, body);
  };
  return (
    <ActionButton kind="link" act={extend} label="More time to answer">
      More time
    </ActionButton>
  );
}

/** Countdown. `aria-live` is off, because screen readers must not announce each second. */
function Until({ at }: { readonly at: number }) {
  return (
    <time class={styles["left"]} aria-live="off" dateTime={new Date(at).toISOString()} title={moment(at)}>
      {timeLeft(at - now.value)}
    </time>
  );
}
