import { memoryStore } from "../store/memory.ts";
import type { EngineOptions } from "../../../src/engine/engine-node.ts";
import type { SessionOptions } from "../../../src/domain/options.ts";
import { LOCAL_CALLER, LOCAL_PRINCIPAL } from "../../../src/domain/principal.ts";
import type { StoredEvent } from "../../../src/domain/event.ts";
import type { Engine } from "../../../src/engine/api.ts";
import { createEngine } from "../../../src/engine/engine.ts";
import type { Clock, SessionBackend } from "../../../src/engine/ports.ts";
import { OPEN_GATE, OPERATOR } from "../sessions/open-gate.ts";
import { ManualClock } from "./clock.ts";
import { ScriptedRuntime } from "./scripted-runtime.ts";
import { SHIM } from "./walk.ts";

/** Engines on one memory store, with a clock and a Claude Code controlled by the test. `SWEEP_MS`: interval of their sweeps. */
export const SWEEP_MS = 3_600_000;

/** Time after which a node that no longer renews its leases loses its sessions, ms. */
export const LEASE_MS = 30_000;

export const OPTIONS = { cwd: "/repo" };

interface NodeOptions extends Partial<Pick<EngineOptions, "mask" | "receipts" | "unattended" | "useOf">> {
  readonly bypass?: boolean;
  readonly limits?: Partial<EngineOptions["limits"]>;
}

export class TestNode {
  readonly engine: Engine;
  readonly runtime = new ScriptedRuntime();
  readonly backend: SessionBackend;
  /** Messages of this node at levels `warn` and `error`. */
  readonly complaints: string[] = [];
  #dead = false;

  constructor(
    backend: SessionBackend,
    clock: Clock,
    { bypass = false, limits, mask = (event) => event, receipts = false, unattended, useOf }: NodeOptions = {},
  ) {
    this.backend = backend;
    const after: Clock["after"] = (ms, callback) => clock.after(ms, () => this.#dead || callback());
    const complain = (message: string): void => void this.complaints.push(message);
    const silent = (): void => undefined;
    this.engine = createEngine({
      backend,
      runtime: this.runtime,
      clock: { now: () => clock.now(), tick: () => clock.tick(), elapsed: () => clock.elapsed(), after },
      log: { debug: silent, info: silent, warn: complain, error: complain },
      mask,
      receipts,
      ...OPERATOR,
      limits: { ...OPERATOR.limits, ...limits },
      processLimits: { maxLive: 100, maxStarting: 100, maxBackground: 50 },
      retention: { maxAgeMs: 1e12, maxBytes: 1e9, everyMs: SWEEP_MS },
      gate: { ...OPEN_GATE, allowsBypass: () => bypass },
      unattended,
      ...(useOf && { useOf }),
    });
  }

  /** Stops all timers of this node: no lease is renewed. */
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

  /** Opens a session with an open permission request. */
  async openWithRequest(): Promise<string> {
    const id = await this.open();
    this.runtime.lastProcess(id).say({ type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" });
    this.runtime.lastProcess(id).ask("r1");
    await this.waitForEvent(id, "permission.asked");
    return id;
  }

  /** Opens a session that is idle, with a live process. */
  async openIdle(over: Partial<SessionOptions> = {}, principal?: string): Promise<string> {
    const id = await this.open("begin", undefined, over, principal);
    this.runtime.lastProcess(id).finish();
    await this.waitForEvent(id, "turn.ended");
    return id;
  }

  async log(sessionId: string): Promise<StoredEvent[]> {
    return this.engine.read("local", sessionId, 1, 1000);
  }

  async story(sessionId: string): Promise<string> {
    return (await this.log(sessionId)).map(({ type }) => type).join(" ");
  }

  /** Resolves with the `nth` event of a type once it is stored. */
  async waitForEvent<T extends StoredEvent["type"]>(sessionId: string, type: T, nth = 1) {
    let count = 0;
    for await (const event of this.backend.log.tail(sessionId, 1, new AbortController().signal)) {
      if (event.type === type && ++count === nth) return event as Extract<StoredEvent, { type: T }>;
    }
    throw new Error("the log has ended");
  }
}

/** Returns the reasons of the rejections; `undefined` for each fulfilled call. */
export async function collectErrors(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  return Promise.all(
    calls.map(async (call) =>
      call.then(
        () => undefined,
        (error: unknown) => error,
      ),
    ),
  );
}

/** Replacements for methods of the store. */
export type BackendOverride = (backend: SessionBackend) => {
  [P in "inbox" | "leases" | "log" | "rows"]?: Partial<SessionBackend[P]>;
} & Pick<SessionBackend, "machines">;

/** While `closed`, `pass` waits for `open`. */
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

/** Delays all appends while the gate is closed. */
export const gatedAppend =
  (gate: Gate): BackendOverride =>
  (backend) => ({ log: { append: async (...args) => gate.pass().then(async () => backend.log.append(...args)) } });

export interface World {
  readonly clock: ManualClock;
  readonly a: TestNode;
  readonly b: TestNode;
  /** Connects another node. */
  connect(nodeId: string, between?: BackendOverride, options?: NodeOptions): TestNode;
  close(): Promise<void>;
}

export function twoNodes(between: { a?: BackendOverride; b?: BackendOverride } = {}): World {
  const clock = new ManualClock();
  const store = memoryStore(clock);
  const nodes: TestNode[] = [];
  const connect: World["connect"] = (nodeId, stands = () => ({}), options = {}) => {
    const backend = store.connect(nodeId);
    const node = new TestNode(withReplacements(stands(backend), backend), clock, options);
    nodes.push(node);
    return node;
  };
  const close = async () => void (await Promise.all(nodes.map(async ({ backend }) => backend.close())));
  return { clock, a: connect("a", between.a), b: connect("b", between.b), connect, close };
}

/** Like `twoNodes`, with Claude Code in a shim to which node b can attach. */
export function nodesWithShim(between?: { a?: BackendOverride; b?: BackendOverride }): World {
  const world = twoNodes(between);
  for (const { runtime } of [world.a, world.b]) runtime.shim = SHIM;
  world.b.runtime.relationToShims = "ours";
  return world;
}

/** Signal for a message of Claude Code. */
export const message = (text: string) => ({ type: "message", message: { type: "assistant", text } }) as const;

export function withReplacements(instead: ReturnType<BackendOverride>, backend: SessionBackend): SessionBackend {
  return {
    ...backend,
    rows: { ...backend.rows, ...instead.rows },
    log: { ...backend.log, ...instead.log },
    leases: { ...backend.leases, ...instead.leases },
    inbox: { ...backend.inbox, ...instead.inbox },
    ...(instead.machines && { machines: instead.machines }),
  };
}
