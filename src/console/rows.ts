import { optionsOf, statusOf } from "../domain/session.ts";
import { unreadableText } from "../domain/unreadable.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { Sources } from "./sources.ts";
import type { SessionDetail, SessionRow } from "./wire.ts";

/** Sessions as shown on the page: `buildRow` for lists, `buildDetail` for a single session. */

/** Shortest wait for a slot that `waitingBefore` reports, ms. */
const SHORT_WAIT_MS = 2_000;

type RowSources = Pick<Sources, "engine" | "titles">;

export async function buildRow({ engine, titles }: RowSources, record: SessionRecord): Promise<SessionRow> {
  const { id, createdAt, spec, state, unreadable, updatedAt } = record;
  const { requests, background, closed, lastOutcome, process, queue, reported, totals, turn } = state;
  const { model: requested, permissionMode = "default" } = optionsOf(spec, state);
  const model = reported.model ?? requested;
  const isLong = Date.now() - updatedAt > SHORT_WAIT_MS;
  const waits = process.phase === "starting" && process.waiting === true && isLong;
  const waitingBefore = waits ? await engine.waitingBefore(id) : undefined;
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
    ...(waitingBefore !== undefined && { waitingBefore }),
    ...(closed && { closed: { reason: closed.reason, by: closed.by, at: closed.at } }),
    lastEventId: state.lastEventId,
    ...(unreadable && { unreadable: unreadableText(unreadable) }),
  };
}

export async function buildDetail(sources: RowSources, record: SessionRecord): Promise<SessionDetail> {
  const { spec, state } = record;
  const { maxBudgetUsd, maxTurns } = spec;
  return {
    ...(await buildRow(sources, record)),
    tasks: state.background,
    queue: state.queue.map(({ eventId, held = false, promptId }) => ({ promptId, eventId, held })),
    remembered: (state.remembered ?? []).map(({ at, by, level, rule }) => ({ rule, level, by, at })),
    canRewind: spec.enableFileCheckpointing === true,
    ...(maxTurns !== undefined && { maxTurns }),
    ...(maxBudgetUsd !== undefined && { maxBudgetUsd }),
  };
}
