import type { Command } from "../domain/command.ts";
import type { ControlRequest } from "../domain/control.ts";
import { AppError, sessionNotFound } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Caller, Principal } from "../domain/principal.ts";
import type { SessionOptions } from "../domain/options.ts";
import type {
  AdoptRequest,
  AnswerRequest,
  ContinueRequest,
  ConnectionTerms,
  Engine,
  OpenSessionRequest,
  PromptRequest,
  SessionUse,
  VerifyRequest,
  WaitRequest,
} from "./api.ts";
import {
  prepareAdoption,
  createSession,
  prepareFork,
  planSession,
  type Beginning,
  type PlannedSession,
  deleteClosed,
  rename,
} from "./session/records.ts";
import { EngineNode, type EngineOptions } from "./engine-node.ts";
import {
  answerCommand,
  continueCommand,
  controlCommand,
  promptCommand,
  verifyCommand,
  withEnvironment,
} from "./session/build-command.ts";
import { boundOf } from "./policy/bound.ts";
import { withinBound } from "./policy/bounded-options.ts";
import { checkGiven, checkOptions, isForbidden, isNested, startsWork } from "./policy/gate.ts";
import { checkRules, gateUnder } from "./policy/operator.ts";
import { optionsOfProfile, withProfile } from "./session/profile.ts";
import { createWithinLimits, deleteIfRefused } from "./session/limits-reader.ts";
import { readUse } from "./session/use.ts";
import { createFolderOperations } from "./session/folder-operations.ts";
import { createCommandOperations, type AcceptedReply } from "./session/command-operations.ts";
import { createNestedEngine, createReaderEngine } from "./session/readers.ts";
import { environmentFor } from "./session/check-prompt.ts";
import { keyObjection } from "./step/keys.ts";
import { checkIdentity } from "./session/environment.ts";
import { requireReadable, type SessionQuery, type SessionRecord } from "./ports.ts";

/** Creates the engine of a node, which owns the sessions it has opened or claimed, and reaches all others through the store. */
export function createEngine(options: EngineOptions): Engine {
  return createEngineFor(new EngineNode(options), options);
}

/** Returns the engine of one connection, or of the node itself. `options` has the terms of the connection. */
function createEngineFor(node: EngineNode, options: EngineOptions, connection?: Connection): Engine {
  const engine = new SessionEngine(node, options, connection);
  return isNested(options.gate) ? createNestedEngine(engine, node.nestedReader, options.gate) : engine;
}

type Connection = Pick<ConnectionTerms, "id" | "named">;

/** Commands that approvers such as webhooks send too, without attending to the session. */
const SERVICE_COMMANDS: ReadonlySet<Command["kind"]> = new Set(["delivered", "pass"]);

class SessionEngine implements Engine {
  readonly #node: EngineNode;
  readonly #options: EngineOptions & Pick<EngineNode, "placement">;
  readonly #connection: Connection | undefined;
  readonly #readers: ReturnType<EngineNode["createReaders"]>;
  readonly #readerEngine: Engine;
  readonly pack: Engine["pack"];
  readonly workTree: Engine["workTree"];
  readonly #commands = createCommandOperations(async (sessionId, command) => this.#onSession(sessionId, command));

  constructor(node: EngineNode, options: EngineOptions, connection: Connection | undefined) {
    this.#node = node;
    this.#options = { ...options, placement: node.placement };
    this.#connection = connection;
    this.#readers = node.createReaders(connection?.named);
    ({ pack: this.pack, workTree: this.workTree } = createFolderOperations(this.#options, this.#readers.recorded));
    this.#readerEngine = createReaderEngine(this, this.#readers.recorded);
  }

  forConnection(terms: ConnectionTerms): Engine {
    const { id, named, ...operator } = terms;
    // Terms left out by the connection are not inherited from the node.
    const own = { bounds: undefined, addsOnlyBounds: false, ...operator };
    return createEngineFor(this.#node, { ...this.#node.options, ...own }, { id, named });
  }

  forCaller({ scopes }: Pick<Caller, "scopes">): Engine {
    return scopes.includes("run") ? this : this.#readerEngine;
  }

  async checkMayConfigure() {}

  async create(caller: Caller, given: SessionOptions) {
    checkGiven(this.#options.gate, caller, given);
    const { session, withheld } = await this.#plan(caller, { spec: given, inherited: {} });
    const { record } = await createSession(this.#options, caller.principal, session, undefined);
    return { sessionId: record.id, withheld };
  }

  async open(caller: Caller, { fromOperator, options: given, prompt }: OpenSessionRequest) {
    checkGiven(this.#options.gate, caller, given);
    const spec = withProfile(this.#options, caller.principal, given);
    const { session, withheld } = await this.#plan(caller, { spec, inherited: {} }, fromOperator);
    return { ...(await this.#begin(caller.principal, session, prompt)), withheld };
  }

  async fork(caller: Caller, sessionId: string, request: PromptRequest) {
    const source = requireReadable(await this.get(caller.principal, sessionId));
    const { session, withheld } = await this.#plan(caller, prepareFork(source, request));
    checkIdentity(source, session.identity);
    const { resumeAt: _, ...prompt } = request;
    return { ...(await this.#begin(caller.principal, session, prompt)), withheld };
  }

  async adopt(caller: Caller, request: AdoptRequest) {
    const { principal } = caller;
    checkGiven(this.#options.gate, caller, request.options);
    const beginning = await prepareAdoption(this.#options, principal, request);
    const { session, withheld } = await this.#plan(caller, beginning);
    const { resumeAt: _, ...prompt } = request.prompt;
    return { ...(await this.#begin(principal, session, prompt)), withheld };
  }

  /** Makes all checks before a session is created: of the caller's rights, and of the start. */
  async #plan(
    caller: Caller,
    beginning: Beginning,
    fromOperator: OpenSessionRequest["fromOperator"] = {},
  ): Promise<{ session: PlannedSession; withheld: readonly string[] }> {
    const { policy, spec } = beginning;
    const { principal } = caller;
    this.#refuseWhileStopping();
    checkRules({ policy });
    const gate = gateUnder(this.#options, { principal, policy });
    checkOptions(gate, spec);
    const bound = boundOf(gate.callerApproves, caller, spec.callerApproves);
    const { options, withheld } = withinBound(spec, bound, optionsOfProfile(this.#options, principal, spec));
    const within = { ...beginning, spec: { ...options, ...fromOperator } };
    const session = await planSession(this.#options, principal, within);
    await this.#node.ownership.ensureLease();
    return { session, withheld: [...withheld, ...session.unused] };
  }

  async #begin(principal: Principal, session: PlannedSession, prompt: PromptRequest) {
    // Throws for an error in the prompt before there is a session.
    const command = await promptCommand(this.#options, principal, session, prompt);
    const { created, record } = await createWithinLimits(this.#options, { ...session, principal }, command.data);
    // Another principal has already adopted this session of Claude Code.
    if (record.principal !== principal) throw sessionNotFound(record.id);
    const misused = keyObjection(record.state, command, `session ${record.id}`);
    if (misused) throw new AppError(misused.code, misused.message, { sessionId: record.id });
    // A retry sends the prompt only if the first try died before sending. A second adopter of a transcript sends its own.
    if (created || record.state.lastEventId === 0 || record.id === session.id) {
      const sent = this.#command(command, record, created);
      await (created ? deleteIfRefused(this.#options, session, sent) : sent);
    }
    return { sessionId: record.id, cursor: 1 };
  }

  async prompt(principal: Principal, sessionId: string, request: PromptRequest): Promise<{ cursor: number }> {
    const record = requireReadable(await this.get(principal, sessionId));
    const { cursor } = await this.#command(await promptCommand(this.#options, principal, record, request), record);
    return { cursor };
  }

  async verify(principal: Principal, sessionId: string, request: VerifyRequest): Promise<{ cursor: number }> {
    const record = requireReadable(await this.get(principal, sessionId));
    const { cursor } = await this.#command(verifyCommand(this.#options, record, request), record);
    return { cursor };
  }

  async continueTurn(principal: Principal, sessionId: string, request: ContinueRequest): Promise<{ cursor: number }> {
    const record = requireReadable(await this.get(principal, sessionId));
    const { cursor } = await this.#command(continueCommand(this.#options, record, request), record);
    return { cursor };
  }

  async use(principal: Principal, sessionId: string): Promise<SessionUse> {
    return readUse(this.#options, requireReadable(await this.#readers.recorded.get(principal, sessionId)));
  }

  async control(caller: Caller, sessionId: string, request: ControlRequest, by: string): Promise<JsonObject> {
    const { principal } = caller;
    const record = requireReadable(await this.get(principal, sessionId));
    const command = controlCommand(this.#options, caller, record, { by, request });
    const { data = {} } = await this.#command(command, record);
    return data;
  }

  waitingBefore = async (sessionId: string) => this.#node.limiter.before(sessionId);
  atWork = () => this.#node.ownership.atWork;
  partial = async (sessionId: string) => Promise.resolve(this.#node.ownership.partial(sessionId));

  async rename(principal: Principal, sessionId: string, title: string): Promise<void> {
    await rename(this.#options.backend, async () => this.get(principal, sessionId), title);
  }

  async delete(principal: Principal, sessionId: string, by: string): Promise<void> {
    const record = await this.get(principal, sessionId);
    if (record.state.turn) {
      const advice = "Cancel or interrupt it first.";
      throw new AppError("SESSION_BUSY", `A turn is running in the session. ${advice}`, { sessionId });
    }
    // Closes an unreadable session only through a living owner, which knows the state.
    if (!record.unreadable || record.owner?.alive) await this.close(principal, sessionId, by);
    await deleteClosed(this.#options, sessionId);
  }

  async answer(caller: Caller, sessionId: string, request: AnswerRequest) {
    const record = requireReadable(await this.get(caller.principal, sessionId));
    const { command, withheld } = await answerCommand(this.#options, caller, record, request);
    const { cursor } = await this.#command(command, record);
    return { cursor, withheld };
  }

  revoke = this.#commands.revoke;
  queue = this.#commands.queue;
  pass = this.#commands.pass;
  fill = this.#commands.fill;
  extend = this.#commands.extend;
  delivered = this.#commands.delivered;
  interrupt = this.#commands.interrupt;
  clientGone = this.#commands.clientGone;
  cancel = this.#commands.cancel;
  close = this.#commands.close;

  async get(principal: Principal, sessionId: string): Promise<SessionRecord> {
    return this.#readers.recovered.get(principal, sessionId);
  }

  list = async (query: SessionQuery) => this.#readers.recovered.list(query);
  takeUnattended: Engine["takeUnattended"] = async (principal) => this.#node.takeUnattended(principal);

  async read(principal: Principal, sessionId: string, from: number, limit: number) {
    const { backend } = this.#options;
    // Checks only `principal`, because the caller has asked for the state or does not need it.
    if ((await backend.rows.principalOf(sessionId)) !== principal) throw sessionNotFound(sessionId);
    this.#node.ownership.refuseTrouble(sessionId);
    return backend.log.read(sessionId, from, limit);
  }

  async wait(principal: Principal, request: WaitRequest): Promise<{ woke: string | undefined }> {
    return this.#readers.recovered.wait(principal, request);
  }

  async enforceGate(): Promise<number> {
    const isOurs = (id: string) => this.#node.connectionOf(id) === this.#connection?.id;
    const mayNot = (record: SessionRecord) => isForbidden(gateUnder(this.#options, record), record);
    return this.#node.suspending.suspendWhere({ isOurs, mayNot }, "forbidden");
  }

  async stop(graceMs: number): Promise<void> {
    await this.#node.stop(graceMs);
  }

  async drain(): Promise<void> {
    await this.stop(0);
    await this.#options.runtime.drain();
    await this.#options.backend.close();
  }

  async #onSession(sessionId: string, command: Command): Promise<AcceptedReply> {
    const reader = SERVICE_COMMANDS.has(command.kind) ? this.#node.serviceReader : this.#readers.recovered;
    return this.#command(command, await reader.get(command.principal, sessionId));
  }

  /** `isPlanned`: the start was checked just now, at the creation of the session. */
  async #command(command: Command, record: SessionRecord, isPlanned = false): Promise<AcceptedReply> {
    if (!startsWork(command, record)) return this.#send(command, record);
    this.#refuseWhileStopping();
    const found = await environmentFor(this.#options, this.#node.ownership, { isPlanned, record });
    this.#node.countFor(record.id, this.#connection?.id);
    return this.#send(withEnvironment(command, found), record);
  }

  async #send(command: Command, record: SessionRecord): Promise<AcceptedReply> {
    this.#connection?.named?.(record.id);
    const reply = await this.#node.ownership.command(command, record);
    if (reply.ok) return reply;
    throw new AppError(reply.refusal.code, reply.refusal.message, { sessionId: record.id });
  }

  #refuseWhileStopping(): void {
    if (!this.#node.isStopping) return;
    throw new AppError("INTERNAL", "The server is shutting down and starts no new work. Try again in a moment.");
  }
}
