import { randomUUID } from "node:crypto";
import type { Command, Delivered } from "../domain/command.ts";
import { AppError, sessionNotFound } from "../domain/error.ts";
import type { Principal } from "../domain/principal.ts";
import { initialState } from "../domain/session.ts";
import type { AnswerRequest, Engine, OpenRequest, PromptRequest, WaitRequest } from "./api.ts";
import { decisionOf } from "./decision.ts";
import { addedDirectories, checkDecision, checkMode, checkOptions, type Gate } from "./gate.ts";
import { keepHouse, type Retention } from "./housekeeping.ts";
import { isAbandoned, Ownership, type OwnershipOptions } from "./ownership.ts";
import type { SessionQuery, SessionRecord } from "./ports.ts";
import { waitForOne } from "./waiting.ts";

/** How often a waiting call looks whether the owner still lives, ms. */
const LOOK_MS = 1_000;

export interface EngineOptions extends OwnershipOptions {
  readonly gate: Gate;
  readonly retention: Retention;
}

/** One node: it owns the sessions it has opened or claimed, and reaches all others through the store. */
export function createEngine(options: EngineOptions): Engine {
  return new Node(options);
}

class Node implements Engine {
  readonly #options: EngineOptions;
  readonly #ownership: Ownership;
  readonly #stopHousekeeping: () => Promise<void>;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#ownership = new Ownership(options);
    const recoverAbandoned = async () => this.#ownership.recoverAbandoned();
    this.#stopHousekeeping = keepHouse({ ...options, recoverAbandoned }, options.retention);
  }

  async open(principal: Principal, request: OpenRequest): Promise<{ sessionId: string; cursor: number }> {
    const { backend, clock, gate, runtime } = this.#options;
    checkOptions(gate, request.options);
    await runtime.check(request.options);
    await this.#ownership.beAlive();
    const id = await runtime.reserve(request.options);
    const at = clock.now();
    const { idempotencyKey, options: spec, prompt } = request;
    const { created, record } = await backend.create({
      id,
      principal,
      spec,
      state: { ...initialState(at), identity: await runtime.identify(spec) },
      at,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    });
    // A retry gives the prompt only where the first try died before it could.
    if (created || record.state.lastEventId === 0) {
      const data = { promptId: randomUUID(), text: prompt, ...(idempotencyKey !== undefined && { idempotencyKey }) };
      await this.#command({ id: randomUUID(), principal, kind: "prompt", data }, record);
    }
    return { sessionId: record.id, cursor: 1 };
  }

  async prompt(principal: Principal, sessionId: string, request: PromptRequest): Promise<{ cursor: number }> {
    const data = { promptId: randomUUID(), ...request };
    return this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "prompt", data });
  }

  async answer(principal: Principal, sessionId: string, request: AnswerRequest): Promise<{ cursor: number }> {
    const record = await this.get(principal, sessionId);
    const { by, requestId } = request;
    const forSession = request.decision === "allow_for_session";
    const decision = await decisionOf(this.#options.backend, record, request);
    checkDecision(this.#options.gate, decision);
    const additionalDirectories = addedDirectories(decision);
    if (additionalDirectories.length > 0) await this.#options.runtime.check({ ...record.spec, additionalDirectories });
    const data = { requestId, decision, by, forSession };
    return this.#command({ id: randomUUID(), principal, kind: "answer", data }, record);
  }

  async delivered(principal: Principal, sessionId: string, asks: Delivered[]): Promise<void> {
    if (asks.length === 0) return;
    await this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "delivered", data: { asks } });
  }

  async interrupt(principal: Principal, sessionId: string, by: string): Promise<{ cursor: number }> {
    return this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "interrupt", data: { by } });
  }

  async cancel(principal: Principal, sessionId: string, request: { by: string; reason?: string }): Promise<void> {
    await this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "cancel", data: request });
  }

  async close(principal: Principal, sessionId: string, by: string): Promise<void> {
    await this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "close", data: { by } });
  }

  async get(principal: Principal, sessionId: string): Promise<SessionRecord> {
    const record = await this.#options.backend.get(sessionId);
    if (record?.principal !== principal) throw sessionNotFound(sessionId);
    const trouble = this.#ownership.trouble(sessionId);
    if (trouble) throw new AppError(trouble.code, trouble.message, { sessionId });
    return isAbandoned(record) ? this.#ownership.recover(record) : record;
  }

  async list(query: SessionQuery): Promise<SessionRecord[]> {
    const records = await this.#options.backend.list(query);
    return Promise.all(records.map(async (record) => (isAbandoned(record) ? this.#ownership.recover(record) : record)));
  }

  async read(principal: Principal, sessionId: string, from: number, limit: number) {
    await this.get(principal, sessionId);
    return this.#options.backend.read(sessionId, from, limit);
  }

  async wait(principal: Principal, request: WaitRequest): Promise<{ woke: string | undefined }> {
    const look = async () => {
      for (const { sessionId } of request.sessions) await this.get(principal, sessionId);
    };
    await look();
    const stopLooking = this.#every(LOOK_MS, look);
    try {
      return { woke: await waitForOne(this.#options.backend, request) };
    } finally {
      stopLooking();
    }
  }

  /** Whoever reads a session notices that its owner has died; whoever waits for one has to look now and then. */
  #every(ms: number, look: () => Promise<void>): () => void {
    const { clock, log } = this.#options;
    let stopped = false;
    let cancel: () => void = () => undefined;
    const arm = () => {
      cancel = clock.at(clock.now() + ms, () => {
        look()
          .catch((error: unknown) => log.debug("while waiting", { error: String(error) }))
          .finally(() => {
            if (!stopped) arm();
          });
      });
    };
    arm();
    return () => {
      stopped = true;
      cancel();
    };
  }

  async drain(): Promise<void> {
    await this.#stopHousekeeping();
    await this.#ownership.drain();
    await this.#options.runtime.drain();
    await this.#options.backend.close();
  }

  async #onSession(principal: Principal, sessionId: string, command: Command): Promise<{ cursor: number }> {
    return this.#command(command, await this.get(principal, sessionId));
  }

  async #command(command: Command, record: SessionRecord): Promise<{ cursor: number }> {
    if (command.kind === "prompt") await this.#checkPrompt(record);
    const reply = await this.#ownership.command(command, record);
    if (reply.ok) return { cursor: reply.cursor };
    throw new AppError(reply.refusal.code, reply.refusal.message, { sessionId: record.id });
  }

  async #checkPrompt(record: SessionRecord): Promise<void> {
    const { backend, gate, runtime } = this.#options;
    const { process, reported } = record.state;
    // The server that takes the prompt answers for it, whoever started the session, and whatever its folders are by now.
    checkOptions(gate, record.spec);
    if (process.phase !== "none") checkMode(gate, reported.permissionMode);
    await runtime.check(record.spec);
    const isForeign = record.owner?.alive === true && record.owner.nodeId !== backend.nodeId;
    if (!isForeign) await this.#checkIdentity(record);
  }

  /** A session that would go on under another configuration or another's money is not resumed unseen. */
  async #checkIdentity({ id, spec, state }: SessionRecord): Promise<void> {
    const { identity: before } = state;
    if (!before || state.process.phase !== "none") return;
    const now = await this.#options.runtime.identify(spec);
    if (now.configFolder === before.configFolder && now.paidBy === before.paidBy) return;
    const problem = `The session ran with the configuration in ${before.configFolder}, paid by ${before.paidBy}`;
    const present = `this server would use ${now.configFolder}, paid by ${now.paidBy}`;
    const advice = "Reply through a server with the same environment, or start a new session.";
    throw new AppError("PERMISSION_DENIED", `${problem}; ${present}. ${advice}`, { sessionId: id });
  }
}
