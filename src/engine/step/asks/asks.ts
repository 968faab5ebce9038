import type { CommandOf, Delivered } from "../../../domain/command.ts";
import { CALLER, USER, type Passed } from "../../../domain/approvals/rung.ts";
import { rungOf, type AnsweredBy, type Ask, type OpenAsk } from "../../../domain/permission.ts";
import { emit, type Draft } from "../draft.ts";
import { clockOf } from "../time.ts";
import { endWithin, giveTo, nextRung, nobodyFor, passOn, setTimes } from "./ladder.ts";
import { ruleFor, type Ruling } from "./ruling.ts";

const ANSWERED_KEPT = 20;

export interface Answer {
  behavior: "allow" | "deny";
  by: AnsweredBy;
  message?: string;
  forSession?: boolean;
  rule?: string;
  remembered?: string[];
}

/** Something is asked: it is in the log, the state holds its deadline. */
export function openAsk(draft: Draft, ask: Ask): void {
  const { state, at } = draft;
  const eventId = emit(draft, { type: ask.kind === "question" ? "question.asked" : "permission.asked", data: ask });
  const open: OpenAsk = {
    requestId: ask.requestId,
    kind: ask.kind,
    eventId,
    toolName: ask.toolName,
    createdAt: at,
    clock: { ageMs: 0, leftMs: 0, rungMs: 0, rungLeftMs: 0 },
    expiresAt: at,
    ...(ask.risk && { risk: ask.risk.level }),
    seenWhole: false,
  };
  state.asks.push(open);
  if (ask.refused !== undefined) return denyAsk(draft, open, "rule", ask.refused);
  const ruling = ruleFor(draft, ask);
  if (ruling) return settleByRule(draft, open, ruling);
  const rung = nextRung(draft, open);
  if (rung === undefined) denyAsk(draft, open, "rule", nobodyFor(draft, open));
  else giveTo(draft, open, rung);
}

function settleByRule(draft: Draft, ask: OpenAsk, { decision, rule }: Ruling): void {
  settleAsk(draft, ask, { ...decision, by: "rule", rule });
  draft.effects.push({ type: "answer", requestId: ask.requestId, decision });
}

/** Nobody will answer it: Claude Code is told why. */
export function denyAsk(draft: Draft, ask: OpenAsk, by: AnsweredBy, message: string): void {
  settleAsk(draft, ask, { behavior: "deny", by, message });
  draft.effects.push({ type: "answer", requestId: ask.requestId, decision: { behavior: "deny", message } });
}

/** Whom the request is with does not answer it. One that was shown to him is his, whoever else cannot show it. */
export function giveUp(draft: Draft, { from, requestId, why }: CommandOf<"pass">["data"]): void {
  const ask = draft.state.asks.find((open) => open.requestId === requestId);
  if (!ask || rungOf(ask) !== from || (why === "unreachable" && ask.deliveredAt !== undefined)) return;
  if (why !== "unattended") return moveOn(draft, ask, why);
  // The client has nobody who reads forms: until the next prompt none is shown.
  draft.state.noDialog = true;
  for (const open of draft.state.asks.filter((each) => rungOf(each) === from)) moveOn(draft, open, why);
}

function moveOn(draft: Draft, ask: OpenAsk, why: Passed): void {
  if (ask.denial !== undefined) denyAsk(draft, ask, USER, ask.denial);
  else if (!passOn(draft, ask, why)) denyAsk(draft, ask, "rule", nobodyFor(draft, ask));
}

/** So long a person who has denied a request is waited for, to say why. */
const REASON_MS = 120_000;

/** The first of two forms is filled in. A denial stands from here: it does not go on to whoever could allow it. */
export function fillAsk(draft: Draft, { denial, filled, from, requestId }: CommandOf<"fill">["data"]): void {
  const ask = draft.state.asks.find((open) => open.requestId === requestId);
  if (!ask || rungOf(ask) !== from || ask.denial !== undefined) return;
  ask.filled = filled;
  if (denial === undefined) return;
  ask.denial = denial;
  endWithin(draft, ask, REASON_MS);
}

/** The one way out of `asks`, so that log and state cannot disagree about what is open. */
export function settleAsk(draft: Draft, ask: OpenAsk, answer: Answer, commandId?: string): void {
  const { state } = draft;
  const { requestId, toolName } = ask;
  emit(draft, {
    type: ask.kind === "question" ? "question.answered" : "permission.answered",
    data: { requestId, toolName, ...answer },
  });
  state.asks = state.asks.filter((open) => open.requestId !== requestId);
  const kept = { requestId, by: answer.by, behavior: answer.behavior, ...(commandId !== undefined && { commandId }) };
  state.answered = [...state.answered, kept].slice(-ANSWERED_KEPT);
  if (state.turn && state.asks.length === 0) clockOf(state.turn).silentMs = 0;
}

export function settleAllAsks(draft: Draft, by: AnsweredBy): void {
  for (const ask of draft.state.asks) settleAsk(draft, ask, { behavior: "deny", by });
}

/** Shown to whom it is with: unless the caller chose the time, it runs from here, within the operator's cap. */
export function markDelivered(draft: Draft, { requestId, whole, page, rung = CALLER }: Delivered): void {
  const { at, state } = draft;
  const ask = state.asks.find((open) => open.requestId === requestId);
  if (!ask) return;
  if (page && page.from <= (ask.seenTo ?? 0)) ask.seenTo = Math.max(ask.seenTo ?? 0, page.to);
  ask.seenWhole ||= whole || (page !== undefined && (ask.seenTo ?? 0) >= page.of);
  if (ask.deliveredAt !== undefined || rungOf(ask) !== rung) return;
  ask.deliveredAt = at;
  setTimes(draft, ask);
}
