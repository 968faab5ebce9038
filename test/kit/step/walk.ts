import assert from "node:assert/strict";
import type { Command, CommandKind, CommandOf } from "../../../src/domain/command.ts";
import type { SessionPolicy } from "../../../src/domain/approvals/session-policy.ts";
import type { SessionEvent, StoredEvent } from "../../../src/domain/event.ts";
import type { PermissionRequest } from "../../../src/domain/permission.ts";
import type { ShimRef } from "../../../src/domain/process.ts";
import { initialState, type SessionState, type SessionStatus, statusOf } from "../../../src/domain/session.ts";
import type { AgentResult } from "../../../src/domain/turn.ts";
import { UNLIMITED_USE, type Policy } from "../../../src/engine/policy/policy.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import type { Account } from "../../../src/domain/plan.ts";
import type { AgentSignal, LedgerEntry } from "../../../src/engine/ports.ts";
import type { Known } from "../../../src/engine/step/ledger-draft.ts";
import { type Effect, type Happening, type Input, nextDeadline, type Step, step } from "../../../src/engine/step.ts";
import { deepFreeze, findFaults } from "./invariants.ts";

/** A walk through `step`: each input meets a state that has been through JSON, and every step is checked. */

export const T0 = 1_800_000_000_000;
export const SECOND = 1000;

/** Policy of a session at its start. */
export const BEGUN_POLICY: SessionPolicy = {
  rules: { allow: [], ask: [], deny: [] },
  home: "/home/ann",
  callerApproves: "all",
  allowsBypass: false,
  sandbox: "off",
  sandboxDomains: [],
  mayNest: false,
  approvalChain: ["user", "caller"],
  approverTimeoutMs: { user: 300 * SECOND, console: 600 * SECOND, webhook: 600 * SECOND },
  limits: {
    requestDeliveredMs: 60 * SECOND,
    requestMaxMs: 1800 * SECOND,
    requestUnseenMs: 1800 * SECOND,
    turnMaxMs: 3600 * SECOND,
    inactivityMs: 600 * SECOND,
    idleProcessMs: 900 * SECOND,
    stopGraceMs: 5 * SECOND,
  },
  places: [],
  unattended: { requests: "wait", maxUsd: 10 },
};

export const POLICY: Policy = {
  begun: BEGUN_POLICY,
  here: BEGUN_POLICY,
  onLost: "report",
  approvalChain: BEGUN_POLICY.approvalChain,
  approverTimeoutMs: BEGUN_POLICY.approverTimeoutMs,
  requestTimeoutMs: undefined,
  turnMs: undefined,
  budgetUsd: 100,
  ephemeral: false,
  ...BEGUN_POLICY.limits,
  initMs: 10 * SECOND,
  unattended: undefined,
  rules: { allow: [], ask: [], deny: [], home: "/home/ann" },
  callerApproves: "all",
  sessionApproves: "all",
  cwd: "/project",
  verify: undefined,
  receipts: false,
  onLimit: undefined,
  priority: "normal",
  profile: undefined,
  use: UNLIMITED_USE,
};

export const RESULT: AgentResult = {
  text: "Done.",
  isError: false,
  subtype: "success",
  terminalReason: "completed",
  promptIds: [],
  numTurns: 1,
  durationMs: 900,
  durationApiMs: 500,
  costUsdTotal: 0,
};

export const ABORTED = { isError: true, subtype: "error_during_execution", terminalReason: "aborted_streaming" };
export const API_ERROR = {
  isError: true,
  subtype: "success",
  terminalReason: "api_error",
  category: "access",
} as const;
export const AGENT_TASK = { id: "t1", type: "local_agent", description: "look around" };
export const SHELL_TASK = { id: "t2", type: "local_bash", description: "npm run watch" };

export function requestOf(requestId: string, over: Partial<PermissionRequest> = {}): PermissionRequest {
  const toolUseId = `toolu_${requestId}`;
  return { requestId, kind: "permission", toolName: "Bash", input: { command: "make" }, toolUseId, ...over };
}

export function resultSignal(over: Partial<AgentResult> = {}): AgentSignal {
  const result = { ...RESULT, ...over };
  return { type: "result", result, message: { type: "result", subtype: result.subtype, result: result.text } };
}

export const SHIM: ShimRef = {
  address: "/run/d.1.shim",
  pid: 4710,
  startedAt: "76",
  daemon: "d",
  sdk: "0.3.0",
  keepMs: 300_000,
};

/** Account of every session. */
export const ACCOUNT: Account = {
  id: "account:ann",
  paidBy: "the Claude login of the configuration folder",
  configFolder: "/home/ann/.claude",
  hasWindows: true,
};

/** An input with its time by the system clock. */
export type Moment = Happening & { at: number };

/** Adds the elapsed time for `step`: the owner has been awake since `heardAt`. */
export function withElapsed(heardAt: number, moment: Moment): Input {
  return { ...moment, elapsedMs: Math.max(0, moment.at - heardAt) };
}

export class Walk {
  state: SessionState;
  at = T0;
  /** Time of the last input, from which elapsed time is counted. */
  heardAt = T0;
  /** Offset of the system clock, ms; `at` is without this offset. */
  clockOffsetMs = 0;
  last: Step = { state: initialState(T0), events: [], effects: [], ledger: [] };
  /** Entries of the ledger, which a step changes. */
  ledger: LedgerEntry[] = [];
  readonly log: StoredEvent[] = [];
  readonly policy: Policy;
  #commands = 0;

  constructor(policy: Partial<Policy> = {}, from?: Walk) {
    this.policy = { ...POLICY, ...policy };
    this.state = from?.state ?? initialState(T0);
    this.at = from?.at ?? T0;
    this.heardAt = from?.heardAt ?? T0;
    this.log = [...(from?.log ?? [])];
    this.ledger = [...(from?.ledger ?? [])];
  }

  take(moment: Moment): this {
    const input = { ...withElapsed(this.heardAt, moment), at: moment.at + this.clockOffsetMs };
    this.heardAt = Math.max(this.heardAt, moment.at);
    const before: SessionState = deepFreeze(JSON.parse(JSON.stringify(this.state)));
    this.last = step(before, input, this.policy, this.known);
    assert.deepEqual(findFaults(before, input, this, this.last), [], `invariants that ${input.type} breaks`);
    for (const event of this.last.events) this.log.push({ ...event, id: this.log.length + 1, at: input.at });
    this.state = this.last.state;
    for (const { key, rev, value } of this.last.ledger) if (value) this.enter(key, value, rev + 1);
    return this;
  }

  /** Ledger as an actor reads it before a step. */
  get known(): Known {
    return { accountId: ACCOUNT.id, day: "2026-11-28", dayEndsAt: T0 + 86_400_000, entries: this.ledger };
  }

  enter(key: string, value: JsonObject, rev = 1): this {
    this.ledger = [...this.ledger.filter((entry) => entry.key !== key), { key, value, rev, at: this.at }];
    return this;
  }

  command<K extends CommandKind>(kind: K, data: CommandOf<K>["data"]): this {
    this.#commands += 1;
    return this.take(commandInput(this.at, kind, data, `c${String(this.#commands)}`));
  }

  /** Prompts as a client without forms (`noDialog`), the default of walks. */
  prompt(promptId: string, idempotencyKey?: string): this {
    return this.command("prompt", {
      promptId,
      text: promptId,
      limits: { noDialog: true },
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    });
  }

  promptWith(promptId: string, over: Partial<CommandOf<"prompt">["data"]>): this {
    return this.command("prompt", { promptId, text: promptId, ...over });
  }

  /** Takes signals of the present process. */
  hear(...signals: AgentSignal[]): this {
    for (const signal of signals)
      this.take({ type: "signal", at: this.at, processId: currentProcessId(this.state), signal });
    return this;
  }

  /** Takes the signals of line number `line`; the last signal carries the number. */
  hearLine(line: number, ...signals: AgentSignal[]): this {
    for (const [index, signal] of signals.entries()) {
      const numbered = index === signals.length - 1 && { line };
      this.take({ type: "signal", at: this.at, processId: currentProcessId(this.state), signal, ...numbered });
    }
    return this;
  }

  /** Lets another server take over the session, with permission to start a process that was never started (`mayStart`). */
  recover(): this {
    return this.take({ type: "recovered", at: this.at, mayStart: true });
  }

  tick(): this {
    return this.take({ type: "tick", at: this.at });
  }

  later(seconds: number): this {
    this.at += seconds * SECOND;
    return this;
  }

  /** Lets time pass to just before the next deadline, checks that nothing happens, and takes the deadline. */
  due(): this {
    const due = this.deadline!;
    this.at = due - 1;
    this.tick();
    assert.equal(this.summary, "", "something happened before its time");
    this.at = due;
    return this.tick();
  }

  get deadline(): number | undefined {
    const leftMs = nextDeadline(this.state, this.policy);
    return leftMs === undefined ? undefined : this.heardAt + leftMs;
  }

  get status(): SessionStatus {
    return statusOf(this.state);
  }

  /** Outcome of the last input: events, then effects. */
  get summary(): string {
    return summarizeStep(this.last);
  }

  /** Events so far, in short. */
  get story(): string {
    return this.log.map(summarizeEvent).join(" ");
  }

  get ended() {
    return this.log.flatMap((event) => (event.type === "turn.ended" ? [event.data] : []));
  }
}

export function currentProcessId({ process }: SessionState): string {
  return process.phase === "none" ? "none" : process.id;
}

type MomentOf<T extends Moment["type"]> = Extract<Moment, { type: T }>;

export function commandInput(at: number, kind: CommandKind, data: Command["data"], id = "c"): MomentOf<"command"> {
  // Added as the actor does for an answer with changed input.
  const judged = kind === "answer" && { judgement: { denying: [] } };
  return { type: "command", at, command: { id, principal: "local", kind, data } as Command, ...judged };
}

export function summarizeStep({ events, effects }: Pick<Step, "events" | "effects">): string {
  return [...events.map(summarizeEvent), ...effects.map(summarizeEffect)].join(" ");
}

function summarizeEvent(event: SessionEvent): string {
  const words = detailsOf(event).filter((word) => word !== undefined);
  return words.length === 0 ? event.type : `${event.type}(${words.join(" ")})`;
}

function detailsOf(event: SessionEvent): (string | undefined)[] {
  if (event.type === "turn.started") return [event.data.origin];
  if (event.type === "turn.ended") {
    const { code, errorSubtype, outcome } = event.data;
    return [outcome, errorSubtype === outcome ? undefined : errorSubtype, code];
  }
  if (event.type === "permission.answered" || event.type === "question.answered") {
    return [event.data.behavior, event.data.by];
  }
  if (event.type === "request.passed") return [event.data.from, event.data.to, event.data.why];
  if (event.type === "verification.started") return [`${String(event.data.attempt)}/${String(event.data.of)}`];
  if (event.type === "verification.ended") return [event.data.verification.status];
  if (event.type === "process.exited") return event.data.expected ? ["expected"] : [];
  return event.type === "prompt.dropped" || event.type === "session.closed" ? [event.data.reason] : [];
}

function summarizeEffect(effect: Effect): string {
  if (effect.type === "answer") return `answer:${effect.decision.behavior}`;
  if (effect.type !== "reply") return effect.type;
  return effect.reply.ok ? "ok" : effect.reply.refusal.code;
}
