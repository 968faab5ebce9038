import type { ControlRequest } from "../../../src/domain/control.ts";
import { AppError } from "../../../src/domain/error.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import type { Decision } from "../../../src/domain/permission.ts";
import type { Account } from "../../../src/domain/plan.ts";
import type { Identity, ShimRef } from "../../../src/domain/process.ts";
import type {
  AgentProcess,
  AgentReattach,
  AgentRuntime,
  AgentSignal,
  AgentStart,
  FoundSession,
  Leftover,
  ShimRelation,
  StartPlan,
  StartRequest,
} from "../../../src/engine/ports.ts";
import { MemoryConversations } from "./memory-conversations.ts";
import { Moments } from "./moments.ts";
import { requestOf, resultSignal } from "./walk.ts";

const NOTHING = { folders: [] };
const UNCHANGED = {
  by: "tree" as const,
  complete: true,
  folders: [],
  files: [],
  commits: [],
  gitFiles: [],
  notSeen: [],
};

/** A Claude Code played by the test, in the engine's terms. */

export class ScriptedProcess implements AgentProcess {
  readonly calls: string[] = [];
  readonly moments = new Moments();
  readonly first: boolean;
  readonly rerun: boolean;
  readonly processTag: string;
  readonly sessionId: string;
  /** Environment and `policy` it was started with. */
  readonly environmentId: string;
  readonly policy: AgentStart["policy"];
  readonly #onSignal: AgentStart["onSignal"];
  readonly #outlives: boolean;
  /** Numbers of acknowledged lines, in order. */
  readonly acknowledged: number[] = [];
  readonly decisions: Decision[] = [];
  promptId = "";
  gone = false;
  /** Resolves once a process that waits for its admission has begun, or failed. */
  begun: Promise<void> = Promise.resolve();

  /** `begins`: first signals; without any, the process never starts. */
  constructor(
    { admitted, environmentId, first, policy, processTag, onSignal, rerunOf, sessionId }: AgentStart,
    begins: readonly AgentSignal[] = [],
    waits = false,
  ) {
    this.environmentId = environmentId;
    this.policy = policy;
    this.first = first;
    this.rerun = rerunOf !== undefined;
    this.processTag = processTag;
    this.sessionId = sessionId;
    this.#onSignal = onSignal;
    this.#outlives = begins.some((signal) => signal.type === "attached" || (signal.type === "started" && signal.shim));
    const begin = () => this.say(...begins, { type: "ready" });
    const fail = (error: Error) => this.say({ type: "exited", code: null, signal: null, error: error.message });
    if (waits) this.begun = admitted.then(begin, fail);
    else if (begins.length > 0) queueMicrotask(begin);
  }

  holdTools = (): void => undefined;

  push = ({ id, text }: { id: string; text: string }): void => {
    this.promptId = id;
    this.#note(`push ${text}`);
  };
  sendAgain = (id: string): void => {
    this.promptId = id;
    this.#note("send again");
  };
  control = async (request: ControlRequest): Promise<JsonObject> => {
    this.#note(`control ${request.do}`);
    return Promise.resolve({ did: request.do });
  };
  judge = async () => Promise.resolve({ denying: [] });
  answer = (id: string, decision: Decision): void => {
    this.decisions.push(decision);
    this.#note(`answer ${id} ${decision.behavior}`);
  };
  interrupt = (): void => this.#note("interrupt");
  stop = (): void => this.#end("stop", { code: 0, signal: null });
  acknowledge = (line: number): void => {
    this.acknowledged.push(line);
    this.moments.ring();
  };
  letGo = (): void => {
    if (this.#outlives) this.#note("let go");
    else this.kill();
  };
  kill = (): void => this.#end("kill", { code: null, signal: "SIGKILL" });
  say(...signals: AgentSignal[]): void {
    for (const signal of signals) this.#onSignal(signal);
  }

  /** Sends the signals of line number `line`; the last signal carries the number. */
  sayLine(line: number, ...signals: AgentSignal[]): void {
    for (const [index, signal] of signals.entries()) {
      this.#onSignal(signal, ...(index === signals.length - 1 ? [line] : []));
    }
  }

  ask(requestId: string, over = {}): void {
    this.say({ type: "asked", request: requestOf(requestId, over) });
  }

  /** Sends the result and the end of the turn. */
  finish(text = "Done."): void {
    this.say(resultSignal({ text, promptIds: [this.promptId] }), { type: "idle" });
  }

  async waitForCall(call: string): Promise<void> {
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
  /** Leftovers of a dead owner that the engine ended; `mayEnd` resolves when that has succeeded. */
  readonly leftovers: Leftover[] = [];
  mayEnd: Promise<void> = Promise.resolve();
  /** Times given by `leaseRenewed`. */
  readonly leases: number[] = [];
  leaseRenewed = (forMs: number): void => void this.leases.push(forMs);
  identity: Identity = { configFolder: "/home/ann/.claude", paidBy: "ANTHROPIC_API_KEY" };

  /** Account of every environment record. */
  account: Account = { id: "account:ann", hasWindows: true, ...this.identity };

  /** Environment records besides the server's own, whose identity is `identity`. */
  readonly records = new Map<string, Identity>();
  /** Held records, as "SESSION RECORD". */
  readonly held: string[] = [];
  /** True for a session whose record is kept. */
  keepsRecord: (sessionId: string) => boolean = () => false;
  /** Finds the record of a new client. */
  findRecord: AgentRuntime["environments"]["find"] = async () => Promise.resolve(undefined);
  environments: AgentRuntime["environments"] = {
    identityOf: (id) => (id === "" ? this.identity : this.records.get(id)),
    accountOf: async () => Promise.resolve(this.account),
    hold: (sessionId, id) => void (this.records.has(id) && this.held.push(`${sessionId} ${id}`)),
    keepWhile: (isAtWork) => void (this.keepsRecord = isAtWork),
    find: async (...about) => this.findRecord(...about),
  };

  readonly conversations = new MemoryConversations();

  pack: AgentRuntime["pack"] = async ({ transcriptId }) =>
    Promise.resolve({ file: `/packs/${transcriptId}.session`, bytes: 1, notes: [] });

  readonly found = new Map<string, FoundSession>();

  /** Principals unknown to this server. */
  readonly unknownPrincipals = new Set<string>();
  /** Number of calls of `plan`. */
  plans = 0;
  plan = async ({ environmentId, principal }: StartRequest): Promise<StartPlan> => {
    this.plans += 1;
    if (this.unknownPrincipals.has(principal))
      throw new AppError("PERMISSION_DENIED", `This server has no user ${principal}.`);
    return Promise.resolve({ identity: this.records.get(environmentId) ?? this.identity, openIn: this.openIn });
  };
  /** Process that has each session open; result of `plan`. */
  openIn: StartPlan["openIn"];
  checkFolders = async (_: unknown, folders: readonly string[]) => Promise.resolve([...folders]);
  judge = async () => Promise.resolve({});
  workTree = async () => Promise.resolve(undefined);
  /** Folders in which nothing ever changes. */
  folders: AgentRuntime["folders"] = {
    look: async () => Promise.resolve(NOTHING),
    compare: async () => Promise.resolve({ ...UNCHANGED, after: NOTHING }),
    differences: () => 0,
    forget: async () => Promise.resolve(),
  };
  /** Commands that pass. */
  checks: AgentRuntime["checks"] = {
    refusal: () => undefined,
    judge: async (_, commands) => Promise.resolve(commands.map(() => ({}))),
    run: async () => Promise.resolve({ status: "passed", commands: [] }),
  };
  installMissing: AgentRuntime["installMissing"] = async () => Promise.resolve();
  attach = async (): Promise<[]> => Promise.resolve([]);
  find = async (id: string): Promise<FoundSession | undefined> => Promise.resolve(this.found.get(id));
  /** If set, new processes outlive this server. */
  shim: ShimRef | undefined;
  /** If set, new processes never send `ready`. */
  hangs = false;
  /** If set, new processes start once admitted, as those of Claude Code do. */
  waits = false;
  /** Result of `shimRelation` for shims of other servers. */
  relationToShims: ShimRelation = "gone";
  /** Number of lines lost when this server attaches; sent with `attached`. */
  lostLines = 0;
  readonly reattached: AgentReattach[] = [];
  whyGone: AgentRuntime["whyGone"] = async () => Promise.resolve(undefined);

  shimRelation: AgentRuntime["shimRelation"] = async (process) =>
    Promise.resolve(process.phase === "none" || !process.shim ? "gone" : this.relationToShims);
  reattach = (request: AgentReattach): ScriptedProcess => {
    this.reattached.push(request);
    return this.#have(new ScriptedProcess(request, [{ type: "attached", lost: this.lostLines }]));
  };
  endLeftover = async (leftover: Leftover): Promise<void> => {
    this.leftovers.push(leftover);
    this.moments.ring();
    await this.mayEnd;
  };
  endAllLeftovers = async (): Promise<number> => Promise.resolve(0);
  spares = { available: 0, retire: async (): Promise<void> => Promise.resolve() };
  start = (request: AgentStart): ScriptedProcess => {
    const shim = this.shim && { shim: this.shim };
    const started = {
      type: "started",
      pid: 4711,
      startedAt: "77",
      identity: this.records.get(request.environmentId) ?? this.identity,
      host: "m",
      resumed: !request.first,
      ...shim,
    } as const;
    return this.#have(new ScriptedProcess(request, this.hangs ? [] : [started], this.waits));
  };
  drain = async (): Promise<void> => {
    for (const process of this.processes) await process.moments.until(() => process.gone);
  };

  /** Returns the last process started for `sessionId`. */
  lastProcess(sessionId: string): ScriptedProcess {
    const found = this.processes.findLast((process) => process.sessionId === sessionId);
    if (!found) throw new Error(`no process was started for session ${sessionId}`);
    return found;
  }

  #have(process: ScriptedProcess): ScriptedProcess {
    this.processes.push(process);
    this.moments.ring();
    return process;
  }

  async started(count: number): Promise<void> {
    await this.moments.until(() => this.processes.length >= count);
  }
}
