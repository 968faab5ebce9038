import { useState } from "preact/hooks";
import type { ActionBodies } from "../../../src/console/wire.ts";
import { post, messageOf } from "../net/api.ts";

/** Posts an action on the session. Effects arrive on the stream. */
export async function act<A extends keyof ActionBodies, T = unknown>(
  sessionId: string,
  action: A,
  body: ActionBodies[A],
): Promise<T> {
  return post<T>(`sessions/${encodeURIComponent(sessionId)}/${action}`, body);
}

export interface Attempt {
  readonly isBusy: boolean;
  readonly problem: string | undefined;
  /** Resolves to true if `what` succeeded. Returns false at once if another call is running. */
  readonly run: (what: () => Promise<unknown>) => Promise<boolean>;
}

/** State of a request that takes time and may be refused. */
export function useAttempt(): Attempt {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const run = async (what: () => Promise<unknown>) => {
    if (isBusy) return false;
    setBusy(true);
    setProblem(undefined);
    try {
      await what();
      return true;
    } catch (error) {
      setProblem(messageOf(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, problem, run };
}
