import type { Figure } from "./figure.ts";
import { Cell, Head, Row, Table } from "./table.tsx";

/** The numbers of a chart, the newest day first; days on which nothing was are left out. */
export function SeriesTable({ figure }: { readonly figure: Figure }) {
  const { labels, lying = false, of, series, title, words } = figure;
  const hasSum = series.length > 1;
  const lines = labels.map((label, n) => ({ label, values: series.map(({ values }) => values[n] ?? 0) }));
  const told = lines.filter(({ values }) => values.some((value) => value > 0));
  return (
    <Table name={title} heads={[of, ...series.map(({ name }) => name), ...(hasSum ? ["In all"] : [])]}>
      {(lying ? told : told.toReversed()).map(({ label, values }, line) => (
        <Row key={line}>
          <Head isShort={of === "Day"}>{label}</Head>
          {values.map((value, n) => (
            <Cell key={n} of={series[n]?.name ?? ""} isNothing={value === 0}>
              {words(value)}
            </Cell>
          ))}
          {hasSum && <Cell of="In all">{words(values.reduce((sum, value) => sum + value, 0))}</Cell>}
        </Row>
      ))}
    </Table>
  );
}
