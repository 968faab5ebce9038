import type { ComponentChildren } from "preact";
import type { SessionRow } from "../../../src/console/wire.ts";
import { count, shortPath, usd } from "../parts/format.ts";
import { displayLine, displayText } from "../parts/text.ts";
import { SessionName } from "../parts/session-name.tsx";
import { Status } from "../parts/status.tsx";
import { Ago, Since } from "../parts/time.tsx";
import { Wait } from "../parts/wait.tsx";
import { approverName } from "../state/answer-source.ts";
import { hrefOf } from "../state/route.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./sessions.module.css";

/** Session in the list. Clicks anywhere open the session; only the title is a link. */
export function Row({ row }: { readonly row: SessionRow }) {
  return (
    <li class={styles["row"]}>
      <Status status={row.status} />
      <div class={styles["what"]}>
        <a class={styles["title"]} data-row href={hrefOf({ view: "session", id: row.id })} title={displayText(row.cwd)}>
          <SessionName title={row.title} />
        </a>
        <Facts row={row} />
      </div>
      <div class={classNames(styles, "numbers", "number")}>
        <span>{usd(row.costUsd)}</span>
        <Ago at={row.updatedAt} />
      </div>
    </li>
  );
}

function Facts({ row }: { readonly row: SessionRow }) {
  return (
    <ul class={styles["facts"]}>
      {row.requests > 0 && <li class={styles["waits"]}>{waitsWords(row)}</li>}
      <Fact of={row.waiting && <Wait waiting={row.waiting} />} />
      {row.turnStartedAt !== undefined && (
        <li class="number">
          for <Since at={row.turnStartedAt} />
        </li>
      )}
      <Fact of={endOf(row)} />
      <li>
        <span class="visually-hidden">in </span>
        <bdi>{displayLine(shortPath(row.cwd))}</bdi>
      </li>
      <Fact of={row.model && displayLine(row.model)} />
      {row.turns > 0 && <li class="number">{count(row.turns, "model call")}</li>}
      <Fact of={row.queued > 0 && queueWords(row)} />
      <Fact of={row.background > 0 && count(row.background, "background task")} />
    </ul>
  );
}

function Fact({ of: text }: { readonly of: ComponentChildren }) {
  return text === undefined || text === false ? null : <li>{text}</li>;
}

function waitsWords({ requests, waitsFor }: SessionRow): string {
  const whom = waitsFor.map(approverName).join(" and ");
  return `${count(requests, "request")}${whom === "" ? "" : ` for ${whom}`}`;
}

function queueWords({ queued, held }: SessionRow): string {
  return `${count(queued, "queued prompt")}${held > 0 ? ` (${String(held)} held)` : ""}`;
}

/** Reason of the end, unless the status shows the reason. */
function endOf({ closed, lastOutcome, status }: SessionRow): string | undefined {
  if (closed) return closed.reason === "expired" ? "expired" : undefined;
  if (lastOutcome === "interrupted" && status === "idle") return "interrupted";
  return lastOutcome === "lost" && status === "error" ? "lost" : undefined;
}
