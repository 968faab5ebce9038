import type { SessionEvent, StoredEvent, TurnEnded } from "../../../src/domain/event.ts";
import type { PermissionRequest } from "../../../src/domain/permission.ts";
import { initialState, type SessionState } from "../../../src/domain/session.ts";
import type { SessionRecord } from "../../../src/engine/ports.ts";
import { TURN_CLOCK, withCaller } from "../sessions/open-request.ts";

/** Constant time of these tests: 2026-01-01. */
export const NOW = Date.UTC(2026, 0, 1);

/** A session whose log a test writes by hand. */
export class FakeSession {
  readonly events: StoredEvent[] = [];
  state: SessionState = initialState(NOW);
  /** Smallest id in the log; earlier events are gone. */
  trimmedBefore = 1;
  updatedAt = NOW + 1_000;
  title: string | undefined = undefined;

  readonly id: string;
  readonly spec: SessionRecord["spec"];
  readonly #engine: { wake(): void };

  constructor(id: string, engine: { wake(): void }, spec: SessionRecord["spec"] = { cwd: "/home/me" }) {
    this.id = id;
    this.spec = spec;
    this.#engine = engine;
  }

  record(): SessionRecord {
    const { id, spec, state, title, updatedAt } = this;
    const times = { createdAt: NOW, updatedAt };
    return {
      id,
      principal: "local",
      spec,
      policy: undefined,
      state: structuredClone(state),
      title,
      rev: 1,
      owner: undefined,
      ...times,
    };
  }

  emit(event: SessionEvent): number {
    const id = this.events.length + 1;
    this.events.push({ ...event, id, at: NOW + id });
    this.state.lastEventId = id;
    this.#engine.wake();
    return id;
  }

  startTurn(): void {
    this.state.turn = { ...TURN };
    this.emit({ type: "turn.started", data: { turnId: "t1", origin: "prompt", promptIds: ["t1"] } });
  }

  emitText(text: string): number {
    const message = { type: "assistant", message: { content: [{ type: "text", text }] }, parent_tool_use_id: null };
    return this.emit({ type: "message", data: { message } });
  }

  openRequest(request: Partial<PermissionRequest> = {}): number {
    const whole: PermissionRequest = {
      requestId: "r1",
      kind: "permission",
      toolName: "Bash",
      input: { command: "npm test" },
      toolUseId: "u1",
      ...request,
    };
    const { requestId, kind, toolName } = whole;
    const eventId = this.state.lastEventId + 1;
    const times = withCaller(NOW, NOW + 1_800_000);
    this.state.requests.push({ requestId, kind, eventId, toolName, seenWhole: false, ...times });
    return this.emit({ type: kind === "question" ? "question.asked" : "permission.asked", data: whole });
  }

  /** Emits Claude Code's result, then the end of the turn. */
  finishTurn(text: string, ended: Partial<TurnEnded> = {}): number {
    const message = { type: "result", result: text, stop_reason: "end_turn", usage: { output_tokens: 20 } };
    const resultEventId = this.emit({ type: "message", data: { message } });
    return this.endTurn({ resultEventId, ...ended });
  }

  endTurn(ended: Partial<TurnEnded> = {}): number {
    const data = { ...ENDED, ...ended };
    this.state.turn = null;
    this.state.requests = [];
    this.state.lastOutcome = data.outcome;
    this.state.lastTurnEventId = this.state.lastEventId + 1;
    return this.emit({ type: "turn.ended", data });
  }
}

export const TURN = {
  id: "t1",
  origin: "prompt" as const,
  startedAt: NOW,
  clock: TURN_CLOCK,
  awaiting: ["t1"],
  pending: false,
  rerun: false,
  durationApiMs: 0,
  numTurns: 0,
  costUsd: 0,
};

export const ENDED: TurnEnded = {
  turnId: "t1",
  outcome: "done",
  isError: false,
  durationMs: 1_200,
  durationApiMs: 800,
  numTurns: 2,
  costUsd: 0.01,
  sessionTurns: 4,
  sessionCostUsd: 0.02,
};
