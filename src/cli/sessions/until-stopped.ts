import { AppError } from "../../domain/error.ts";
import { killRunning } from "../../security/kill-at-exit.ts";
import { exitOnWriteError } from "./store.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Time for the message and the end of the store, ms. */
const EXIT_MS = 500;

/**
 * Runs work that cleans up after a fault, and makes a signal, or a reader of stdout that is gone, such a fault. A second signal
 * ends the process at once. Faults of files become one line.
 */
export async function untilStopped<T>(work: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const end = (why: string) => {
    const reason = failed(why);
    stop.abort(reason);
    killRunning();
    // A reader that does not read would keep the work waiting.
    process.stdout.destroy(reason);
  };
  const onSignal = (signal: string) => (stop.signal.aborted ? process.exit(1) : end(`Stopped by ${signal}`));
  const onClosed = ({ message }: Error) => {
    if (!stop.signal.aborted) end(`The output was closed: ${message}`);
  };
  process.stdout.off("error", exitOnWriteError).on("error", onClosed);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    return await work(stop.signal);
  } catch (error) {
    // A killed command fails with words of its own.
    if (stop.signal.aborted) {
      // A part that waits in the pipe for a reader would keep the process.
      setTimeout(() => process.exit(1), EXIT_MS).unref();
      throw stop.signal.reason;
    }
    throw error instanceof Error && "syscall" in error ? failed(error.message) : error;
  } finally {
    if (!stop.signal.aborted) process.stdout.off("error", onClosed).on("error", exitOnWriteError);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}

const failed = (why: string) => new AppError("INTERNAL", `${why}. Nothing is left of the attempt.`);
