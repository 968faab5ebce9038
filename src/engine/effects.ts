import { AppError, type Refusal } from "../domain/error.ts";
import { processTagOf } from "../domain/names.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Principal } from "../domain/principal.ts";
import type { SessionPolicy } from "../domain/approvals/session-policy.ts";
import { optionsOf, promptsOf, type SessionState } from "../domain/session.ts";
import type { ProcessLimiter } from "./process-limiter.ts";
import type { AgentProcess, AgentRuntime, AgentSignal, Judgement, SessionBackend } from "./ports.ts";
import type { ControlOutcome, Effect, Happening } from "./step.ts";

type EffectOf<T extends Effect["type"]> = Extract<Effect, { type: T }>;
/** Replies are the actor's own. */
export type OutwardEffect = Exclude<Effect, { type: "reply" }>;

/** What was stored just now, so that it need not be read again. */
export interface Stored {
  readonly firstId: number;
  readonly events: readonly SessionEvent[];
}

interface EffectRunnerOptions {
  readonly sessionId: string;
  readonly epoch: number;
  readonly principal: Principal;
  readonly spec: SessionOptions;
  readonly operator: SessionPolicy;
  readonly backend: SessionBackend;
  readonly runtime: AgentRuntime;
  readonly limiter: Pick<ProcessLimiter, "acquireSlot" | "hasFreeSlot">;
  readonly post: (happening: Happening) => void;
}

/** Performs the effects of steps. No other code touches the session's process. */
export class EffectRunner {
  readonly #options: EffectRunnerOptions;
  #process: AgentProcess | undefined;
  #partial = "";
  /** Takes the process out of the queue for a slot. */
  #leaveQueue = new AbortController();

  constructor(options: EffectRunnerOptions) {
    this.#options = options;
  }

  async perform(effect: OutwardEffect, state: SessionState, stored: Stored): Promise<void> {
    switch (effect.type) {
      case "start":
        return this.#start(effect, state);
      case "end-leftover":
        return this.#endLeftover(effect);
      case "push":
        return this.#push(effect, stored);
      case "control":
        return void this.#control(effect);
      case "answer":
        return this.#process?.answer(effect.requestId, effect.decision);
      case "interrupt":
        return this.#process?.interrupt();
      case "stop":
        this.#leaveQueue.abort();
        return this.#process?.stop();
      case "kill":
        return this.kill();
    }
  }

  /** Undefined where it cannot be told, or nothing waits for it. */
  async judge(requestId: string, input: JsonObject): Promise<Judgement | undefined> {
    return this.#process?.judge(requestId, input).catch(() => undefined);
  }

  /** What Claude Code is writing just now. */
  get partial(): string {
    return this.#partial;
  }

  kill(): void {
    this.#leaveQueue.abort();
    this.#process?.kill();
  }

  #start({ first, processId, rerun, resumeAt }: EffectOf<"start">, state: SessionState): void {
    const { epoch, limiter, operator, post, principal, runtime, sessionId, spec } = this.#options;
    this.#partial = "";
    this.#leaveQueue = new AbortController();
    const onSignal = (signal: AgentSignal) => post({ type: "signal", processId, signal });
    const admitted = limiter.acquireSlot(sessionId, this.#leaveQueue.signal, (before) =>
      onSignal(waitingNotice(before)),
    );
    // A failed start is reported to the caller that started it.
    admitted.then(
      () => onSignal({ type: "admitted" }),
      () => undefined,
    );
    const { origin, transcriptId = sessionId } = state;
    this.#process = runtime.start({
      sessionId,
      principal,
      transcriptId,
      options: optionsOf(spec, state),
      policy: operator,
      processTag: processTagOf(sessionId, processId),
      admitted,
      hasFreeSlot: async () => limiter.hasFreeSlot(),
      epoch,
      onSignal,
      onPartial: (text) => (this.#partial = text),
      first,
      ...(rerun && { rerunOf: promptsOf(state).map(({ promptId }) => promptId) }),
      ...(resumeAt !== undefined && { resumeAt }),
      ...(origin && { origin }),
    });
  }

  /** The text stands in the event, which is in the log when it was not stored just now. */
  async #push({ eventId, partlyDone, promptId }: EffectOf<"push">, { events, firstId }: Stored): Promise<void> {
    const { backend, sessionId } = this.#options;
    const event = events[eventId - firstId] ?? (await backend.log.read(sessionId, eventId, 1)).at(0);
    if (event?.type !== "prompt.queued") return;
    const { attachments = [], text } = event.data;
    this.#process?.push({ id: promptId, text: partlyDone ? `${text}\n\n${PARTLY_DONE}` : text, attachments });
  }

  /** Not waited for: what the process answers comes back as an input. */
  async #control({ by, commandId, request }: EffectOf<"control">): Promise<void> {
    const outcome = await this.#ask(request);
    this.#options.post({ type: "controlled", commandId, by, request, outcome });
  }

  async #ask(request: EffectOf<"control">["request"]): Promise<ControlOutcome> {
    if (!this.#process) return { ok: false, refusal: NO_PROCESS };
    try {
      return { ok: true, data: await this.#process.control(request) };
    } catch (error) {
      const code = error instanceof AppError ? error.code : "INTERNAL";
      return { ok: false, refusal: { code, message: error instanceof Error ? error.message : String(error) } };
    }
  }

  async #endLeftover({ pid, processId, startedAt }: EffectOf<"end-leftover">): Promise<void> {
    const known = { ...(pid !== undefined && { pid }), ...(startedAt !== undefined && { startedAt }) };
    const { runtime, sessionId } = this.#options;
    await runtime.endLeftover({ processTag: processTagOf(sessionId, processId), ...known });
  }
}

function waitingNotice(before: number): AgentSignal {
  const ahead = before === 0 ? "first in the queue" : `${String(before)} ahead of it`;
  const message = `All --max-live slots are in use: this session waits for a free one, ${ahead}.`;
  return { type: "notice", kind: "waiting", message };
}

/** Behind the prompt: before it, the name of a skill would not be taken for one. */
const PARTLY_DONE =
  "(The program that runs you died while you worked on this, and none of your work was recorded. Part of it may be done: check before you repeat anything.)";

const NO_PROCESS: Refusal = { code: "INTERNAL", message: "Claude Code has just ended. Try again." };
