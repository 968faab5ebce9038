import { accountKey, budgetKey, endOfDay, localDay, windowsIn } from "../../domain/ledger.ts";
import { type Account, mergeReport } from "../../domain/plan.ts";
import type { Principal } from "../../domain/principal.ts";
import type { QueuedPrompt } from "../../domain/running-turn.ts";
import { AppError } from "../../domain/error.ts";
import { initialState, optionsOf, type SessionState } from "../../domain/session.ts";
import type { ActorContext, ActorSession } from "../actor-context.ts";
import type { AgentSignal } from "../ports.ts";
import { messageOf } from "../ports/store.ts";
import { type Arrival, type Known, NOTHING_KNOWN } from "../step.ts";
import type { ServerTerms } from "../policy/operator.ts";
import { UNLIMITED_USE, type Policy } from "../policy/policy.ts";
import { LedgerDraft } from "../step/ledger-draft.ts";
import { limitRefusal, startLimit } from "../step/limits.ts";
import { mayHoldBack } from "../step/waits.ts";
import { findEnvironment } from "./environment.ts";
import { createSession, type Created, deleteClosed, type PlannedSession } from "./records.ts";

/** Reads what the next step of a session may need of the ledger and of its node, and stores what its process reports of the plan. */

interface Session extends Pick<ActorSession, "principal" | "spec"> {
  readonly policy: Pick<Policy, "use">;
}

type PlanSignal = Extract<AgentSignal, { type: "plan" }>;

/** Stores reports in `batch`, so that a step of any session of the account counts with them. */
export async function storeReports({ backend, clock, log }: ActorContext, batch: readonly Arrival[]): Promise<void> {
  for (const arrival of batch) {
    if (arrival.type !== "signal" || arrival.signal.type !== "plan") continue;
    await storeReport(backend.ledger, arrival.signal, clock.now()).catch((error: unknown) =>
      log.warn("a report on the plan was not stored", { error: messageOf(error) }),
    );
  }
}

async function storeReport(
  ledger: ActorContext["backend"]["ledger"],
  { account, report }: Pick<PlanSignal, "account" | "report">,
  at: number,
): Promise<void> {
  if (report.windows.length === 0) return;
  await ledger.update(accountKey(account.id), (value) => mergeReport(windowsIn(value), account, { report, at }));
}

interface Moment {
  readonly state: SessionState;
  /** Environment records of clients whose prompt may start a process, the most likely first. */
  readonly wanted: readonly string[];
}

type Place = Pick<ActorContext, "backend" | "clock" | "runtime">;

/** Returns the entries for a step of `batch`. Reads none for messages of a running turn that are no tool calls, to save time. */
export async function readKnown(
  place: Place & Pick<ActorContext, "placement">,
  session: Session & Pick<ActorSession, "place">,
  state: SessionState,
  batch: readonly Arrival[],
): Promise<Known> {
  if (state.turn && batch.every(decidesNothing)) return NOTHING_KNOWN;
  const away = await place.placement.whyAway(session.place);
  const known = await readEntries(place, session, { state, wanted: wantedIn(batch, state) });
  return away === undefined ? known : { ...known, away };
}

/** True for a sign of life, and for a message at which no turn starts, stops or ends. */
function decidesNothing(arrival: Arrival): boolean {
  if (arrival.type !== "signal") return false;
  const { signal } = arrival;
  return signal.type === "alive" || (signal.type === "message" && signal.toolUseId === undefined);
}

/** Returns the entries of the session's account, if a reserve or a wait asks for it, and of its budgets. */
async function readEntries(place: Place, session: Session, { state, wanted }: Moment): Promise<Known> {
  const { backend, clock } = place;
  const { budgets, reserve } = session.policy.use;
  const reserved = state.turn?.reserved ?? [];
  const asksForPlan = reserve !== undefined || state.waiting !== undefined;
  if (!asksForPlan && budgets.length === 0 && reserved.length === 0) return NOTHING_KNOWN;
  const now = clock.now();
  const day = localDay(now);
  const accountId = asksForPlan ? await accountIdOf(place.runtime, session, { state, wanted }) : undefined;
  const keys = [
    ...budgets.map((budget) => budgetKey(budget, day)),
    ...reserved.map(({ key }) => key),
    ...(accountId === undefined ? [] : [accountKey(accountId)]),
  ];
  const entries = await backend.ledger.read([...new Set(keys)]);
  return { accountId, day, dayEndsAt: endOfDay(now), entries };
}

/** Returns the environment records that prompts in `batch` and in the queue name. */
function wantedIn(batch: readonly Arrival[], { process, queue, senders }: SessionState): string[] {
  if (process.phase !== "none") return [];
  const given = batch.flatMap((arrival) =>
    arrival.type === "command" && "environmentId" in arrival.command.data
      ? (arrival.command.data.environmentId ?? [])
      : [],
  );
  const queued = queue.flatMap(({ sender = "" }) => senders?.[sender]?.environmentId ?? []);
  return [...given.slice(-1), ...queued.slice(0, 1)];
}

/** Returns the account of the session's process, as its reports have named it, or of the process that a prompt would start. */
async function accountIdOf(
  { environments }: Place["runtime"],
  { principal, spec }: Session,
  { state, wanted }: Moment,
): Promise<Account["id"] | undefined> {
  const { process } = state;
  if (process.phase === "live" && process.accountId !== undefined) return process.accountId;
  const environmentId = findEnvironment(environments, { principal, spec, state }, ...wanted);
  if (environmentId === undefined) return undefined;
  return (await environments.accountOf(environmentId, principal, optionsOf(spec, state)))?.id;
}

interface NewPrompt extends Pick<QueuedPrompt, "limits"> {
  readonly idempotencyKey?: string;
}

type NewSession = PlannedSession & { readonly principal: Principal };
type Owner = Place & ServerTerms & { readonly environmentId: string };

/**
 * Creates a session as `createSession` does. Throws SESSION_BUSY if a limit of the operator would keep its first turn from
 * starting, but finds the session of a retry.
 */
export async function createWithinLimits(place: Owner, session: NewSession, prompt: NewPrompt): Promise<Created> {
  const { idempotencyKey } = prompt;
  const refusal = await firstTurnRefusal(place, session, prompt);
  if (refusal && idempotencyKey === undefined) throw refusal;
  const found = await createSession(place, session.principal, session, idempotencyKey);
  if (!refusal || !found.created) return found;
  await deleteClosed(place, found.record.id);
  throw refusal;
}

/**
 * Deletes a new session again if its prompt is refused: others have reached a limit of the operator meanwhile, or another machine
 * cannot start the session.
 */
export async function deleteIfRefused(
  place: Pick<Place, "backend" | "clock">,
  { id, identity }: Pick<PlannedSession, "id" | "identity">,
  sent: Promise<unknown>,
): Promise<void> {
  try {
    await sent;
  } catch (error) {
    const isRefused = error instanceof AppError && (error.code === "SESSION_BUSY" || !identity);
    const isEmpty = isRefused && (await place.backend.rows.get(id))?.state.lastEventId === 0;
    if (isEmpty) await deleteClosed(place, id);
    throw error;
  }
}

async function firstTurnRefusal(
  { environmentId, useOf, ...place }: Owner,
  { identity, inherited, principal, spec }: NewSession,
  prompt: NewPrompt,
): Promise<AppError | undefined> {
  // The owner on the other machine knows account and budgets, and refuses the prompt itself.
  if (!identity) return undefined;
  const at = place.clock.now();
  const use = useOf?.({ principal, spec }) ?? UNLIMITED_USE;
  const state = { ...initialState(at), identity, ...inherited };
  const session = { principal, spec, policy: { use } };
  const known = await readEntries(place, session, { state, wanted: [environmentId] });
  const policy = { use, onLimit: spec.onLimit };
  const limit = startLimit({ at, policy, ledger: new LedgerDraft(known) });
  if (!limit || mayHoldBack({ at, policy }, prompt, limit)) return undefined;
  const { code, message } = limitRefusal(limit);
  return new AppError(code, message);
}
