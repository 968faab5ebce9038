/** Full counts are for docs/reliability.md; CI runs a small share. */
export const isFull = process.env["FAULTS"] === "full";

export interface Figure {
  fault: string;
  runs: number;
  /** Events seen by a client, but missing or different afterwards. */
  lost: number;
  /** Processes still running 10 s after the fault. */
  leftOver: number;
  /** Further figures, such as the number of faults in each state. */
  note?: string;
}

/** Prints `figure` as one line of the tests' output. */
export function report(figure: Figure): void {
  const { fault, leftOver, lost, note = "", runs } = figure;
  process.stdout.write(
    `FAULT ${fault}: ${String(runs)} runs, ${String(lost)} lost, ${String(leftOver)} left over ${note}\n`,
  );
}

/** Returns a random generator; tests print `seed`, so that a failed run can be repeated. */
export function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}
