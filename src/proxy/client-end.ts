import { writeSync } from "node:fs";

/** Detects the end of a client. */

/** Ends the process on signals and on a broken stdout. Returns a function that removes the signal handlers. */
export function exitOnSignals(): () => void {
  const end = () => process.exit(0);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.once(signal, end);
  // After a write error the client is gone; the end of stdin follows.
  process.stdout.on("error", end);
  return () => {
    for (const signal of signals) process.off(signal, end);
  };
}

/** Interval of checks for a reader, ms. */
const LOOK_MS = 1_000;

/**
 * Watches for a killed client after the end of its input: ends this process by `SIGHUP` once nothing reads the answers, so that
 * work bound to the client ends. An empty write fails on a socket without a reader (most clients use sockets), but only a real
 * answer fails on a pipe.
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
