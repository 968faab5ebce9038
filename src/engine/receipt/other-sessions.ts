import type { SessionState } from "../../domain/session.ts";
import type { Turn } from "../../domain/running-turn.ts";
import type { ActorContext, ActorSession } from "../actor-context.ts";

/** Finds other sessions that work in the folder of a session. */

/** Maximum number of sessions of the principal searched for those that worked in the folder. */
const MAX_OTHERS = 200;

interface Searched extends Pick<ActorContext, "backend">, Pick<ActorSession, "principal" | "spec"> {
  readonly sessionId: string;
}

/** Counts other sessions that worked in the folder: at the beginning of a turn, at its end, or between. */
export async function countOthers(
  searched: Searched,
  atStart: Iterable<string>,
  turn: Pick<Turn, "startedAt">,
): Promise<number> {
  return new Set([...atStart, ...(await findOthers(searched, turn.startedAt))]).size;
}

/** Returns ids of other sessions at work in the folder now, and of those of the principal that worked there since `since`. */
export async function findOthers(
  { backend, principal, sessionId, spec }: Searched,
  since?: number,
): Promise<ReadonlySet<string>> {
  const found = await Promise.all([
    backend.leases.atWork(),
    since === undefined ? [] : backend.rows.list({ principal, since, limit: MAX_OTHERS }),
  ]).catch(() => []);
  const others = found.flat().filter((each) => each.id !== sessionId && overlap(each.spec.cwd, spec.cwd));
  return new Set(others.filter((each) => hasWorked(each.state, since)).map(({ id }) => id));
}

/** True if one folder contains the other. */
function overlap(some: string, other: string): boolean {
  const [one, two] = [some, other].map((path) => path.replace(/[\\/]*$/, "/").replaceAll("\\", "/"));
  return one !== undefined && two !== undefined && (one.startsWith(two) || two.startsWith(one));
}

/** True if a turn runs, or has ended since `since`. */
function hasWorked({ idleSince, turn }: SessionState, since = Infinity): boolean {
  return turn !== null || idleSince >= since;
}
