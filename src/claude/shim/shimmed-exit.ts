import { constants } from "node:os";

/** End of a process. With `isTaken`, the process runs on under another server. */
export interface ShimmedExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
  readonly isTaken?: true;
}

export const TAKEN_OVER: ShimmedExit = {
  code: null,
  signal: "SIGHUP",
  error: new Error("another server has taken it over"),
  isTaken: true,
};

export function isSignal(name: string | null): name is NodeJS.Signals {
  return name !== null && name in constants.signals;
}
