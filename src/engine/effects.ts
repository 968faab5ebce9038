import { AppError, type Refusal } from "../domain/error.ts";
import { processTagOf } from "../domain/names.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import { hasSpoken, optionsOf, promptsOf, type SessionState } from "../domain/session.ts";
import { VERIFICATION_TOOL } from "../domain/verification.ts";
import type { ActorContext, ActorSession } from "./actor-context.ts";
import { policyOfProcess } from "./policy/turn-policy.ts";
import type { AgentProcess, AgentSignal, AgentStart, Judgement } from "./ports.ts";
import { messageOf } from "./ports/store.ts";
import { type EvidenceEffect, EvidenceRunner, isEvidenceEffect } from "./evidence-runner.ts";
import { admit, EnvironmentSearch } from "./session/before-start.ts";
import { findEnvironment, ENVIRONMENT_GONE } from "./session/environment.ts";
import { readAnswer, readPermissionChanges, readSpokenMessages } from "./session/process-history.ts";
import type { ControlOutcome, Effect, Happening } from "./step.ts";
import { TranscriptKeeper } from "./transcripts/keeper.ts";

type EffectOf<T extends Effect["type"]> = Extract<Effect, { type: T }>;
/** Effects outside the actor, which sends replies itself. */
export type OutwardEffect = Exclude<Effect, { type: "reply" }>;

/** Events stored just now, so that they need not be read again. */
export interface StoredBatch {
  readonly firstId: number;
  readonly events: readonly SessionEvent[];
}

interface EffectRunnerOptions
  extends
    Pick<ActorContext, "backend" | "clock" | "limiter" | "log" | "objectionToStart" | "runtime">,
    Pick<ActorSession, "lease" | "place" | "policy" | "principal" | "spec"> {
  readonly sessionId: string;
  readonly epoch: number;
  readonly post: (happening: Happening) => void;
}

/** Effects that end work of the process, or the process. */
const SIGNALS = ["interrupt", "stop-tasks", "stop", "kill"] as const;
type SignalType = (typeof SIGNALS)[number];

function isSignal(effect: Effect): effect is EffectOf<SignalType> {
  return SIGNALS.some((type) => type === effect.type);
}

/** Performs the effects of steps. No other code touches the session's process. */
export class EffectRunner {
  readonly #options: EffectRunnerOptions;
  #process: AgentProcess | undefined;
  /** The last two processes, because an exited process still gets the acknowledgement of its exit. */
  #known: readonly { readonly id: string; readonly process: AgentProcess }[] = [];
  readonly evidence: EvidenceRunner;
  readonly search: EnvironmentSearch;
  readonly transcripts: TranscriptKeeper;
  #partial = "";
  /** Aborted to end the wait for a slot. */
  #leaveQueue = new AbortController();

  constructor(options: EffectRunnerOptions) {
    this.#options = options;
    this.evidence = new EvidenceRunner(options);
    this.search = new EnvironmentSearch(options);
    this.transcripts = new TranscriptKeeper(options);
  }

  async perform(effect: OutwardEffect, state: SessionState, stored: StoredBatch): Promise<void> {
    if (isEvidenceEffect(effect)) return this.#see(effect, state);
    if (isSignal(effect)) return this.#signal(effect);
    switch (effect.type) {
      case "start":
        return this.#start(effect, state);
      case "reattach":
        return this.#reattach(effect, state);
      case "end-leftover":
        return this.#endLeftover(effect);
      case "push":
        return this.#push(effect, stored);
      case "send-again":
        return this.#process?.sendAgain(effect.id);
      case "find-environment":
        return this.search.begin(state, (found) =>
          this.#options.post({ type: "environment", turnId: effect.turnId, ...found }),
        );
      case "control":
        return void this.#control(effect);
      case "answer":
        return this.#answer(effect);
      case "answer-again":
        return this.#answerAgain(effect);
    }
  }

  #signal(effect: EffectOf<SignalType>): void {
    if (effect.type === "interrupt") return this.#process?.interrupt();
    if (effect.type === "stop-tasks")
      return void effect.taskIds.map(async (taskId) => this.#ask({ do: "stop-task", taskId }));
    if (effect.type === "kill") return this.kill();
    this.#leaveQueue.abort();
    this.#process?.stop();
  }

  #answer({ decision, requestId }: EffectOf<"answer">): void {
    this.#process?.answer(requestId, decision);
  }

  /** Not awaited: what the server sees comes back as an input. */
  #see(effect: EvidenceEffect, state: SessionState): void {
    const seen = this.evidence.perform(effect, state);
    if (effect.type === "baseline") this.#process?.holdTools(seen);
  }

  /** Returns `undefined` if the risk cannot be determined, or `requestId` is not open. */
  async judge(requestId: string, input: JsonObject): Promise<Judgement | undefined> {
    return this.#process?.judge(requestId, input).catch(() => undefined);
  }

  /** Acknowledges lines by process id, once everything in them is stored. */
  acknowledge(lines: ReadonlyMap<string, number>): void {
    for (const { id, process } of this.#known) {
      const line = lines.get(id);
      if (line !== undefined) process.acknowledge(line);
    }
  }

  /** Acknowledges an exit after this owner has gone. Otherwise the shim would keep it for a next owner, and start one. */
  drop(happening: Happening): void {
    if (happening.type === "signal" && happening.signal.type === "exited" && happening.line !== undefined)
      this.acknowledge(new Map([[happening.processId, happening.line]]));
  }

  /** Text that Claude Code is writing at the moment. */
  get partial(): string {
    return this.#partial;
  }

  kill(): void {
    this.#leaveQueue.abort();
    this.#process?.kill();
  }

  /** Ends the process after a failed effect, so that nothing waits for ever. The turn ends too, with `error` as its reason. */
  fail(error: unknown, { process }: SessionState): void {
    if (process.phase === "none") return this.kill();
    const message = messageOf(error);
    const tell = (signal: AgentSignal) => this.#options.post({ type: "signal", processId: process.id, signal });
    tell({ type: "notice", kind: "warning", message });
    this.kill();
    const isThere = this.#known.some(({ id }) => id === process.id);
    if (!isThere) tell({ type: "exited", code: null, signal: null, error: message });
  }

  /** Ends all work that is not the process, after the session was given up. */
  leave(): void {
    this.evidence.stopChecks();
    this.search.end();
    this.transcripts.stop();
  }

  /** Leaves the process to another server, which owns the session now. */
  letGo(): void {
    this.#leaveQueue.abort();
    this.#process?.letGo();
  }

  #start(
    { environmentId: wanted = "", first, processId, rerun, resumeAt, sendsAgain }: EffectOf<"start">,
    state: SessionState,
  ): void {
    const { runtime, sessionId } = this.#options;
    this.#leaveQueue = new AbortController();
    const { onSignal: tell, ...about } = this.#about(processId, state);
    const environmentId = findEnvironment(runtime.environments, { ...this.#options, state }, wanted);
    if (environmentId === undefined) return this.#tellGone(tell);
    runtime.environments.hold(sessionId, environmentId);
    const onSignal: AgentStart["onSignal"] = (signal, line) =>
      tell(signal.type === "started" && environmentId !== "" ? { ...signal, environmentId } : signal, line);
    const { signal: left } = this.#leaveQueue;
    const restore = async () => this.transcripts.restore(state, environmentId);
    const admitted = admit({ ...this.#options, restore }, environmentId, { onSignal, left });
    // `runtime.start` reports a rejection.
    admitted.catch(() => undefined);
    const process = runtime.start({
      ...about,
      environmentId,
      onSignal,
      admitted,
      first,
      ...(rerun && { rerunOf: promptsOf(state).map(({ promptId }) => promptId) }),
      ...(resumeAt !== undefined && { resumeAt }),
      ...(sendsAgain && { sendsAgain }),
      ...(this.transcripts.isMoved(state) && { isMoved: true }),
    });
    this.#have(processId, process);
  }

  /** The process has its slot, and keeps it. */
  async #reattach({ processId }: EffectOf<"reattach">, state: SessionState): Promise<void> {
    const { process, requests } = state;
    if (process.phase === "none" || !process.shim) return;
    const { line = 0, shim } = process;
    const { backend, epoch, runtime, sessionId } = this.#options;
    // Claude Code knows nothing of a request for the commands of a verification.
    const open = requests.filter(({ toolName }) => toolName !== VERIFICATION_TOOL).map(({ requestId }) => requestId);
    const spoken = await readSpokenMessages(backend.log, sessionId, state).catch(() => []);
    const changes = readPermissionChanges(backend.log, sessionId);
    // Rejects if the changes cannot be read: without the rules that answers have added, the process must not go on.
    const admitted = changes.then(() => undefined);
    const reattach = { shim, line, epoch, open, spoken, changes: await changes.catch(() => []) };
    const about = this.#about(processId, state);
    this.#have(processId, runtime.reattach({ ...about, admitted, first: false, reattach }));
  }

  #tellGone(tell: AgentStart["onSignal"]): void {
    this.#process = undefined;
    tell({
      type: "exited",
      code: null,
      signal: null,
      subtype: "lost",
      error: `${ENVIRONMENT_GONE} Reply to continue.`,
    });
  }

  #have(id: string, process: AgentProcess): void {
    this.#process = process;
    this.#known = [...this.#known.slice(-1), { id, process }];
  }

  /** Returns the options common to every process of the session, from its current state. */
  #about(processId: string, state: SessionState): Omit<AgentStart, "admitted" | "first"> {
    const { epoch, limiter, policy, post, principal, sessionId, spec } = this.#options;
    this.#partial = "";
    const { environmentId = "", origin, transcriptId = sessionId } = state;
    return {
      sessionId,
      principal,
      transcriptId,
      hasSpoken: hasSpoken(state),
      options: optionsOf(spec, state),
      policy: policyOfProcess(policy, state),
      environmentId,
      processTag: processTagOf(sessionId, processId),
      hasFreeSlot: async () => limiter.hasFreeSlot(),
      watchesCost: this.#options.policy.budgetUsd !== undefined || this.#options.policy.use.budgets.length > 0,
      epoch,
      onSignal: (signal, line) => post({ type: "signal", processId, signal, ...(line !== undefined && { line }) }),
      onPartial: (text) => (this.#partial = text),
      ...(origin && { origin }),
    };
  }

  /** Reads the text from the event, which is in the log unless stored just now. */
  async #push({ eventId, partlyDone, promptId }: EffectOf<"push">, { events, firstId }: StoredBatch): Promise<void> {
    const { backend, sessionId } = this.#options;
    const event = events[eventId - firstId] ?? (await backend.log.read(sessionId, eventId, 1)).at(0);
    if (event?.type !== "prompt.queued")
      throw new Error(`The prompt cannot be read (event ${String(eventId)}). Send it again.`);
    const { attachments = [], text } = event.data;
    const prompt = { id: promptId, text: partlyDone ? `${text}\n\n${PARTLY_DONE}` : text, attachments };
    const process = this.#process;
    this.evidence.whenLooked(text, () => process?.push(prompt));
  }

  async #answerAgain({ eventId, requestId }: EffectOf<"answer-again">): Promise<void> {
    const { backend, sessionId } = this.#options;
    this.#process?.answer(requestId, await readAnswer(backend.log, sessionId, eventId));
  }

  /** Not awaited: the answer of the process comes back as the input `controlled`. */
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

  async #endLeftover({ process, processId }: EffectOf<"end-leftover">): Promise<void> {
    await this.#options.runtime.endLeftover({
      processTag: processTagOf(this.#options.sessionId, processId),
      ...process,
    });
  }
}

/** Follows the prompt, because the name of a skill counts only at the start of a prompt. */
const PARTLY_DONE =
  "(The program that runs you died while you worked on this, and none of your work was recorded. Part of it may be done: check before you repeat anything.)";

const NO_PROCESS: Refusal = { code: "INTERNAL", message: "Claude Code has just ended. Try again." };
