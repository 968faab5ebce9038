import { useEffect, useMemo, useRef } from "preact/hooks";
import { ChartCard } from "../usage/chart.tsx";
import { Directories } from "../usage/directories.tsx";
import { figuresOf } from "../usage/figure.ts";
import { chooseRange, isLoading, keepUsageCurrent, load, usage, problem, range } from "../usage/report.ts";
import { everyDay, RANGES, ZONE, type Range } from "../usage/range.ts";
import { Nodes } from "../usage/nodes.tsx";
import { Plan } from "../usage/plan.tsx";
import { Tiles } from "../usage/tiles.tsx";
import type { Usage } from "../../../src/console/wire-usage.ts";
import { Problem } from "../parts/problem.tsx";
import { may } from "../state/me.ts";
import { hrefOf } from "../state/route.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "../usage/usage.module.css";
import view from "./view.module.css";

/** Cost and duration of turns in the chosen range. */
export function UsageView() {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(keepUsageCurrent, []);
  useEffect(() => {
    // Moves the focus from `main`, which holds the focus while the view is loaded on demand.
    if (document.activeElement?.localName === "main") heading.current?.focus({ preventScroll: true });
  }, []);
  const shown = usage.value;
  const isOther = shown?.of !== range.value;
  return (
    <div class={classNames(view, "view", styles["usage"])}>
      <div class={styles["head"]}>
        <h1 ref={heading} tabIndex={-1}>
          Usage
        </h1>
        <Ranges />
        <button type="button" aria-disabled={isLoading.value} aria-busy={isLoading.value} onClick={reload}>
          Reload
        </button>
      </div>
      {/* Announced when the range changes, not at each reload. */}
      <p class="visually-hidden" role="status">
        {problem.value !== undefined ? "" : isOther ? "Loading…" : `The last ${String(shown.of)} days.`}
      </p>
      <Problem of={problem.value} what="Usage could not be loaded">
        <button type="button" onClick={reload}>
          Try again
        </button>
      </Problem>
      {shown && <Plan plan={shown.plan} />}
      {shown && <Nodes nodes={shown.nodes} />}
      {shown && !isOther && <Report of={shown.of} at={shown.at} data={shown.data} />}
      {isOther && problem.value === undefined && <Skeleton />}
    </div>
  );
}

function reload(): void {
  if (!isLoading.value) void load();
}

function Ranges() {
  return (
    <fieldset class={styles["ranges"]}>
      <legend class="visually-hidden">Time range</legend>
      {RANGES.map((each) => (
        <label key={each}>
          <input type="radio" name="range" checked={range.value === each} onChange={() => chooseRange(each)} />
          <span>{each} days</span>
        </label>
      ))}
    </fieldset>
  );
}

function Report({ at, data, of }: { readonly of: Range; readonly at: number; readonly data: Usage }) {
  const days = useMemo(() => everyDay(data, new Date(at)), [data, at]);
  const figures = useMemo(() => figuresOf(data, days), [data, days]);
  if (data.directories.length === 0) return <NoUsage of={of} />;
  return (
    <>
      <Tiles totals={data.totals} />
      <h2 class="visually-hidden">Charts</h2>
      <div class={styles["charts"]}>
        {figures.map((figure) => (
          <ChartCard key={figure.title} figure={figure} />
        ))}
      </div>
      <Directories directories={data.directories} />
      <p class={classNames(styles, "soft", "note")}>
        As of {new Date(at).toLocaleTimeString(undefined, { timeStyle: "short" })}. Days are in the time zone {ZONE}. A
        turn counts on the day it ended. Deleted sessions are not included.
      </p>
    </>
  );
}

function NoUsage({ of }: { readonly of: Range }) {
  return (
    <div class={styles["nothing"]}>
      <p>
        <strong>No activity in the last {of} days.</strong>
      </p>
      <p class="soft">Cost and duration of turns appear here once a turn has ended.</p>
      {may("run") && <a href={hrefOf({ view: "start" })}>Start a session</a>}
    </div>
  );
}

function Skeleton() {
  return (
    <div aria-hidden="true">
      <div class={styles["tiles"]}>
        {Array.from({ length: 6 }, (_, n) => (
          <div key={n} class={classNames(styles, "tile", "waiting")} />
        ))}
      </div>
      <p class="soft">Loading…</p>
    </div>
  );
}
