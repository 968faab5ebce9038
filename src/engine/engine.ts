import { randomUUID } from "node:crypto";
import type { Command, CommandReply } from "../domain/command.ts";
import { AppError, sessionNotFound } from "../domain/error.ts";
import type { SessionOptions } from "../domain/options.ts";
import { keptToSession, PermissionUpdate, type Decision } from "../domain/permission.ts";
import type { Principal } from "../domain/principal.ts";
import { initialState } from "../domain/session.ts";
import { SessionActor, type ActorContext } from "./actor.ts";
import type { AnswerRequest, Engine, OpenRequest, PromptRequest, WaitRequest } from "./api.ts";
import { checkMode, checkOptions, type Gate } from "./gate.ts";
import type { Policy } from "./policy.ts";
import { NoAnswerError, type Lease, type SessionQuery, type SessionRecord } from "./ports.ts";
import { waitForOne } from "./waiting.ts";

/** A node that has not renewed its lease for so long loses its sessions, ms. */
const LEASE_MS = 30_000;
const COMMAND_MS = 15_000;

export interface EngineOptions extends ActorContext {
  readonly limits: Omit<Policy, "askMs" | "initMs">;
  /** Default of sessionInitTimeoutMs, ms. */
  readonly initMs: number;
  readonly gate: Gate;
}

/** One node: it owns the sessions it has opened or claimed, and reaches all others through the store. */
export function createEngine(options: EngineOptions): Engine {
  return new Node(options);
}

class Node implements Engine {
  readonly #options: EngineOptions;
  readonly #actors = new Map<string, SessionActor>();
  readonly #claims = new Map<string, Promise<SessionActor | undefined>>();
  #lease: Promise<void> | undefined;
  #cancelHeartbeat: (() => void) | undefined;
  #draining = false;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  async open(principal: Principal, request: OpenRequest): Promise<{ sessionId: string; cursor: number }> {
    const { backend, clock, gate, runtime } = this.#options;
    checkOptions(gate, request.options);
    await runtime.check(request.options);
    await this.#beAlive();
    const id = await runtime.reserve(request.options);
    const at = clock.now();
    const { idempotencyKey, options: spec, prompt } = request;
    const { created, record } = await backend.create({
      id,
      principal,
      spec,
      state: initialState(at),
      at,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    });
    if (!created) return { sessionId: record.id, cursor: 1 };
    const text = { promptId: randomUUID(), text: prompt };
    await this.#command({ id: randomUUID(), principal, kind: "prompt", data: text }, record);
    return { sessionId: id, cursor: 1 };
  }

  async prompt(principal: Principal, sessionId: string, request: PromptRequest): Promise<{ cursor: number }> {
    const data = { promptId: randomUUID(), ...request };
    return this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "prompt", data });
  }

  async answer(principal: Principal, sessionId: string, request: AnswerRequest): Promise<{ cursor: number }> {
    const record = await this.get(principal, sessionId);
    const { by, requestId } = request;
    const forSession = request.decision === "allow_for_session";
    const decision = await this.#decisionOf(record, request);
    const data = { requestId, decision, by, forSession };
    return this.#command({ id: randomUUID(), principal, kind: "answer", data }, record);
  }

  async delivered(principal: Principal, sessionId: string, asks: { requestId: string; whole: boolean }[]): Promise<void> {
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
    return record;
  }

  async list(query: SessionQuery): Promise<SessionRecord[]> {
    return this.#options.backend.list(query);
  }

  async read(principal: Principal, sessionId: string, from: number, limit: number) {
    await this.get(principal, sessionId);
    return this.#options.backend.read(sessionId, from, limit);
  }

  async wait(principal: Principal, request: WaitRequest): Promise<{ woke: string | undefined }> {
    for (const { sessionId } of request.sessions) await this.get(principal, sessionId);
    return { woke: await waitForOne(this.#options.backend, request) };
  }

  async drain(): Promise<void> {
    this.#draining = true;
    this.#cancelHeartbeat?.();
    await Promise.all([...this.#actors.values()].map(async (actor) => actor.shutdown()));
    await this.#options.runtime.drain();
  }

  async #onSession(principal: Principal, sessionId: string, command: Command): Promise<{ cursor: number }> {
    return this.#command(command, await this.get(principal, sessionId));
  }

  /** To the owner: this node's actor, another node's inbox, or this node after it has claimed a session nobody owns. */
  async #command(command: Command, record: SessionRecord): Promise<{ cursor: number }> {
    if (this.#draining) throw new AppError("INTERNAL", "The server is shutting down. Try again in a moment.");
    const actor = this.#actors.get(record.id) ?? (await this.#claim(record));
    const reply = actor ? await actor.command(command) : await this.#send(command, record.id);
    if (reply.ok) return { cursor: reply.cursor };
    throw new AppError(reply.refusal.code, reply.refusal.message, { sessionId: record.id });
  }

  async #send(command: Command, sessionId: string): Promise<CommandReply> {
    try {
      return await this.#options.backend.send(sessionId, command, COMMAND_MS);
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      const problem = "The server that owns the session did not answer. Try again.";
      throw new AppError("TIMEOUT", problem, { sessionId, cause: error });
    }
  }

  /** Two commands at once make one claim. */
  async #claim(record: SessionRecord): Promise<SessionActor | undefined> {
    const running = this.#claims.get(record.id);
    if (running) return running;
    const claim = this.#tryClaim(record).finally(() => this.#claims.delete(record.id));
    this.#claims.set(record.id, claim);
    return claim;
  }

  async #tryClaim(record: SessionRecord): Promise<SessionActor | undefined> {
    const { backend, log } = this.#options;
    if (record.owner?.alive) return undefined;
    await this.#beAlive();
    const lease = await backend.claim(record.id);
    const current = lease && (await backend.get(record.id));
    if (!lease || !current) return undefined;
    if (lease.tookOver) log.warn("took over a session of a server that died", { sessionId: record.id });
    return this.#own(lease, current);
  }

  #own(lease: Lease, { spec, state }: SessionRecord): SessionActor {
    const session = { lease, spec, state, policy: this.#policyOf(spec) };
    const actor = new SessionActor(this.#options, session, () => this.#actors.delete(lease.sessionId));
    this.#actors.set(lease.sessionId, actor);
    return actor;
  }

  #policyOf(spec: SessionOptions): Policy {
    const { initMs, limits } = this.#options;
    return { ...limits, askMs: spec.permissionRequestTimeoutMs, initMs: spec.sessionInitTimeoutMs ?? initMs };
  }

  async #decisionOf(record: SessionRecord, request: AnswerRequest): Promise<Decision> {
    if (request.decision === "deny") {
      const message = request.denyMessage ?? "The request was denied.";
      return { behavior: "deny", message, ...(request.interrupt && { interrupt: true }) };
    }
    const remembered = request.decision === "allow_for_session" ? await this.#rememberable(record, request.requestId) : [];
    const updates = keptToSession([...(request.updatedPermissions ?? []), ...remembered]);
    for (const update of updates) if (update.type === "setMode") checkMode(this.#options.gate, update.mode);
    return {
      behavior: "allow",
      ...(request.updatedInput && { updatedInput: request.updatedInput }),
      ...(updates.length > 0 && { updatedPermissions: updates }),
    };
  }

  /** What Claude Code suggests to allow from now on, or else the tool. */
  async #rememberable(record: SessionRecord, requestId: string): Promise<PermissionUpdate[]> {
    const ask = record.state.asks.find((open) => open.requestId === requestId);
    if (!ask) return [];
    const [event] = await this.#options.backend.read(record.id, ask.eventId, 1);
    const suggestions = event?.type === "permission.asked" ? (event.data.suggestions ?? []) : [];
    const known = suggestions.flatMap((suggestion) => {
      const parsed = PermissionUpdate.safeParse(suggestion);
      return parsed.success ? [parsed.data] : [];
    });
    if (known.length > 0) return known;
    const rules = [{ toolName: ask.toolName }];
    return [{ type: "addRules", rules, behavior: "allow", destination: "session" }];
  }

  /** The node's lease begins with the first session it has to do with: starting up takes none. */
  async #beAlive(): Promise<void> {
    this.#lease ??= this.#heartbeat();
    await this.#lease;
  }

  async #heartbeat(): Promise<void> {
    const { backend, clock, log } = this.#options;
    await backend.heartbeat(LEASE_MS);
    this.#cancelHeartbeat = clock.at(clock.now() + LEASE_MS / 3, () => {
      if (this.#draining) return;
      this.#heartbeat().catch((error: unknown) => log.error("lease not renewed", { error: String(error) }));
    });
  }
}
