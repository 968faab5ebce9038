import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Figure } from "./figure.ts";
import { onColorsChanged } from "./palette.ts";
import { Cell, Head, Row, Table } from "./table.tsx";
import { classNames } from "../parts/class-names.ts";
import styles from "./usage.module.css";

/** Chart, with `SeriesTable` for users who cannot see the chart. */
export function ChartCard({ figure }: { readonly figure: Figure }) {
  const id = useId();
  return (
    <section class={styles["card"]} aria-labelledby={id}>
      <h3 id={id}>{figure.title}</h3>
      {figure.series.length > 1 && <Key figure={figure} />}
      <Picture figure={figure} />
      <details>
        <summary>
          As a table<span class="visually-hidden">: {figure.title}</span>
        </summary>
        <SeriesTable figure={figure} />
      </details>
    </section>
  );
}

function Key({ figure }: { readonly figure: Figure }) {
  return (
    <ul class={styles["key"]}>
      {figure.series.map(({ fill, name }) => (
        <li key={fill}>
          <i class={classNames(styles, "swatch", `fill-${String(fill)}`)} aria-hidden="true" />
          <bdi>{name}</bdi>
        </li>
      ))}
    </ul>
  );
}

/** Height of a bar with its name (`LINE`) and of the axis (`AXIS`), px. */
const LINE = 34;
const AXIS = 34;

function Picture({ figure }: { readonly figure: Figure }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isMissing, setMissing] = useState(false);
  useEffect(() => {
    let isGone = false;
    let take: (() => void) | undefined;
    const show = async () => {
      const { draw } = await import("./draw.ts");
      if (isGone || !canvas.current) return;
      take?.();
      take = draw(canvas.current, figure);
    };
    const tryToShow = () => void show().catch(() => setMissing(true));
    tryToShow();
    const end = onColorsChanged(tryToShow);
    return () => {
      isGone = true;
      end();
      take?.();
    };
  }, [figure]);
  if (isMissing) return <p class="soft">The chart could not be loaded. The table has its values.</p>;
  const height = figure.lying === true ? { height: `${String(figure.labels.length * LINE + AXIS)}px` } : {};
  return (
    <div class={styles["chart"]} style={height}>
      <canvas ref={canvas} role="img" aria-label={`${figure.title}. ${figure.summary}`} />
    </div>
  );
}

/** Numbers of a chart, newest day first; empty days are left out. */
function SeriesTable({ figure }: { readonly figure: Figure }) {
  const { labels, lying = false, of, series, title, words } = figure;
  const hasSum = series.length > 1;
  const lines = labels.map((label, n) => ({ label, values: series.map(({ values }) => values[n] ?? 0) }));
  const visible = lines.filter(({ values }) => values.some((value) => value > 0));
  return (
    <Table name={title} heads={[of, ...series.map(({ name }) => name), ...(hasSum ? ["Total"] : [])]}>
      {(lying ? visible : visible.toReversed()).map(({ label, values }, line) => (
        <Row key={line}>
          <Head isShort={of === "Day"}>{label}</Head>
          {values.map((value, n) => (
            <Cell key={n} of={series[n]?.name ?? ""} isNothing={value === 0}>
              {words(value)}
            </Cell>
          ))}
          {hasSum && <Cell of="Total">{words(values.reduce((sum, value) => sum + value, 0))}</Cell>}
        </Row>
      ))}
    </Table>
  );
}
