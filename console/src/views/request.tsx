import { useEffect, useState } from "preact/hooks";
import type { PendingRequest } from "../../../src/console/wire.ts";
import { ApiProblem, messageOf } from "../net/api.ts";
import { Problem } from "../parts/problem.tsx";
import { SessionName } from "../parts/session-name.tsx";
import { RequestCard } from "../requests/card.tsx";
import { getDraft } from "../requests/draft.ts";
import { EscapedText } from "../requests/escaped-text.tsx";
import { approvers } from "../state/answer-source.ts";
import { loadRequest } from "../state/request-page.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "../requests/requests.module.css";
import view from "./view.module.css";

/** Interval at which the page looks whether the request is still open, ms. */
const LOOK_MS = 3_000;

/** Request opened by a link, without the rest of the console. */
export function RequestView() {
  const [request, setRequest] = useState<PendingRequest>();
  const [problem, setProblem] = useState<unknown>();
  useEffect(() => followRequest(setRequest, setProblem), []);
  const isAnswered = request !== undefined && getDraft(request).outcome.value !== "";
  const title = request || problem === undefined ? "Request of Claude Code" : "This link shows no request";
  useEffect(() => {
    document.title = `${title} · claude-agents-mcp`;
  }, [title]);
  return (
    <main class={classNames(view, "view", styles["page"])} tabIndex={-1}>
      <header class={view["head"]}>
        <h1>{title}</h1>
        <p class="soft" role="status">
          {request || problem !== undefined ? "" : "Loading…"}
        </p>
      </header>
      {!isAnswered && <Problem of={problem} />}
      {request && (
        <section aria-labelledby="session">
          <header class={styles["group-head"]}>
            <h2 id="session">
              <SessionName title={request.title} />
            </h2>
            <p class={styles["folder"]}>
              <EscapedText text={request.cwd} />
            </p>
          </header>
          <RequestCard request={request} heading="h3" />
          {isAnswered && <p>You can close this page.</p>}
        </section>
      )}
    </main>
  );
}

/** Loads the request until it is closed or the returned function is called. */
function followRequest(
  show: (request: PendingRequest | undefined) => void,
  report: (problem: unknown) => void,
): () => void {
  let timer: ReturnType<typeof setTimeout>;
  let shown: PendingRequest | undefined;
  const look = async () => {
    try {
      const found = await loadRequest();
      approvers.value = found.approvers;
      shown = found.request;
      show(shown);
      report(undefined);
    } catch (error) {
      if (isFinal(error)) return end(error);
      report(error);
    }
    timer = setTimeout(() => void look(), LOOK_MS);
  };
  const end = (error: ApiProblem) => {
    const outcome = shown && getDraft(shown).outcome;
    if (error.error !== "link_answered" || !outcome) {
      if (outcome?.value) return;
      show(undefined);
      report(error);
    } else if (outcome.value === "") outcome.value = messageOf(error);
  };
  void look();
  return () => clearTimeout(timer);
}

/** False if the server is unreachable or overloaded, and may answer later. */
function isFinal(error: unknown): error is ApiProblem {
  return error instanceof ApiProblem && error.status >= 400 && error.status < 500 && error.status !== 429;
}
