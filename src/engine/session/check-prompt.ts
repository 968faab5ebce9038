import { AppError } from "../../domain/error.ts";
import { optionsOf, type Identity } from "../../domain/session.ts";
import { checkSession } from "../policy/gate.ts";
import { checkRules, gateUnder, policyFor, type Operator } from "../policy/operator.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";
import { refuseOpen } from "./records.ts";

/** Whether a session may continue here: the server that takes a prompt checks it, whichever server started the session. */

interface House extends Operator {
  readonly backend: Pick<SessionBackend, "nodeId" | "rows">;
  readonly runtime: Pick<AgentRuntime, "plan">;
}

interface Owners {
  /** Resolves when what a dead owner left of the session has ended. */
  settled(sessionId: string): Promise<void>;
}

/** Its options and folders are judged as they are by now. Throws AppError. */
export async function checkPrompt(house: House, owners: Owners, record: SessionRecord): Promise<void> {
  const { backend, runtime } = house;
  const { id, principal, state } = record;
  checkRules(record);
  checkSession(gateUnder(house, record), record);
  const isForeign = record.owner?.alive === true && record.owner.nodeId !== backend.nodeId;
  const starts = !isForeign && state.process.phase === "none";
  // What a dead owner left may just be ending.
  if (starts) await owners.settled(id);
  const { identity, openIn } = await runtime.plan({
    principal,
    options: optionsOf(record.spec, state),
    policy: policyFor(house, record),
    environmentId: house.environmentId,
    ...(starts && state.processCount > 0 && { goesOnWith: state.transcriptId ?? id }),
  });
  if (!starts) return;
  checkIdentity(record, identity);
  // It can be our own, which another prompt has started meanwhile.
  const now = openIn && (await backend.rows.get(id));
  if (openIn && now?.state.process.phase === "none") refuseOpen(id, openIn);
}

export async function mayPrompt(...about: Parameters<typeof checkPrompt>): Promise<boolean> {
  return checkPrompt(...about).then(
    () => true,
    () => false,
  );
}

/** A session that would go on under another configuration or another's money is not resumed unseen. */
export function checkIdentity({ id: sessionId, state }: SessionRecord, now: Identity): void {
  const { identity: before } = state;
  if (!before || state.process.phase !== "none") return;
  if (now.configFolder === before.configFolder && now.paidBy === before.paidBy) return;
  const problem = `The session ran with the configuration in ${before.configFolder}, paid by ${before.paidBy}`;
  const present = `this server would use ${now.configFolder}, paid by ${now.paidBy}`;
  const advice = "Reply through a server with the same environment, or start a new session.";
  throw new AppError("PERMISSION_DENIED", `${problem}; ${present}. ${advice}`, { sessionId });
}
