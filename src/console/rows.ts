import type { PlanLimit } from "../domain/plan.ts";
import { optionsOf, statusOf, waitingOf } from "../domain/session.ts";
import { placeText } from "../domain/place.ts";
import { unreadableText } from "../domain/unreadable.ts";
import { ownerName } from "../engine/nodes.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { Sources } from "./sources.ts";
import type { SessionDetail, SessionRow } from "./wire.ts";

/** Sessions as shown on the page: `buildRow` for lists, `buildDetail` for a single session. */

/** Shortest wait for a slot that `waitingBefore` reports, ms. */
const SHORT_WAIT_MS = 2_000;

type RowSources = Pick<Sources, "engine" | "titles">;

export async function buildRow({ engine, titles }: RowSources, record: SessionRecord): Promise<SessionRow> {
  const { id, createdAt, spec, state, unreadable, updatedAt } = record;
  const { requests, background, closed, lastOutcome, queue, reported, totals, turn } = state;
  const { model: requested, permissionMode = "default" } = optionsOf(spec, state);
  const model = reported.model ?? requested;
  const waiting = await waitOf(engine, record);
  return {
    id,
    status: statusOf(state),
    title: await titles.findTitle(record),
    cwd: spec.cwd,
    ...(model !== undefined && { model }),
    permissionMode: reported.permissionMode ?? permissionMode,
    createdAt,
    updatedAt,
    turns: totals.turns,
    costUsd: totals.costUsd,
    ...(turn && { turnStartedAt: turn.startedAt }),
    ...(lastOutcome && { lastOutcome }),
    waitsFor: [...new Set(requests.map(({ approver }) => approver))],
    requests: requests.length,
    queued: queue.length,
    held: queue.filter(({ held }) => held).length,
    background: background.length,
    ...(waiting && { waiting }),
    ...(closed && { closed: { reason: closed.reason, by: closed.by, at: closed.at } }),
    lastEventId: state.lastEventId,
    ...(unreadable && { unreadable: unreadableText(unreadable) }),
  };
}

/** Leaves out a short wait for a slot, which would only flicker. */
async function waitOf(engine: RowSources["engine"], record: SessionRecord): Promise<SessionRow["waiting"]> {
  const waiting = waitingOf(record.state);
  if (waiting?.kind !== "slot") return waiting;
  if (Date.now() - record.updatedAt <= SHORT_WAIT_MS) return undefined;
  const ahead = await engine.waitingBefore(record.id);
  return ahead === undefined ? undefined : { ...waiting, ahead };
}

export async function buildDetail(sources: RowSources, record: SessionRecord): Promise<SessionDetail> {
  const { place, spec, state } = record;
  const node = ownerName(record);
  const { maxBudgetUsd, maxTurns, onLimit, priority, profile } = spec;
  const { closed, refused, turn } = state;
  return {
    ...(await buildRow(sources, record)),
    tasks: state.background,
    queue: state.queue.map(({ eventId, held = false, promptId }) => ({ promptId, eventId, held })),
    remembered: (state.remembered ?? []).map(({ at, by, level, rule }) => ({ rule, level, by, at })),
    canRewind: spec.enableFileCheckpointing === true,
    ...(maxTurns !== undefined && { maxTurns }),
    ...(maxBudgetUsd !== undefined && { maxBudgetUsd }),
    ...(onLimit && { onLimit }),
    ...(priority && { priority }),
    ...(profile !== undefined && { profile }),
    ...(node !== undefined && { node }),
    ...(place && { place: placeText(place) }),
    ...(refused && !turn && !closed && { refused: limitOf(refused) }),
  };
}

function limitOf({ resetsAt, window }: PlanLimit): PlanLimit {
  return { window, ...(resetsAt !== undefined && { resetsAt }) };
}
