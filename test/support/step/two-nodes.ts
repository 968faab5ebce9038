import type { EngineOptions } from "../../../src/engine/node.ts";
import type { ControlRequest } from "../../../src/domain/control.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import type { SessionOptions } from "../../../src/domain/options.ts";
import { AppError } from "../../../src/domain/error.ts";
import { LOCAL_CALLER, LOCAL_PRINCIPAL } from "../../../src/domain/principal.ts";
import type { Identity } from "../../../src/domain/session.ts";
import type { StoredEvent } from "../../../src/domain/event.ts";
import type { Engine } from "../../../src/engine/api.ts";
import { createEngine } from "../../../src/engine/engine.ts";
import type {
  AgentProcess,
  AgentReattach,
  AgentRuntime,
  AgentSignal,
  AgentStart,
  FoundSession,
  Leftover,
  StartPlan,
  StartRequest,
} from "../../../src/engine/ports.ts";
import type { Clock, SessionBackend } from "../../../src/engine/ports.ts";
import { createMemoryStore } from "../../../src/store/memory.ts";
import { OPEN_GATE } from "../open-gate.ts";
import { Moments } from "./moments.ts";
import { ManualClock } from "./clock.ts";
import { requestOf, POLICY, resultSignal } from "./walk.ts";

/** Engines on one memory store, with a clock and a Claude Code that the test controls, and the interval of their sweeps. */
export const SWEEP_MS = 3_600_000;

export const OPTIONS = { cwd: "/repo" };

export class ScriptedProcess implements AgentProcess {
  readonly calls: string[] = [];
  readonly moments = new Moments();
  readonly first: boolean;
  readonly rerun: boolean;
  readonly processTag: string;
  readonly sessionId: string;
  readonly #onSignal: (signal: AgentSignal) => void;
  promptId = "";
  gone = false;

  constructor({ first, processTag, onSignal, rerunOf, sessionId }: AgentStart) {
    this.first = first;
    this.rerun = rerunOf !== undefined;
    this.processTag = processTag;
    this.sessionId = sessionId;
    this.#onSignal = onSignal;
    queueMicrotask(() => this.say({ type: "started", pid: 4711, startedAt: "77", resumed: !first }, { type: "ready" }));
  }

  push = ({ id, text }: { id: string; text: string }): void => {
    this.promptId = id;
    this.#note(`push ${text}`);
  };
  control = async (request: ControlRequest): Promise<JsonObject> => {
    this.#note(`control ${request.do}`);
    return Promise.resolve({ did: request.do });
  };
  judge = async () => Promise.resolve({ denying: [] });
  answer = (id: string, { behavior }: { behavior: string }): void => this.#note(`answer ${id} ${behavior}`);
  interrupt = (): void => this.#note("interrupt");
  stop = (): void => this.#end("stop", { code: 0, signal: null });
  acknowledge = (): void => undefined;
  kill = (): void => this.#end("kill", { code: null, signal: "SIGKILL" });
  say(...signals: AgentSignal[]): void {
    for (const signal of signals) this.#onSignal(signal);
  }

  ask(requestId: string, over = {}): void {
    this.say({ type: "asked", request: requestOf(requestId, over) });
  }

  /** The whole rest of a turn. */
  finish(text = "Done."): void {
    this.say(resultSignal({ text, promptIds: [this.promptId] }), { type: "idle" });
  }

  async called(call: string): Promise<void> {
    await this.moments.until(() => this.calls.includes(call));
  }

  #note(call: string): void {
    this.calls.push(call);
    this.moments.ring();
  }

  #end(how: string, exit: { code: number | null; signal: string | null }): void {
    this.#note(how);
    if (this.gone) return;
    this.gone = true;
    this.moments.ring();
    this.say({ type: "exited", ...exit });
  }
}

export class ScriptedRuntime implements AgentRuntime {
  readonly processes: ScriptedProcess[] = [];
  readonly moments = new Moments();
  /** Leftovers of a dead owner that were to be ended; `mayEnd` says when that has succeeded. */
  readonly leftovers: Leftover[] = [];
  mayEnd: Promise<void> = Promise.resolve();
  identity: Identity = { configFolder: "/home/ann/.claude", paidBy: "ANTHROPIC_API_KEY" };

  readonly found = new Map<string, FoundSession>();

  /** Principals that this server does not know. */
  readonly unknown = new Set<string>();
  /** Number of calls of `plan`. */
  plans = 0;
  plan = async ({ principal }: StartRequest): Promise<StartPlan> => {
    this.plans += 1;
    if (this.unknown.has(principal)) throw new AppError("PERMISSION_DENIED", `This server has no user ${principal}.`);
    return Promise.resolve({ identity: this.identity });
  };
  checkFolders = async (_: unknown, folders: readonly string[]) => Promise.resolve([...folders]);
  judge = async () => Promise.resolve({});
  workTree = async () => Promise.resolve(undefined);
  attach = async (): Promise<[]> => Promise.resolve([]);
  find = async (_: string, id: string): Promise<FoundSession | undefined> => Promise.resolve(this.found.get(id));
  shimOf = async () => Promise.resolve("gone" as const);
  reattach = (request: AgentReattach): ScriptedProcess => this.start(request);
  endLeftover = async (leftover: Leftover): Promise<void> => {
    this.leftovers.push(leftover);
    this.moments.ring();
    await this.mayEnd;
  };
  endAllLeftovers = async (): Promise<number> => Promise.resolve(0);
  spares = { available: 0, retire: async (): Promise<void> => Promise.resolve() };
  start = (request: AgentStart): ScriptedProcess => {
    const process = new ScriptedProcess(request);
    this.processes.push(process);
    this.moments.ring();
    return process;
  };
  drain = async (): Promise<void> => {
    for (const process of this.processes) await process.moments.until(() => process.gone);
  };

  /** The last process that was started for a session. */
  of(sessionId: string): ScriptedProcess {
    const found = this.processes.findLast((process) => process.sessionId === sessionId);
    if (!found) throw new Error(`no process was started for session ${sessionId}`);
    return found;
  }

  async started(count: number): Promise<void> {
    await this.moments.until(() => this.processes.length >= count);
  }
}

export class TestNode {
  readonly engine: Engine;
  readonly runtime = new ScriptedRuntime();
  readonly backend: SessionBackend;
  /** Log entries of this node at warn and error. */
  readonly complaints: string[] = [];
  #dead = false;

  constructor(
    backend: SessionBackend,
    clock: Clock,
    { bypass = false, unattended }: { bypass?: boolean; unattended?: EngineOptions["unattended"] } = {},
  ) {
    this.backend = backend;
    const after: Clock["after"] = (ms, callback) => clock.after(ms, () => this.#dead || callback());
    const complain = (message: string): void => void this.complaints.push(message);
    const silent = (): void => undefined;
    this.engine = createEngine({
      backend,
      runtime: this.runtime,
      clock: { now: () => clock.now(), tick: () => clock.tick(), after },
      log: { debug: silent, info: silent, warn: complain, error: complain },
      mask: (event) => event,
      limits: { ...POLICY, approvalChain: ["caller"] },
      initMs: POLICY.initMs,
      processLimits: { maxLive: 100, maxStarting: 100, maxBackground: 50 },
      retention: { maxAgeMs: 1e12, maxBytes: 1e9, everyMs: SWEEP_MS },
      gate: { ...OPEN_GATE, allowsBypass: () => bypass },
      unattended,
    });
  }

  /** From now on no timer fires here: no lease is renewed. */
  die(): void {
    this.#dead = true;
  }

  async open(
    prompt = "begin",
    idempotencyKey?: string,
    over: Partial<SessionOptions> = {},
    principal = LOCAL_PRINCIPAL,
  ): Promise<string> {
    const request = {
      options: { ...OPTIONS, ...over },
      prompt: { text: prompt, ...(idempotencyKey !== undefined && { idempotencyKey }) },
    };
    return (await this.engine.open({ ...LOCAL_CALLER, principal }, request)).sessionId;
  }

  /** A session of this node with an open permission request. */
  async asked(): Promise<string> {
    const id = await this.open();
    this.runtime.of(id).say({ type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" });
    this.runtime.of(id).ask("r1");
    await this.seen(id, "permission.asked");
    return id;
  }

  async log(sessionId: string): Promise<StoredEvent[]> {
    return this.engine.read("local", sessionId, 1, 1000);
  }

  async story(sessionId: string): Promise<string> {
    return (await this.log(sessionId)).map(({ type }) => type).join(" ");
  }

  /** The `nth` event of a type, as soon as it is there. */
  async seen<T extends StoredEvent["type"]>(sessionId: string, type: T, nth = 1) {
    let count = 0;
    for await (const event of this.backend.log.tail(sessionId, 1, new AbortController().signal)) {
      if (event.type === type && ++count === nth) return event as Extract<StoredEvent, { type: T }>;
    }
    throw new Error("the log has ended");
  }
}

/** The reasons of the rejections; undefined for each that was fulfilled. */
export async function errorsOf(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  return Promise.all(
    calls.map(async (call) =>
      call.then(
        () => undefined,
        (error: unknown) => error,
      ),
    ),
  );
}

/** Methods of a test that replace those of the store. */
export type Between = (backend: SessionBackend) => {
  [P in "inbox" | "leases" | "log" | "rows"]?: Partial<SessionBackend[P]>;
};

/** While it is closed, callers wait until it is opened. */
export class Gate {
  #open: () => void = () => undefined;
  #arrive: () => void = () => undefined;
  readonly #opened = new Promise<void>((resolve) => (this.#open = resolve));
  readonly arrived = new Promise<void>((resolve) => (this.#arrive = resolve));
  closed = false;

  async pass(): Promise<void> {
    if (!this.closed) return;
    this.#arrive();
    await this.#opened;
  }

  open(): void {
    this.closed = false;
    this.#open();
  }
}

/** Nothing is stored while the gate is closed. */
export const gatedAppend =
  (gate: Gate): Between =>
  (backend) => ({ log: { append: async (...args) => gate.pass().then(async () => backend.log.append(...args)) } });

export interface World {
  readonly clock: ManualClock;
  readonly a: TestNode;
  readonly b: TestNode;
  /** One more node. */
  connect(nodeId: string, between?: Between): TestNode;
  close(): Promise<void>;
}

export function twoNodes(between: { a?: Between; b?: Between } = {}): World {
  const clock = new ManualClock();
  const store = createMemoryStore(clock);
  const nodes: TestNode[] = [];
  const connect = (nodeId: string, stands: Between = () => ({})): TestNode => {
    const backend = store.connect(nodeId);
    const node = new TestNode(put(stands(backend), backend), clock);
    nodes.push(node);
    return node;
  };
  const close = async () => void (await Promise.all(nodes.map(async ({ backend }) => backend.close())));
  return { clock, a: connect("a", between.a), b: connect("b", between.b), connect, close };
}

function put(instead: ReturnType<Between>, backend: SessionBackend): SessionBackend {
  return {
    ...backend,
    rows: { ...backend.rows, ...instead.rows },
    log: { ...backend.log, ...instead.log },
    leases: { ...backend.leases, ...instead.leases },
    inbox: { ...backend.inbox, ...instead.inbox },
  };
}
