/**
 * The breakpoints of the page, by the names that its stylesheets use in place of queries: `@media (--phone)`. A stylesheet cannot
 * take them from another one, so vite.config.ts puts the queries in (as in the draft of custom media queries).
 */
const BREAKPOINTS = {
  /** The header is one line. */
  "--wide-header": "(width >= 46rem)",
  /** Fields side by side, */
  "--two-columns": "(width >= 40rem)",
  /** or below each other. */
  "--one-column": "(max-width: 40rem)",
  /** A phone held upright: buttons grow. */
  "--phone": "(max-width: 34rem)",
  /** A phone held sideways. */
  "--low": "(max-height: 32rem)",
  /** The container of a usage table, whose width is not that of the window. */
  "--wide-table": "(min-width: 40rem)",
  "--narrow-table": "(max-width: 40rem)",
  "--smallest-table": "(max-width: 27rem)",
};

const queries = new Map(Object.entries(BREAKPOINTS));

interface AtRule {
  params: string;
}

function expand(rule: AtRule): void {
  const params = rule.params.replaceAll(/\((--[\w-]+)\)/g, (_, name: string) => {
    const query = queries.get(name);
    if (query === undefined) throw new Error(`breakpoints.ts has no ${name}: it has ${[...queries.keys()].join(", ")}`);
    return query;
  });
  // PostCSS visits a rule again that has changed.
  if (params !== rule.params) rule.params = params;
}

/** A plugin of PostCSS. */
export const breakpoints = { postcssPlugin: "breakpoints", AtRule: { media: expand, container: expand } };
