import { writeSync } from "node:fs";

/** Ends this process after its client. */

/** Ends the process on signals and on a broken stdout. Returns a function that removes the signal handlers. */
export function exitOnSignals(): () => void {
  const end = () => process.exit(0);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.once(signal, end);
  // A failed write means that the client is gone.
  process.stdout.on("error", end);
  return () => {
    for (const signal of signals) process.off(signal, end);
  };
}

/** Interval of checks for a reader of stdout, ms. */
const LOOK_MS = 1_000;

/**
 * Call after the end of stdin. Sends `SIGHUP` to this process once nothing reads stdout (`fd`): the client was killed, and work
 * bound to the client must end. Checks by an empty write, which fails on a socket without a reader; most clients use sockets.
 * On a pipe, only a real answer fails.
 */
export function exitOnceUnread({ fd }: { readonly fd?: number }): void {
  if (fd === undefined) return;
  const timer = setInterval(() => {
    try {
      writeSync(fd, "");
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EPIPE")) return;
      clearInterval(timer);
      process.kill(process.pid, "SIGHUP");
    }
  }, LOOK_MS).unref();
}
