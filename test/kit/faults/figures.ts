/** The full count is for docs/reliability.md; the short share runs in CI. */
export const isFull = process.env["FAULTS"] === "full";

export interface Figure {
  fault: string;
  runs: number;
  /** Events that a client had seen and that were not there afterwards, or not the same. */
  lost: number;
  /** Processes that were still there 10 s after. */
  leftOver: number;
  /** Further figures, such as how often the fault met which state. */
  note?: string;
}

/** Prints `figure` as one line of the output of the tests. */
export function report(figure: Figure): void {
  const { fault, leftOver, lost, note = "", runs } = figure;
  process.stdout.write(
    `FAULT ${fault}: ${String(runs)} runs, ${String(lost)} lost, ${String(leftOver)} left over ${note}\n`,
  );
}

/** Random, but printed: a failed run can be repeated with its seed. */
export function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}
