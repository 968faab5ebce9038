import { AppError } from "../domain/error.ts";
import { processTagOf } from "../domain/names.ts";
import type { ShimRef } from "../domain/process.ts";
import { requireReadable, type AgentRuntime, type SessionRecord, type ShimRelation } from "./ports.ts";

/** Relation of an abandoned session's shim to this server. */

type StoredSession = Pick<SessionRecord, "id" | "state">;
type Shims = Pick<AgentRuntime, "shimRelation">;

/** True if another daemon may still go on with the process. Such a session is left alone, and shown as recorded. */
export async function belongsToOtherDaemon(
  { state: { process } }: Pick<StoredSession, "state">,
  runtime: Shims,
): Promise<boolean> {
  return (await runtime.shimRelation(process)) === "theirs";
}

/** Throws SESSION_BUSY if another daemon may go on with the process, and INTERNAL if `record` is unreadable. */
export async function refuseUnclaimable(record: SessionRecord, runtime: Shims): Promise<ShimRelation> {
  const {
    id: sessionId,
    state: { process },
  } = requireReadable(record);
  const relation = await runtime.shimRelation(process);
  if (relation !== "theirs" || process.phase === "none" || !process.shim) return relation;
  throw new AppError("SESSION_BUSY", otherDaemonText(process.shim), { sessionId });
}

/** Returns why no server can go on with the process, beyond the death of its owner. */
export async function whyGone(
  { id, state: { process } }: StoredSession,
  runtime: Pick<AgentRuntime, "whyGone">,
): Promise<string | undefined> {
  return process.phase === "none" ? undefined : runtime.whyGone(processTagOf(id, process.id), process);
}

function otherDaemonText({ daemon, keepMs }: ShimRef): string {
  const problem = `The session's Claude Code runs on, and only the daemon ${daemon}, which has ended, may go on with it`;
  const until = `It is kept for that daemon for ${String(Math.ceil(keepMs / 1000))} s after its end`;
  const advice = "Use a client of that daemon, which starts it again, or try again when that time is over.";
  return `${problem}. ${until}. ${advice}`;
}
