import type { Delivered } from "../../../src/domain/command.ts";
import { AppError, sessionNotFound } from "../../../src/domain/error.ts";
import { LOCAL_CALLER, type Caller } from "../../../src/domain/principal.ts";
import type {
  AdoptRequest,
  AnswerRequest,
  Engine,
  OpenSessionRequest,
  PromptRequest,
  SessionUse,
  VerifyRequest,
  WaitRequest,
} from "../../../src/engine/api.ts";
import type { ToolsetSettings } from "../../../src/tools/toolsets.ts";
import { Config } from "../../../src/config/schema.ts";
import type { SessionOptions } from "../../../src/domain/options.ts";
import { statusOf } from "../../../src/domain/session.ts";
import type { SessionQuery, SessionRecord } from "../../../src/engine/ports.ts";
import { startTask } from "../../../src/mcp/tasks/task-id.ts";
import type { ToolCall, ToolDeps } from "../../../src/tools/define.ts";
import { listToolNames } from "../../../src/tools/tool-names.ts";
import { FakeSession, NOW, TURN } from "./fake-session.ts";

export class FakeEngine implements Engine {
  readonly sessions = new Map<string, FakeSession>();
  readonly opened: OpenSessionRequest[] = [];
  readonly answers: AnswerRequest[] = [];
  readonly delivers: Delivered[][] = [];
  readonly waits: WaitRequest[] = [];
  unattended: SessionRecord[] = [];
  readonly queries: SessionQuery[] = [];
  /** Called after a session is opened or prompted. */
  onPrompt: (session: FakeSession, prompt: string) => void = () => undefined;
  onAnswer: (session: FakeSession, answer: AnswerRequest) => void = () => undefined;
  #sleepers: (() => void)[] = [];

  add(id = "s1", spec?: SessionRecord["spec"]): FakeSession {
    const session = new FakeSession(id, this, spec);
    this.sessions.set(id, session);
    return session;
  }

  wake(): void {
    for (const sleeper of this.#sleepers.splice(0)) sleeper();
  }

  forCaller(): this {
    return this;
  }

  atWork() {
    return 0;
  }

  forConnection(): this {
    return this;
  }

  async checkMayConfigure(): Promise<void> {}

  waitingBefore() {
    return Promise.resolve(undefined);
  }

  enforceGate() {
    return Promise.resolve(0);
  }

  create(_: Caller, options: SessionOptions) {
    const { id } = this.add(`s${String(this.sessions.size + 1)}`, options);
    return Promise.resolve({ sessionId: id, withheld: [] as string[] });
  }

  open(_: Caller, request: OpenSessionRequest) {
    this.opened.push(request);
    const session = this.add(`s${String(this.sessions.size + 1)}`, request.options);
    session.emit({ type: "session.opened", data: { cwd: request.options.cwd } });
    session.startTurn();
    this.onPrompt(session, request.prompt.text);
    return Promise.resolve({ sessionId: session.id, cursor: 1, withheld: [] });
  }

  prompt(_: string, sessionId: string, request: PromptRequest) {
    const session = this.#session(sessionId);
    if (session.state.closed) throw new AppError("CANCELLED", "The session was cancelled.", { sessionId });
    if (session.state.turn) throw new AppError("SESSION_BUSY", "The session is busy.", { sessionId });
    const cursor = session.emit({ type: "prompt.queued", data: { promptId: "p", text: request.text } });
    session.startTurn();
    this.onPrompt(session, request.text);
    return Promise.resolve({ cursor });
  }

  async continueTurn() {
    return Promise.resolve({ cursor: 1 });
  }

  async use(): Promise<SessionUse> {
    return Promise.resolve({ account: undefined, reserve: undefined, budgets: [] });
  }

  verify(_: string, sessionId: string, { verify }: VerifyRequest) {
    const session = this.#session(sessionId);
    const cursor = session.emit({
      type: "turn.started",
      data: { turnId: "v", origin: "verify", promptIds: [], ...(verify && { verify }) },
    });
    session.state.turn = { ...TURN, id: "v", origin: "verify" };
    return Promise.resolve({ cursor });
  }

  answer(_: Caller, sessionId: string, request: AnswerRequest) {
    const session = this.#session(sessionId);
    const { requestId } = request;
    const open = session.state.requests.find((each) => each.requestId === requestId);
    if (!open)
      throw new AppError("PERMISSION_REQUEST_NOT_FOUND", `There is no open request ${requestId}.`, { sessionId });
    this.answers.push(request);
    session.state.requests = session.state.requests.filter((each) => each !== open);
    const behavior = request.decision === "deny" ? "deny" : "allow";
    const data = { requestId, toolName: open.toolName, behavior, by: request.by } as const;
    const cursor = session.emit({ type: "permission.answered", data });
    this.onAnswer(session, request);
    return Promise.resolve({ cursor, withheld: [] });
  }

  pass() {
    return Promise.resolve();
  }

  extend() {
    return Promise.resolve();
  }

  fill() {
    return Promise.resolve();
  }

  delivered(_: string, sessionId: string, requests: Delivered[]) {
    this.delivers.push(requests);
    for (const { requestId, whole } of requests) {
      const request = this.#session(sessionId).state.requests.find((open) => open.requestId === requestId);
      if (!request) continue;
      request.seenWhole ||= whole;
      request.deliveredAt ??= NOW;
      request.expiresAt = NOW + 60_000;
    }
    return Promise.resolve();
  }

  async fork(caller: Caller, sessionId: string, request: PromptRequest) {
    const { spec } = this.#session(sessionId).record();
    return this.open(caller, { options: spec, prompt: request });
  }

  async adopt(caller: Caller, { options, prompt }: AdoptRequest) {
    return this.open(caller, { options: { cwd: "/default", ...options }, prompt });
  }

  takeUnattended() {
    return Promise.resolve(this.unattended);
  }

  clientGone() {
    return Promise.resolve();
  }

  interrupt() {
    return Promise.resolve({ cursor: 1 });
  }

  partial = async () => Promise.resolve("");
  workTree = async () => Promise.resolve(undefined);
  pack = async (_: string, id: string) => Promise.resolve({ file: `/packs/${id}.session`, bytes: 1, notes: [] });
  queue = async () => Promise.resolve();
  control = async () => Promise.resolve({});
  revoke = async () => Promise.resolve([]);
  rename = async () => Promise.resolve();
  delete = async () => Promise.resolve();

  cancel(_: string, sessionId: string, { by, reason }: { by: string; reason?: string }) {
    const session = this.#session(sessionId);
    if (session.state.closed) return Promise.resolve();
    session.state.closed = { reason: "cancelled", by, at: NOW, ...(reason !== undefined && { message: reason }) };
    if (session.state.turn) {
      session.endTurn({
        outcome: "cancelled",
        isError: true,
        code: "CANCELLED",
        errorSubtype: "cancelled",
        message: "cancelled by caller",
      });
    }
    session.emit({ type: "session.closed", data: { reason: "cancelled", by } });
    return Promise.resolve();
  }

  close() {
    return Promise.resolve();
  }

  get(_: string, sessionId: string) {
    return Promise.resolve(this.#session(sessionId).record());
  }

  list(query: SessionQuery) {
    this.queries.push(query);
    const { before, limit, statuses } = query;
    const found = [...this.sessions.values()]
      .toReversed()
      .map((session) => session.record())
      .toSorted((a, b) => b.updatedAt - a.updatedAt)
      .filter((record) => statuses?.includes(statusOf(record.state)) ?? true);
    const begin = before ? found.findIndex(({ id }) => id === before.id) + 1 : 0;
    return Promise.resolve(found.slice(begin, begin + limit));
  }

  read(_: string, sessionId: string, from: number, limit: number) {
    const session = this.#session(sessionId);
    const first = Math.max(from, session.trimmedBefore);
    return Promise.resolve(session.events.slice(first - 1, first - 1 + limit).filter(({ id }) => id >= first));
  }

  async wait(_: string, request: WaitRequest): Promise<{ woke: string | undefined }> {
    this.waits.push(request);
    const deadline = performance.now() + request.timeoutMs;
    const patient = request.sessions.some(({ sessionId }) => this.#session(sessionId).state.turn);
    for (;;) {
      const woke = request.sessions.find(({ sessionId, cursor }) => {
        const { events, state } = this.#session(sessionId);
        const news = events.some(({ id, type }) => id >= cursor && (request.until === "event" || NEWS.has(type)));
        const ended = !state.turn && (news || !patient);
        return ended || (request.until !== "end" && news);
      });
      if (woke) return { woke: woke.sessionId };
      if (performance.now() >= deadline || request.signal.aborted) return { woke: undefined };
      await new Promise<void>((resolve) => {
        this.#sleepers.push(resolve);
        const timer = setTimeout(resolve, Math.max(0, deadline - performance.now()));
        request.signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
      });
    }
  }

  stop = async (): Promise<void> => this.drain();

  drain() {
    return Promise.resolve();
  }

  #session(sessionId: string): FakeSession {
    const session = this.sessions.get(sessionId);
    if (!session) throw sessionNotFound(sessionId);
    return session;
  }
}

/** Defaults of a server without settings. */
export const TOOLSET_SETTINGS: ToolsetSettings = {
  query: Config.parse({}).query,
  gate: () => ({ allowsBypass: false, bound: "all" }),
};

const NEWS = new Set(["turn.ended", "permission.asked", "question.asked"]);

export function depsOf(engine: Engine): ToolDeps & { faults: object[] } {
  const faults: object[] = [];
  return {
    engine,
    defaults: { cwd: () => "/default" },
    limits: { maxWaitMs: 45_000 },
    callerApproves: "all",
    diskResume: { allowed: false, secret: undefined },
    folders: () => Promise.resolve([]),
    profilesOf: () => ({}),
    allows: { sensitiveDetails: false },
    bypass: { isAllowed: () => false, set: () => undefined },
    approvalChain: ["caller"],
    callersAnswer: true,
    listed: listToolNames(["all"], { enabled: true }),
    startTask,
    audit: undefined,
    mask: (fields) => fields,
    reported: undefined,
    now: () => NOW,
    outlivesClients: false,
    log: { error: (_, fields) => void faults.push(fields ?? {}), info: () => undefined },
    faults,
  };
}

export function callOf(signal: AbortSignal = new AbortController().signal): ToolCall {
  const client = { elicitation: false, tasks: false } as const;
  return { ...LOCAL_CALLER, signal, client, resumeState: undefined, inputResponses: {} };
}
