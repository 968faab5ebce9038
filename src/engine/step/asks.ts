import type { Delivered } from "../../domain/command.ts";
import type { AnsweredBy, Ask, OpenAsk } from "../../domain/permission.ts";
import { emit, type Draft } from "./draft.ts";
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
  const { state, policy, at } = draft;
  const eventId = emit(draft, { type: ask.kind === "question" ? "question.asked" : "permission.asked", data: ask });
  const opened: OpenAsk = {
    requestId: ask.requestId,
    kind: ask.kind,
    eventId,
    toolName: ask.toolName,
    createdAt: at,
    expiresAt: at + (chosenMs(draft) ?? policy.askUnseenMs),
    seenWhole: false,
  };
  state.asks.push(opened);
  const ruling = ruleFor(draft, ask);
  if (ruling) return settleByRule(draft, opened, ruling);
  if (state.turn) state.turn.waitingSince ??= at;
}

function settleByRule(draft: Draft, ask: OpenAsk, { decision, rule }: Ruling): void {
  settleAsk(draft, ask, { ...decision, by: "rule", rule });
  draft.effects.push({ type: "answer", requestId: ask.requestId, decision });
}

/** What the caller chose for the prompt, or else for the session. */
function chosenMs({ policy, state }: Draft): number | undefined {
  return state.turn?.prompt?.limits?.askMs ?? policy.askMs;
}

/** The one way out of `asks`, so that log and state cannot disagree about what is open. */
export function settleAsk(draft: Draft, ask: OpenAsk, answer: Answer, commandId?: string): void {
  const { state, at } = draft;
  const { requestId, toolName } = ask;
  emit(draft, {
    type: ask.kind === "question" ? "question.answered" : "permission.answered",
    data: { requestId, toolName, ...answer },
  });
  state.asks = state.asks.filter((open) => open.requestId !== requestId);
  const kept = { requestId, by: answer.by, behavior: answer.behavior, ...(commandId !== undefined && { commandId }) };
  state.answered = [...state.answered, kept].slice(-ANSWERED_KEPT);
  if (state.turn?.waitingSince !== undefined && state.asks.length === 0) {
    state.turn.waitedMs += at - state.turn.waitingSince;
    delete state.turn.waitingSince;
    state.turn.lastActivityAt = at;
  }
}

export function settleAllAsks(draft: Draft, by: AnsweredBy): void {
  for (const ask of draft.state.asks) settleAsk(draft, ask, { behavior: "deny", by });
}

/** Shown to someone who can answer: unless the caller chose the time, it runs from here, within the operator's cap. */
export function markDelivered(draft: Draft, { requestId, whole, page }: Delivered): void {
  const { at, policy, state } = draft;
  const ask = state.asks.find((open) => open.requestId === requestId);
  if (!ask) return;
  if (page && page.from <= (ask.seenTo ?? 0)) ask.seenTo = Math.max(ask.seenTo ?? 0, page.to);
  ask.seenWhole ||= whole || (page !== undefined && (ask.seenTo ?? 0) >= page.of);
  if (ask.deliveredAt !== undefined) return;
  ask.deliveredAt = at;
  if (chosenMs(draft) === undefined)
    ask.expiresAt = Math.min(at + policy.askDeliveredMs, ask.createdAt + policy.askMaxMs);
}
