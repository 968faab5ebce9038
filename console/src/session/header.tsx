import type { SessionDetail } from "../../../src/console/wire.ts";
import { count, usd, moment } from "../parts/format.ts";
import { Status } from "../parts/status.tsx";
import { Since } from "../parts/time.tsx";
import { Wait } from "../parts/wait.tsx";
import { displayText } from "../parts/text.ts";
import { Actions } from "./actions.tsx";
import { Remembered } from "./remembered.tsx";
import { approversText, isAtWork } from "./status.ts";
import { Title } from "./title.tsx";
import styles from "./session.module.css";
import facts from "../parts/facts.module.css";

interface Props {
  readonly detail: SessionDetail;
  /** State of the verification in words; "" if there is nothing to say. */
  readonly verification: string;
}

export function SessionHeader({ detail, verification }: Props) {
  const { closed, costUsd, status, turns, unreadable, waiting } = detail;
  return (
    <header class={styles["head"]}>
      <div class={styles["first"]}>
        <Title detail={detail} />
        <Actions detail={detail} />
      </div>
      <p class={styles["line"]}>
        <span class={styles["now"]} role="status">
          <Status status={status} /> {approversText(detail)}
          {waiting && <Wait waiting={waiting} />}
          {verification !== "" && <span class={status === "error" ? styles["red"] : undefined}>{verification}</span>}
        </span>
        {detail.turnStartedAt !== undefined && isAtWork(detail) && (
          <span class="number">
            for <Since at={detail.turnStartedAt} />
          </span>
        )}
        {turns > 0 && <span>{count(turns, "model call")}</span>}
        <span>{usd(costUsd)}</span>
        {detail.background > 0 && <span>{count(detail.background, "background task")}</span>}
        {closed && (
          <span>
            {closed.reason} by {displayText(closed.by)}, {moment(closed.at)}
          </span>
        )}
      </p>
      {unreadable !== undefined && <p class={styles["line"]}>{displayText(unreadable)}</p>}
      <Details detail={detail} />
    </header>
  );
}

function Details({ detail }: { readonly detail: SessionDetail }) {
  const { createdAt, cwd, id, maxBudgetUsd, maxTurns, model, node, onLimit, permissionMode, place } = detail;
  const { priority, profile, tasks } = detail;
  return (
    <details class={styles["details"]}>
      <summary>
        <code>{displayText(cwd)}</code>
        <span class="soft">
          {model ?? "default model"} · {permissionMode}
        </span>
      </summary>
      <dl class={facts["facts"]}>
        <Fact name="Directory" text={cwd} />
        <Fact name="Model" text={model ?? "Claude Code's default"} />
        <Fact name="Permission mode" text={permissionMode} />
        <Fact name="Started" text={moment(createdAt)} />
        <Fact name="Id" text={id} />
        {node !== undefined && <Fact name="Runs on" text={`node ${node}`} />}
        {place !== undefined && <Fact name="May run on" text={place} />}
        {maxTurns !== undefined && <Fact name="Maximum turns" text={String(maxTurns)} />}
        {maxBudgetUsd !== undefined && <Fact name="Budget" text={usd(maxBudgetUsd)} />}
        {profile !== undefined && <Fact name="Profile" text={profile} />}
        {priority && <Fact name="Priority" text={priority} />}
        {onLimit && <Fact name="At a limit" text={ON_LIMIT[onLimit]} />}
        {tasks.map(({ description, id: task, type }) => (
          <Fact key={task} name="Background task" text={description === "" ? type : description} />
        ))}
      </dl>
      <Remembered detail={detail} />
    </details>
  );
}

const ON_LIMIT = { report: "the turn ends", wait: "waits and goes on" } as const;

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{displayText(text)}</dd>
    </div>
  );
}
