import "../style/session.css";
import { useEffect, useState } from "preact/hooks";
import type { SessionDetail } from "../../../src/console/wire.ts";
import { counted, lasting, money, wholeTime } from "../parts/amounts.ts";
import { harmless } from "../parts/harmless.ts";
import { Actions } from "./actions.tsx";
import { isAtWork, TONES, wordsOfStatus } from "./status.ts";
import { Title } from "./title.tsx";

/** Which session it is, and how it stands. */
export function SessionHeader({ detail }: { readonly detail: SessionDetail }) {
  const { closed, costUsd, status, turns } = detail;
  return (
    <header class="session-head">
      <div class="first">
        <Title detail={detail} />
        <Actions detail={detail} />
      </div>
      <p class="facts-line">
        <span class={`status ${TONES[status]}`} role="status">
          {wordsOfStatus(detail)}
        </span>
        {detail.turnStartedAt !== undefined && isAtWork(detail) && <Since at={detail.turnStartedAt} />}
        <span>{counted(turns, "turn")}</span>
        <span>{money(costUsd)}</span>
        {detail.background > 0 && <span>{counted(detail.background, "task")} in the background</span>}
        {closed && (
          <span>
            {closed.reason} by {harmless(closed.by)}, {wholeTime(closed.at)}
          </span>
        )}
      </p>
      <Details detail={detail} />
    </header>
  );
}

/** Runs on as long as the turn does. */
function Since({ at }: { readonly at: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return <span class="numbers">for {lasting(Math.max(1_000, now - at)).replace(/\.\d/, "")}</span>;
}

function Details({ detail }: { readonly detail: SessionDetail }) {
  const { createdAt, cwd, id, maxBudgetUsd, maxTurns, model, permissionMode, tasks } = detail;
  return (
    <details class="session-details">
      <summary>
        <code class="glimpse">{harmless(cwd)}</code>
        <span class="soft">
          {model ?? "default model"} · {permissionMode}
        </span>
      </summary>
      <dl class="facts">
        <Fact name="Directory" text={cwd} />
        <Fact name="Model" text={model ?? "Claude Code's default"} />
        <Fact name="Permission mode" text={permissionMode} />
        <Fact name="Started" text={wholeTime(createdAt)} />
        <Fact name="Id" text={id} />
        {maxTurns !== undefined && <Fact name="Turns at most" text={String(maxTurns)} />}
        {maxBudgetUsd !== undefined && <Fact name="Spends at most" text={money(maxBudgetUsd)} />}
        {tasks.map(({ description, id: task, type }) => (
          <Fact key={task} name="In the background" text={description === "" ? type : description} />
        ))}
      </dl>
    </details>
  );
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{harmless(text)}</dd>
    </div>
  );
}
