/** Returns `usual` in `npm test`, `full` if AMOUNTS=full, as `npm run test:all -- --full` sets. */
export function amount(usual: number, full: number): number {
  return process.env["AMOUNTS"] === "full" ? full : usual;
}
