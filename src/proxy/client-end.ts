import { writeSync } from "node:fs";

/** Notices the end of a client. */

/** Signals of the client, and its end, end the process; the function that is returned takes back what signals do. */
export function endWithSignals(): () => void {
  const end = () => process.exit(0);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.once(signal, end);
  // A client that is gone reads nothing; the end of stdin follows.
  process.stdout.on("error", end);
  return () => {
    for (const signal of signals) process.off(signal, end);
  };
}

/** Interval of looks at the reader, ms. */
const LOOK_MS = 1_000;

/**
 * Ends this process as SIGHUP does once a client that has ended its input does not read its answers either: it was killed, and what
 * is bound to it ends. To write nothing tells that of a socket, by which most clients are connected; of a pipe only an answer tells.
 */
export function endUnread({ fd }: { readonly fd?: number }): void {
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
