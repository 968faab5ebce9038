/** How many times: a small number in `npm test`; the large one where AMOUNTS=full, as `npm run test:all -- --full` has it. */
export function amount(usual: number, full: number): number {
  return process.env["AMOUNTS"] === "full" ? full : usual;
}
