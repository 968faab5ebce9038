/** How many times: a sound number in `npm test`; the large one where AMOUNTS=full, as `npm run test:all -- --full` has it. */
export function amount(usual: number, full: number): number {
  return process.env["AMOUNTS"] === "full" ? full : usual;
}
