import { rungOf } from "../domain/permission.ts";
import { optionsOf, statusOf } from "../domain/session.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { SessionDetail, SessionRow } from "./wire.ts";

/** A session as the page shows it: in a list, and alone. */

interface Beside {
  readonly title: string;
  readonly waitingBefore: number | undefined;
}

export function rowOf(record: SessionRecord, { title, waitingBefore }: Beside): SessionRow {
  const { id, createdAt, spec, state, updatedAt } = record;
  const { asks, background, closed, lastOutcome, queue, reported, totals, turn } = state;
  const { model: requested, permissionMode = "default" } = optionsOf(spec, state);
  const model = reported.model ?? requested;
  return {
    id,
    status: statusOf(state),
    title,
    cwd: spec.cwd,
    ...(model !== undefined && { model }),
    permissionMode: reported.permissionMode ?? permissionMode,
    createdAt,
    updatedAt,
    turns: totals.turns,
    costUsd: totals.costUsd,
    ...(turn && { turnStartedAt: turn.startedAt }),
    ...(lastOutcome && { lastOutcome }),
    waitsFor: [...new Set(asks.map(rungOf))],
    requests: asks.length,
    queued: queue.length,
    held: queue.filter(({ held }) => held).length,
    background: background.length,
    ...(waitingBefore !== undefined && { waitingBefore }),
    ...(closed && { closed: { reason: closed.reason, by: closed.by, at: closed.at } }),
    lastEventId: state.lastEventId,
  };
}

export function detailOf(record: SessionRecord, beside: Beside): SessionDetail {
  const { spec, state } = record;
  const { maxBudgetUsd, maxTurns } = spec;
  return {
    ...rowOf(record, beside),
    tasks: state.background,
    queue: state.queue.map(({ eventId, held = false, promptId }) => ({ promptId, eventId, held })),
    remembered: (state.remembered ?? []).map(({ at, by, level, rule }) => ({ rule, level, by, at })),
    canRewind: spec.enableFileCheckpointing === true,
    ...(maxTurns !== undefined && { maxTurns }),
    ...(maxBudgetUsd !== undefined && { maxBudgetUsd }),
  };
}
