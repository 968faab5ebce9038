/** Returns `usual` in `npm test`, `full` if AMOUNTS=full, as `npm run test:all -- --full` sets. */
export function amount(usual: number, full: number): number {
  return process.env["AMOUNTS"] === "full" ? full : usual;
}

/** Returns every second row of a table in `.ci/run`, from the first, and all rows if AMOUNTS=full. */
export function half<T>(rows: readonly T[]): T[] {
  return rows.filter((_, at) => at % amount(2, 1) === 0);
}
