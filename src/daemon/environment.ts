import { clientVariables } from "../domain/client-environment.ts";

/** The environment of a daemon that is started from a process with another one. */

export type Environment = Readonly<Record<string, string | undefined>>;

/** A daemon is started through a shell, and shells drop variables with other names. Windows needs no shell. */
const PORTABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Number of threads for files, which a daemon gets at its start. */
export const THREADS = "UV_THREADPOOL_SIZE";

/** Of its own environment it is the same. */
export function daemonEnvironment(
  environment: Environment,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const kept = Object.entries(clientVariables(environment, platform));
  const isKept = (name: string) => name !== THREADS && (platform === "win32" || PORTABLE.test(name));
  return Object.fromEntries(kept.filter(([name]) => isKept(name)));
}
