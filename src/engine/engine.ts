import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Bound } from "../domain/approvals/risk.ts";
import type { Command, CommandReply, Delivered } from "../domain/command.ts";
import type { ControlRequest } from "../domain/control.ts";
import { AppError, sessionNotFound } from "../domain/error.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Caller, Principal } from "../domain/principal.ts";
import type { SessionOptions } from "../domain/options.ts";
import { optionsOf } from "../domain/session.ts";
import type {
  AdoptRequest,
  AnswerRequest,
  Engine,
  OpenRequest,
  PassRequest,
  PromptRequest,
  WaitRequest,
} from "./api.ts";
import { adopted, createSession, forkOf, newSession, promptCommand, type Beginning } from "./verbs/beginnings.ts";
import { Admission, type Places, type Rest } from "./admission.ts";
import { answerCommand } from "./verbs/answering.ts";
import { boundOf, checkModeWithin } from "./bounds/bound.ts";
import { withinBound, type Withheld } from "./bounds/options.ts";
import { checkGiven, checkMode, checkOptions, isBarred, startsWork, type Gate } from "./gate.ts";
import { checkIdentity, checkPrompt } from "./verbs/prompting.ts";
import { deleteClosed, rename } from "./verbs/rows.ts";
import { keepHouse, type Retention } from "./housekeeping.ts";
import { isAbandoned, Ownership, type OwnershipOptions } from "./ownership.ts";
import type { SessionQuery, SessionRecord, WorkTree } from "./ports.ts";
import { lookEvery, waitForOne } from "./verbs/waiting.ts";

/** How often a waiting call looks whether the owner still lives, ms. */
const LOOK_MS = 1_000;

export interface EngineOptions extends Omit<OwnershipOptions, "admission"> {
  readonly places: Places;
  readonly gate: Gate;
  readonly retention: Retention;
}

/** One node: it owns the sessions it has opened or claimed, and reaches all others through the store. */
export function createEngine(options: EngineOptions): Engine {
  return new Node(options);
}

/** What a command that was carried out is answered with. */
type Done = Extract<CommandReply, { ok: true }>;

class Node implements Engine {
  readonly #options: EngineOptions;
  readonly #admission: Admission;
  readonly #ownership: Ownership;
  readonly #stopHousekeeping: () => Promise<void>;
  #stopping = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    const mayRun = async (record: SessionRecord) =>
      checkPrompt(this.#options, this.#ownership, record).then(
        () => true,
        () => false,
      );
    const rest: Rest = async (record, why) => this.#ownership.rest(record, why);
    this.#admission = new Admission({ ...options, spares: options.runtime.spares, rest });
    this.#ownership = new Ownership({ ...options, admission: this.#admission }, mayRun);
    const recoverAbandoned = async () => this.#ownership.recoverAbandoned();
    this.#stopHousekeeping = keepHouse({ ...options, recoverAbandoned }, options.retention);
  }

  async create(caller: Caller, given: SessionOptions) {
    const { options, withheld } = await this.#admit(caller, given);
    const beginning = await newSession(this.#options.runtime, caller.principal, options);
    const { record } = await createSession(this.#options, caller.principal, beginning, undefined);
    return { sessionId: record.id, withheld };
  }

  async open(caller: Caller, { fromOperator, options: given, prompt }: OpenRequest) {
    const { options, withheld } = await this.#admit(caller, given);
    const spec = { ...options, ...fromOperator };
    const beginning = await newSession(this.#options.runtime, caller.principal, spec);
    return { ...(await this.#begin(caller.principal, beginning, prompt)), withheld };
  }

  async fork(caller: Caller, sessionId: string, request: PromptRequest) {
    const source = await this.get(caller.principal, sessionId);
    await this.#checkStart(caller.principal, optionsOf(source.spec, source.state));
    await checkIdentity(this.#options, source);
    const { resumeAt: _, ...prompt } = request;
    return this.#beginWithin(caller, forkOf(source, request), prompt);
  }

  async adopt(caller: Caller, request: AdoptRequest) {
    const { principal } = caller;
    checkGiven(this.#options.gate, caller, request.options);
    const beginning = await adopted(this.#options, principal, request);
    await this.#checkStart(principal, beginning.spec);
    const { resumeAt: _, ...prompt } = request.prompt;
    return this.#beginWithin(caller, beginning, prompt);
  }

  /** The options as this caller may have them. */
  async #admit(caller: Caller, options: SessionOptions): Promise<Withheld<SessionOptions>> {
    checkGiven(this.#options.gate, caller, options);
    await this.#checkStart(caller.principal, options);
    return withinBound(options, this.#boundOf(caller, options));
  }

  #boundOf(caller: Caller, { callerApproves }: Pick<SessionOptions, "callerApproves">): Bound {
    return boundOf(this.#options.gate.callerApproves, caller, callerApproves);
  }

  async #checkStart(principal: Principal, options: SessionOptions): Promise<void> {
    this.#refuseWhileStopping();
    checkOptions(this.#options.gate, options);
    await this.#options.runtime.check(principal, options);
    await this.#ownership.beAlive();
  }

  async #beginWithin(caller: Caller, beginning: Beginning, prompt: PromptRequest) {
    const { options: spec, withheld } = withinBound(beginning.spec, this.#boundOf(caller, beginning.spec));
    return { ...(await this.#begin(caller.principal, { ...beginning, spec }, prompt)), withheld };
  }

  async #begin(principal: Principal, beginning: Beginning, prompt: PromptRequest) {
    // What is wrong with the prompt is told before there is a session.
    const command = await promptCommand(this.#options, principal, beginning, prompt);
    const { created, record } = await createSession(this.#options, principal, beginning, prompt.idempotencyKey);
    // Somebody else has made a session of Claude Code his own before.
    if (record.principal !== principal) throw sessionNotFound(record.id);
    // A retry gives the prompt only where the first try died before it could; whoever was second to find it gives his own.
    if (created || record.state.lastEventId === 0 || record.id === beginning.id) {
      await this.#command(command, record);
    }
    return { sessionId: record.id, cursor: 1 };
  }

  async prompt(principal: Principal, sessionId: string, request: PromptRequest): Promise<{ cursor: number }> {
    const record = await this.get(principal, sessionId);
    const { cursor } = await this.#command(await promptCommand(this.#options, principal, record, request), record);
    return { cursor };
  }

  async queue(principal: Principal, sessionId: string, request: { do: "release" | "drop"; by: string }): Promise<void> {
    await this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "queue", data: request });
  }

  async control(caller: Caller, sessionId: string, request: ControlRequest, by: string): Promise<JsonObject> {
    const { principal } = caller;
    if (request.do === "configure") checkMode(this.#options.gate, request.permissionMode);
    const record = await this.get(principal, sessionId);
    if (request.do === "configure") checkModeWithin(request.permissionMode, this.#boundOf(caller, record.spec));
    const { data = {} } = await this.#command(
      { id: randomUUID(), principal, kind: "control", data: { by, request } },
      record,
    );
    return data;
  }

  async waitingBefore(sessionId: string): Promise<number | undefined> {
    return this.#admission.before(sessionId);
  }

  partial(sessionId: string): string {
    return this.#ownership.partial(sessionId);
  }

  async workTree(principal: Principal, sessionId: string): Promise<WorkTree | undefined> {
    const { spec } = await this.get(principal, sessionId);
    return this.#options.runtime.workTree(principal, spec);
  }

  async rename(principal: Principal, sessionId: string, title: string): Promise<void> {
    await rename(this.#options.backend, async () => this.get(principal, sessionId), title);
  }

  async delete(principal: Principal, sessionId: string, by: string): Promise<void> {
    const record = await this.get(principal, sessionId);
    if (record.state.turn) {
      throw new AppError("SESSION_BUSY", "A turn runs in the session. Cancel or interrupt it first.", { sessionId });
    }
    await this.close(principal, sessionId, by);
    await deleteClosed(this.#options, sessionId);
  }

  async answer(caller: Caller, sessionId: string, request: AnswerRequest) {
    const record = await this.get(caller.principal, sessionId);
    const { command, withheld } = await answerCommand(this.#options, caller, record, request);
    const { cursor } = await this.#command(command, record);
    return { cursor, withheld };
  }

  async revoke(principal: Principal, sessionId: string, request: { rule?: string; by: string }): Promise<string[]> {
    const command: Command = { id: randomUUID(), principal, kind: "revoke", data: request };
    const { data } = await this.#onSession(principal, sessionId, command);
    return z.object({ revoked: z.array(z.string()) }).parse(data).revoked;
  }

  async pass(principal: Principal, sessionId: string, request: PassRequest): Promise<void> {
    await this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "pass", data: request });
  }

  async delivered(principal: Principal, sessionId: string, asks: Delivered[]): Promise<void> {
    if (asks.length === 0) return;
    await this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "delivered", data: { asks } });
  }

  async interrupt(principal: Principal, sessionId: string, by: string, promptId?: string) {
    const data = { by, ...(promptId !== undefined && { promptId }) };
    return this.#onSession(principal, sessionId, { id: randomUUID(), principal, kind: "interrupt", data });
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
    this.#refuseTrouble(sessionId);
    return isAbandoned(record) ? this.#ownership.recover(record) : record;
  }

  #refuseTrouble(sessionId: string): void {
    const trouble = this.#ownership.trouble(sessionId);
    if (trouble) throw new AppError(trouble.code, trouble.message, { sessionId });
  }

  async list(query: SessionQuery): Promise<SessionRecord[]> {
    const records = await this.#options.backend.list(query);
    return Promise.all(records.map(async (record) => (isAbandoned(record) ? this.#ownership.recover(record) : record)));
  }

  async read(principal: Principal, sessionId: string, from: number, limit: number) {
    const { backend } = this.#options;
    // Whose it is decides; what state it is in, the caller has asked for or does not want to know.
    if ((await backend.principalOf(sessionId)) !== principal) throw sessionNotFound(sessionId);
    this.#refuseTrouble(sessionId);
    return backend.read(sessionId, from, limit);
  }

  async wait(principal: Principal, request: WaitRequest): Promise<{ woke: string | undefined }> {
    const look = async () => {
      for (const { sessionId } of request.sessions) await this.get(principal, sessionId);
    };
    await look();
    const stopLooking = lookEvery(LOOK_MS, look, this.#options);
    try {
      return { woke: await waitForOne(this.#options.backend, request) };
    } finally {
      stopLooking();
    }
  }

  async enforceGate(): Promise<number> {
    return this.#ownership.restWhere((record) => isBarred(this.#options.gate, record), "barred");
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    await this.#ownership.quiet(graceMs);
    await this.#stopHousekeeping();
    await this.#ownership.drain();
  }

  async drain(): Promise<void> {
    await this.stop(0);
    await this.#options.runtime.drain();
    await this.#options.backend.close();
  }

  async #onSession(principal: Principal, sessionId: string, command: Command): Promise<Done> {
    return this.#command(command, await this.get(principal, sessionId));
  }

  async #command(command: Command, record: SessionRecord): Promise<Done> {
    if (startsWork(command, record)) {
      this.#refuseWhileStopping();
      await checkPrompt(this.#options, this.#ownership, record);
    }
    const reply = await this.#ownership.command(command, record);
    if (reply.ok) return reply;
    throw new AppError(reply.refusal.code, reply.refusal.message, { sessionId: record.id });
  }

  #refuseWhileStopping(): void {
    if (!this.#stopping) return;
    throw new AppError("INTERNAL", "The server is shutting down and begins nothing more. Try again in a moment.");
  }
}
