import { AppError } from "../../domain/error.ts";
import { optionsOf } from "../../domain/session.ts";
import { checkSession } from "../gate.ts";
import { checkRules, gateUnder, type Operator } from "../operator.ts";
import type { AgentRuntime, SessionBackend, SessionRecord } from "../ports.ts";
import { refuseOpen } from "./beginnings.ts";

/** Whether a session may go on here: the server that takes a prompt answers for it, whoever started the session. */

interface House extends Operator {
  readonly backend: Pick<SessionBackend, "nodeId" | "rows">;
  readonly runtime: Pick<AgentRuntime, "check" | "identify" | "openIn">;
}

interface Owners {
  /** Resolves when what a dead owner left of the session has ended. */
  settled(sessionId: string): Promise<void>;
}

/** Its options and folders are judged as they are by now. Throws AppError. */
export async function checkPrompt(house: House, owners: Owners, record: SessionRecord): Promise<void> {
  const { backend, runtime } = house;
  const { process } = record.state;
  const options = optionsOf(record.spec, record.state);
  checkRules(record);
  checkSession(gateUnder(house, record), record);
  await runtime.check(record.principal, options, record.policy);
  const isForeign = record.owner?.alive === true && record.owner.nodeId !== backend.nodeId;
  if (isForeign || process.phase !== "none") return;
  await checkIdentity(house, record);
  // What a dead owner left may just be ending.
  await owners.settled(record.id);
  const { processCount, transcriptId = record.id } = record.state;
  if (processCount === 0) return;
  const open = await runtime.openIn(record.principal, transcriptId, options);
  // It can be our own, which another prompt has started meanwhile.
  const now = open && (await backend.rows.get(record.id));
  if (open && now?.state.process.phase === "none") refuseOpen(record.id, open);
}

export async function mayPrompt(...about: Parameters<typeof checkPrompt>): Promise<boolean> {
  return checkPrompt(...about).then(
    () => true,
    () => false,
  );
}

/** A session that would go on under another configuration or another's money is not resumed unseen. */
export async function checkIdentity({ runtime }: Pick<House, "runtime">, record: SessionRecord): Promise<void> {
  const { id: sessionId, principal, spec, state } = record;
  const { identity: before } = state;
  if (!before || state.process.phase !== "none") return;
  const now = await runtime.identify(principal, spec);
  if (now.configFolder === before.configFolder && now.paidBy === before.paidBy) return;
  const problem = `The session ran with the configuration in ${before.configFolder}, paid by ${before.paidBy}`;
  const present = `this server would use ${now.configFolder}, paid by ${now.paidBy}`;
  const advice = "Reply through a server with the same environment, or start a new session.";
  throw new AppError("PERMISSION_DENIED", `${problem}; ${present}. ${advice}`, { sessionId });
}
