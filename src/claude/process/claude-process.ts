import type { Query, SDKUserMessage } from "@anthropic-ai/claude-agent-sdk";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControlRequest } from "../../domain/control.ts";
import { AppError } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import type { Decision } from "../../domain/permission.ts";
import type { Attachment } from "../../domain/prompt.ts";
import type { AgentProcess, AgentSignal, Judgement } from "../../engine/ports.ts";
import { Background } from "./background.ts";
import { deniedBySettings, unreadSettings } from "./permissions.ts";
import { AliveThrottle, sendControl, withLastWords, messageOf, settlesWithin } from "./control.ts";
import { CostWatch } from "./cost-watch.ts";
import { AsyncQueue, emptyMessage, userMessage } from "./input.ts";
import { delayUntil, type LaunchFacts, type ProcessContext } from "./launch.ts";
import { OpenRequests } from "./open-requests.ts";
import { withReason } from "./reason.ts";
import { fileGuard, ToolHold } from "./hooks.ts";
import { MessageReader } from "../messages.ts";
import { PartialText } from "./partial.ts";
import { StartError } from "../start-error.ts";
import { identityHere } from "../supervise/machine.ts";
import { endGracefully } from "../shim/shimmed-handle.ts";
import { takeLineNumber } from "../shim/inbound.ts";
import { KillSwitch } from "./time-limit.ts";
import { endBeforeReady, type Exit, type ProcessHandle } from "../supervise/process-handle.ts";
import { isDetachedId } from "../supervise/detached-processes.ts";

/**
 * Time limits for the steps of `stop`, ms. Measured stops take 30 to 250 ms, 1,500 with a running Bash. In sum below the 4 s
 * after which MCP clients kill a closed server.
 */
const INTERRUPT_MS = 1000;
const END_OF_INPUT_MS = 500;
const CLOSE_MS = 2000;
/** Time limit for an answer, ms. Normally 20 ms, for the first request of a process up to 1 s. */
const CONTROL_MS = 30_000;
/** Wait for output after the exit, ms: children of a killed process can hold its output pipe open. */
const LAST_WORDS_MS = 2000;

/** Runs a Claude Code in streaming mode. */
export class ClaudeProcess implements AgentProcess {
  readonly #context: ProcessContext;
  readonly #input = new AsyncQueue<SDKUserMessage>();
  readonly #requests: OpenRequests;
  readonly #ended: Promise<void>;
  /** Resolves once Claude Code takes control requests; rejects if the process ends before. */
  readonly #ready: Promise<Query>;
  #onReady: (query: Query) => void = () => undefined;
  #onNotReady: (error: AppError) => void = () => undefined;
  #query: Query | undefined;
  #spawned: ProcessHandle | undefined;
  #announced: Promise<void> | undefined;
  /** Resolves once the next owner could find the process. Before, no prompt is sent, so a new start loses nothing. */
  readonly #recorded: Promise<void>;
  #onRecorded: () => void = () => undefined;
  #isRecorded = false;
  #isLetGo = false;
  readonly #alive = new AliveThrottle();
  readonly #background: Background;
  readonly #killSwitch = new KillSwitch();
  readonly #toolHold = new ToolHold();
  readonly holdTools = (until: Promise<unknown>): void => this.#toolHold.waitFor(until);

  constructor(context: ProcessContext) {
    this.#context = context;
    this.#requests = new OpenRequests(context.onSignal, (requestId) => this.#spawned?.inShim?.settle(requestId));
    this.#background = new Background(
      () => this.#spawned?.detached,
      (tasks) => context.onSignal({ type: "background", tasks }),
      context.mask,
    );
    this.#ready = new Promise((resolve, reject) => {
      this.#onReady = resolve;
      this.#onNotReady = reject;
    });
    this.#recorded = new Promise((resolve) => {
      this.#onRecorded = () => {
        this.#isRecorded = true;
        resolve();
      };
    });
    // Without a handler, Node would report an unhandled rejection; awaiting `#ready` is optional.
    this.#ready.catch(() => undefined);
    this.#ended = this.#run();
  }

  /** Resolves after the process is gone and its last signal was sent. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  push(prompt: { id: string; text: string; attachments: readonly Attachment[] }): void {
    this.#input.push(userMessage(prompt));
  }

  readonly sendAgain = (id: string): void => this.#input.push(emptyMessage(id));

  async control(request: ControlRequest): Promise<JsonObject> {
    if ("taskId" in request && isDetachedId(request.taskId)) return this.#background.control(request);
    const { isAttached, launch, mask, onSignal } = this.#context;
    // A start has its own time limit, an attached process none: `CONTROL_MS` then covers `#ready` too.
    if (!isAttached) await this.#ready;
    const answered = this.#ready.then(async (query) => {
      const { account } = await launch;
      return sendControl(query, request, { mask, onPlan: (report) => onSignal({ type: "plan", account, report }) });
    });
    if (await settlesWithin(CONTROL_MS, answered)) return answered;
    throw new AppError("TIMEOUT", "Claude Code did not answer. Try again, or interrupt the session.");
  }

  answer(requestId: string, decision: Decision): void {
    this.#requests.answer(requestId, decision);
  }

  async judge(requestId: string, input: JsonObject): Promise<Judgement | undefined> {
    if (!this.#requests.has(requestId)) return undefined;
    const { denying, folders } = await this.#context.launch;
    const settings = deniedBySettings(await this.#ready);
    if (!(await settlesWithin(CONTROL_MS, settings)))
      throw new AppError("TIMEOUT", "Claude Code sent no settings. Retry.");
    return this.#requests.judge(requestId, input, { denying: [...denying, ...(await settings)], folders });
  }

  readonly interrupt = (): void => void this.#interrupt();
  readonly stop = (): void => void this.#stop();

  kill(): void {
    this.#killSwitch.kill();
    if (this.#spawned?.pid === undefined) this.#input.end();
    else this.#spawned.kill();
  }

  letGo(): void {
    // Without a stored shim reference, the next owner would not find the process.
    const isFound = this.#context.isAttached || (this.#isRecorded && this.#spawned?.inShim);
    if (!isFound) return this.kill();
    this.#isLetGo = true;
    this.#spawned?.inShim?.letGo();
  }

  acknowledge(line: number): void {
    // An overdue process gets no prompt.
    if (!this.#killSwitch.isOverdue) this.#onRecorded();
    this.#spawned?.inShim?.acknowledge(line);
  }

  /** Lets the shim forget an ended process, because nothing more is reported. */
  forget(): void {
    this.acknowledge(Number.MAX_SAFE_INTEGER);
  }

  async #run(): Promise<void> {
    const { mask, onSignal } = this.#context;
    const { overdue } = this.#killSwitch;
    let subtype: string | undefined;
    const conversation = this.#converse().catch((error: unknown) => {
      if (error instanceof StartError) ({ subtype } = error);
      return mask(messageOf(error));
    });
    const failure = await Promise.race([conversation, overdue]);
    this.#input.end();
    const exit = await Promise.race([this.#endedBy(), overdue.then(() => undefined)]);
    const error = this.#whyItEnded(failure ?? exit?.error?.message);
    const problem = error === undefined ? endBeforeReady(exit) : `did not start: ${error}`;
    this.#onNotReady(new AppError("INTERNAL", `Claude Code ${problem}. Fix the cause and try again.`));
    await Promise.race([this.#announced?.then(async () => this.#spawned?.gone), overdue]);
    const why = { ...(error && { error }), ...(subtype !== undefined && { subtype }) };
    onSignal(
      { type: "exited", code: exit?.code ?? null, signal: exit?.signal ?? null, ...why },
      this.#spawned?.inShim?.lastLine(),
    );
  }

  /** The SDK has ended the conversation and a child of this server with it. A process in a shim is ended here. */
  async #endedBy(): Promise<Exit | undefined> {
    const { exit, inShim: held } = this.#spawned ?? {};
    if (!exit || !held || (await settlesWithin(0, exit))) return exit;
    if (!(await endGracefully(held, exit))) this.kill();
    return exit;
  }

  /** Runs until the process ends. Returns the failure; `undefined` after a regular end. */
  async #converse(): Promise<string | undefined> {
    const { launch, onSignal } = this.#context;
    const { giveUp, notices, start, watchCost, ...began } = await launch;
    const { attached } = began;
    if (this.#killSwitch.signal.aborted) return giveUp().then(() => "The process was stopped before it started.");
    for (const notice of notices) onSignal(notice);
    // Children can hold the stream of a killed process open, so the exit also ends the conversation.
    let onGone: () => void = () => undefined;
    const gone = new Promise<undefined>((resolve) => (onGone = () => resolve(undefined)));
    const onSpawned = (spawned: ProcessHandle) => {
      this.#spawned = spawned;
      this.#announced = this.#announce(spawned, began);
      if (attached) this.#onRecorded();
      // The session may have given up the process in the meantime.
      if (this.#isLetGo) spawned.inShim?.letGo();
      else if (this.#killSwitch.signal.aborted) this.kill();
      void spawned.exit.then(async () => sleep(LAST_WORDS_MS, undefined, { ref: false })).then(onGone);
    };
    const cost = new CostWatch({ attached, watchCost }, onSignal);
    const running = await start({
      prompts: delayUntil(Promise.all([this.#recorded, cost.startKnown]), this.#input),
      ...this.#requests.bindings(began),
      guard: this.#toolHold.guard(fileGuard(began)),
      onSpawned,
      signal: this.#killSwitch.signal,
      epoch: this.#context.epoch,
    });
    this.#query = running;
    const up = (): void => {
      this.#onReady(running);
      cost.begin(running);
      onSignal({ type: "ready" });
      if (!attached) void unreadSettings(running).then((unread) => unread.forEach((notice) => onSignal(notice)));
      void this.#requests.withdrawOthers(attached?.open ?? [], this.#spawned?.inShim?.pending);
    };
    // The stream ends with an equal failure.
    running.initializationResult().then(
      async () => this.#announced?.then(up),
      () => undefined,
    );
    return Promise.race([this.#readAll(running, cost), gone]);
  }

  /** Reports pid and start time, because a pid alone may be reused and must not be signalled. */
  async #announce({ inShim: held, pid }: ProcessHandle, launched: LaunchFacts): Promise<void> {
    const { onSignal } = this.#context;
    const { attached, identity, missing, resumed } = launched;
    if (attached) {
      const { environmentId, lost } = attached;
      return onSignal({ type: "attached", lost, environmentId });
    }
    const known = await identityHere(pid, held?.startedAt);
    const signal = { type: "started" as const, resumed, identity, ...known, ...(held && { shim: held.shim }) };
    // Line 0 precedes the first line. Once acknowledged, the next owner can find the process.
    onSignal(missing.length > 0 ? { ...signal, missing } : signal, 0);
  }

  async #readAll(running: Query, cost: CostWatch): Promise<string | undefined> {
    const { account, attached, configFolder, expectsStructured } = await this.#context.launch;
    const { mask, maskUnfinished, onPartial, transcriptId } = this.#context;
    const reader = new MessageReader(transcriptId, mask, { account, expectsStructured });
    const partial = new PartialText(onPartial, { text: mask, unfinished: maskUnfinished });
    let failedResult = false;
    reader.remember(attached?.spoken ?? []);
    try {
      for await (const message of running) {
        // `started` must be the first signal of a process.
        await this.#announced;
        const line = takeLineNumber(message);
        if (message.type === "result") failedResult = message.is_error;
        partial.read(message);
        const signals = reader.read(message);
        for (const [at, read] of signals.entries()) {
          const place = { transcriptId: reader.transcriptId, configFolder, mask };
          const signal = await withReason(read, running, place);
          await cost.before(signal);
          if (!this.#alive.drops(signal)) await this.#report(signal, at === signals.length - 1 ? line : undefined);
        }
        if (message.type === "assistant" || message.type === "user" || message.type === "system") cost.report();
      }
    } catch (error) {
      // After an error result, the SDK also throws, but `reader` has already reported the failure.
      return failedResult ? undefined : mask(messageOf(error));
    }
    return undefined;
  }

  async #report(signal: AgentSignal, line: number | undefined): Promise<void> {
    if (signal.type === "background") return this.#background.reported(signal.tasks);
    if (signal.type === "message" && signal.toolUseId !== undefined) this.#background.toolUsed();
    if (signal.type === "idle") await this.#background.turnEnded();
    this.#context.onSignal(signal, line);
  }

  async #interrupt(): Promise<void> {
    const query = this.#query ?? (this.#context.isAttached ? await this.#ready.catch(() => undefined) : undefined);
    // Nothing to interrupt yet: cancels the start.
    if (!query) return this.kill();
    // `cancelQueued`, missing in the types of the SDK, also cancels prompts queued by Claude Code itself.
    const interrupt: (options: { cancelQueued: true }) => Promise<unknown> = query.interrupt.bind(query);
    await interrupt({ cancelQueued: true }).catch(() => undefined);
  }

  async #stop(): Promise<void> {
    await settlesWithin(INTERRUPT_MS, this.#interrupt());
    this.#input.end();
    this.#spawned?.inShim?.endInput();
    await settlesWithin(END_OF_INPUT_MS, this.#ended);
    this.#query?.close();
    if (!(await settlesWithin(CLOSE_MS, this.#ended))) this.kill();
  }

  #whyItEnded(failure: string | undefined): string | undefined {
    const stderr = this.#context.mask(this.#spawned?.stderrTail() ?? "");
    return this.#spawned?.fault() ?? withLastWords(failure, stderr);
  }
}
