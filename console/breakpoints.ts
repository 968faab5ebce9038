/**
 * Breakpoints of the page, which stylesheets name in place of queries: `@media (--phone)`. A stylesheet cannot import custom
 * media from another file, so vite.config.ts replaces the names, as in the draft of custom media queries.
 */
const BREAKPOINTS = {
  /** Header on one line. */
  "--wide-header": "(width >= 46rem)",
  /** Fields side by side, for two columns. */
  "--two-columns": "(width >= 40rem)",
  /** Fields below each other. */
  "--one-column": "(max-width: 40rem)",
  /** Phone in portrait; buttons grow. */
  "--phone": "(max-width: 34rem)",
  /** Phone in landscape. */
  "--low": "(max-height: 32rem)",
  /** Queries for the container of a usage table, whose width differs from the window's. */
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
    if (query === undefined)
      throw new Error(`${name}: unknown breakpoint. Use one of ${[...queries.keys()].join(", ")}.`);
    return query;
  });
  // Assigns only a changed value, because PostCSS visits a changed rule again.
  if (params !== rule.params) rule.params = params;
}

/** PostCSS plugin. */
export const breakpoints = { postcssPlugin: "breakpoints", AtRule: { media: expand, container: expand } };
