import { randomUUID } from "node:crypto";
import { AppError, invalidArgument, sessionNotFound } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { TRAITS } from "../../domain/options/traits.ts";
import type { Place } from "../../domain/place.ts";
import type { Principal } from "../../domain/principal.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import type { Verify } from "../../domain/verification.ts";
import type { Identity } from "../../domain/process.ts";
import { hasSpoken, initialState, optionsOf, type SessionState, SessionStatus } from "../../domain/session.ts";
import type { AdoptRequest, PromptRequest } from "../api.ts";
import type { Placement } from "../placement.ts";
import { policyFor, type Operator, type ServerTerms } from "../policy/operator.ts";
import {
  type AgentRuntime,
  type Clock,
  type OpenIn,
  type SessionBackend,
  type SessionRecord,
  ConflictError,
  requireReadable,
} from "../ports.ts";
import { checkSameProfile, withProfile, withProfileRules } from "./profile.ts";

/** Creates, renames and deletes the rows of sessions: new, copied from another, or adopted from a transcript on disk. */

export interface Beginning {
  /** Id of the adopted session; `undefined` for a session with a new id. */
  readonly goesOnWith?: string;
  readonly spec: SessionOptions;
  /** State taken from the session to fork or adopt. */
  readonly inherited: Partial<Pick<SessionState, "origin" | "reportedCostUsd" | "savedCostUsd">>;
  /** Policy of the session to fork or adopt. */
  readonly policy?: SessionPolicy | undefined;
  /** Place of the session to fork. */
  readonly place?: Place | undefined;
}

/** A session that has passed all checks and can be created. */
export interface PlannedSession extends Pick<Beginning, "inherited" | "place" | "spec"> {
  readonly id: string;
  /** `undefined` for a session on another machine, whose server finds out. */
  readonly identity: Identity | undefined;
  readonly policy: SessionPolicy;
  /** Sentences on defaults of the operator that do not apply. */
  readonly unused: readonly string[];
}

export interface SessionDefaults {
  /** Returns the operator's default verification of sessions that begin in a folder. Default: none. */
  readonly defaultVerify?: (cwd: string) => Promise<Verify | undefined>;
}

interface Planning extends Operator, SessionDefaults, Pick<ServerTerms, "profilesOf"> {
  readonly runtime: AgentRuntime;
}

/** Plans a session for the node that will run it. Throws if the session cannot be started. */
export async function planSession(
  { placement, ...dependencies }: Planning & { readonly placement: Placement },
  principal: Principal,
  beginning: Beginning,
): Promise<PlannedSession> {
  const { goesOnWith, inherited, spec } = beginning;
  const place = beginning.place ?? (await placement.placeOf(spec));
  const away = await placement.whyAway(place);
  if (away === undefined) return { ...(await planHere(dependencies, principal, beginning)), place };
  if ((await placement.whereabouts(place)) === "nowhere") throw new AppError("SESSION_BUSY", away);
  const isOnDisk = goesOnWith !== undefined || (inherited.origin !== undefined && !beginning.place);
  if (isOnDisk) throw invalidArgument("sessionId", `is a session on the disk of this node. ${away}`);
  const policy = planPolicy(dependencies, principal, beginning);
  return { id: randomUUID(), spec, inherited, place, policy, identity: undefined, unused: [] };
}

function planPolicy(dependencies: Planning, principal: Principal, { policy, spec }: Beginning): SessionPolicy {
  return withProfileRules(dependencies, { principal, spec }, policyFor(dependencies, { principal, policy }));
}

/** Completes a session that another machine has created for this one, if it can be started; otherwise its prompt is refused. */
export async function completePlan(
  dependencies: Planning & { readonly backend: SessionBackend },
  record: SessionRecord,
): Promise<SessionRecord> {
  const { id, place, policy, principal, rev, state } = record;
  if (!place || state.identity || state.lastEventId > 0) return record;
  const inherited = state.origin ? { origin: state.origin } : {};
  const plan = planHere(dependencies, principal, { spec: record.spec, inherited, policy });
  const { identity, spec } = await plan.catch(() => ({ identity: undefined, spec: record.spec }));
  if (!identity) return record;
  if (spec.verify !== record.spec.verify) await dependencies.backend.rows.update(id, rev, { spec });
  return { ...record, spec, state: { ...state, identity } };
}

/** Asks the runtime for a plan, and adds the operator's default verification. */
async function planHere(
  dependencies: Planning,
  principal: Principal,
  beginning: Beginning,
): Promise<Omit<PlannedSession, "place">> {
  const { goesOnWith, inherited, spec } = beginning;
  const policy = planPolicy(dependencies, principal, beginning);
  const isNew = inherited.origin === undefined;
  const { environmentId, runtime } = dependencies;
  const plan = await runtime.plan({ principal, options: spec, policy, environmentId, isNew, goesOnWith });
  if (goesOnWith !== undefined && plan.openIn) refuseOpen(goesOnWith, plan.openIn);
  const id = goesOnWith ?? plan.spareId ?? randomUUID();
  const verify = spec.verify ?? (await dependencies.defaultVerify?.(spec.cwd));
  // With the option, the start of a session in the sandbox would be refused.
  const isUnused = verify !== undefined && spec.verify === undefined && policy.sandbox === "required";
  const verified = { ...spec, ...(verify && !isUnused && { verify }) };
  return { id, spec: verified, inherited, policy, identity: plan.identity, unused: isUnused ? [UNVERIFIED] : [] };
}

const UNVERIFIED = `verify: the operator's commands for this folder do not run in this session, because ${TRAITS.verify.sandbox.refused}.`;

export function prepareFork(source: SessionRecord, request: PromptRequest): Beginning {
  const { id, state } = source;
  if (state.closed) {
    throw new AppError("CANCELLED", `The session was ${state.closed.reason} and cannot be forked.`, { sessionId: id });
  }
  if (source.spec.persistSession === false) {
    throw invalidArgument("forkSession", "the session keeps no transcript to copy (persistSession: false).");
  }
  if (state.turn) {
    const advice = "Wait for the end of its turn with claude_code_check (until: end).";
    throw new AppError("SESSION_BUSY", `The session is busy and cannot be forked now. ${advice}`, { sessionId: id });
  }
  const { reportedCostUsd, savedCostUsd, transcriptId = id } = state;
  // Treats a session with an `origin` as not new, because the fork would lose the memory of the origin.
  const isNew = !hasSpoken(state) && state.origin === undefined;
  const origin = {
    transcriptId,
    ...(isNew && { isNew }),
    ...(request.resumeAt !== undefined && { at: request.resumeAt }),
  };
  const spec = optionsOf(source.spec, state);
  const { place, policy } = source;
  return { spec, place, policy, inherited: { origin, reportedCostUsd, savedCostUsd } };
}

export async function prepareAdoption(
  { backend, ...operator }: Planning & { readonly backend: SessionBackend },
  principal: Principal,
  request: AdoptRequest,
): Promise<Beginning> {
  const { fork, prompt, sessionId } = request;
  const options = withProfile(operator, principal, request.options);
  // A session of another principal cannot be reached through its transcript either, nor the caller's own under looser rules.
  const known = await backend.rows.holderOf(sessionId);
  if (known && known.principal !== principal) throw sessionNotFound(sessionId);
  if (known) checkSameProfile(requireReadable(known).spec.profile, options.profile);
  if (known && known.id !== sessionId && !fork) {
    const advice = `Reply to that session, or fork it with forkSession: true`;
    throw invalidArgument("sessionId", `is a transcript of session ${known.id}, split off by /clear. ${advice}.`);
  }
  const { environmentId, runtime } = operator;
  const policy = policyFor(operator, { principal, policy: known?.policy });
  const found = await runtime.find(sessionId, { principal, options, environmentId, policy });
  if (!found) throw sessionNotFound(sessionId);
  const cwd = options.cwd ?? found.cwd;
  if (cwd === undefined) throw invalidArgument("cwd", "is unknown for this session. Give it in diskResumeConfig.");
  const spec = { ...options, cwd };
  const at = prompt.resumeAt === undefined ? {} : { at: prompt.resumeAt };
  const goesOnWith = fork ? {} : { goesOnWith: sessionId };
  return { ...goesOnWith, spec, policy: known?.policy, inherited: { origin: { transcriptId: sessionId, ...at } } };
}

/** Throws SESSION_BUSY, because two processes with one session open do not see each other's turns. */
export function refuseOpen(sessionId: string, { how, pid }: OpenIn): never {
  const advice = "Close it there, or fork it with forkSession: true.";
  const problem = `Session ${sessionId} is open in another Claude Code (process ${String(pid)}, ${how}). ${advice}`;
  throw new AppError("SESSION_BUSY", problem, { sessionId });
}

export interface Created {
  readonly record: SessionRecord;
  /** False if a retry has found the session of the first try. */
  readonly created: boolean;
}

/** Creates the row of the session; idempotent by `idempotencyKey`. */
export async function createSession(
  { backend, clock }: { backend: SessionBackend; clock: Clock },
  principal: Principal,
  { id, identity, inherited, place, policy, spec }: PlannedSession,
  idempotencyKey: string | undefined,
): Promise<Created> {
  const at = clock.now();
  const state = { ...initialState(at), ...(identity && { identity }), ...inherited };
  const key = idempotencyKey === undefined ? {} : { idempotencyKey };
  return backend.rows.create({ id, principal, spec, policy, state, at, ...key, ...(place && { place }) });
}

/** Maximum number of attempts to change a row while its owner writes to the row. */
const TRIES = 5;
/** Time limit for the process of a closed session to end, and interval of checks, ms. */
const END_MS = 10_000;
const LOOK_MS = 50;

export async function rename(backend: SessionBackend, get: () => Promise<SessionRecord>, title: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { id, rev } = await get();
    try {
      await backend.rows.update(id, rev, { title });
      return;
    } catch (error) {
      // The owner has written to the row meanwhile.
      if (!(error instanceof ConflictError) || attempt === TRIES) throw error;
    }
  }
}

/** Deletes the session after its process has ended and the owner has released it. */
export async function deleteClosed(
  { backend, clock }: { backend: SessionBackend; clock: Clock },
  sessionId: string,
): Promise<void> {
  const deadline = clock.tick() + END_MS;
  const query = { before: Number.MAX_SAFE_INTEGER, statuses: SessionStatus.options, ids: [sessionId], limit: 1 };
  while ((await backend.maintenance.purge(query)) === 0 && (await backend.rows.get(sessionId))) {
    if (clock.tick() >= deadline) {
      throw new AppError("SESSION_BUSY", "Its process has not ended yet. Try again in a moment.", { sessionId });
    }
    await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
  }
}
