import { expect, it } from "vitest";
import type { SessionRecord, ShimRelation } from "../../src/engine/ports.ts";
import { ProcessLimiter, type SlotWait, waitingNotice } from "../../src/engine/process-limiter.ts";

/** `ProcessLimiter` shares out process slots between the connections of a node. */

const CONNECTIONS: Readonly<Record<string, string>> = { a1: "a", a2: "a", a3: "a", b1: "b" };

const record = (id: string, since: number, waiting: boolean, spec: Partial<SessionRecord["spec"]> = {}) =>
  ({
    id,
    spec,
    state: { process: { phase: waiting ? "starting" : "live", since, waiting }, queue: [], turn: {}, background: [] },
  }) as unknown as SessionRecord;

interface Kept {
  readonly kept: readonly SessionRecord[];
  readonly relation: ShimRelation;
}

async function findAdmitted(
  records: readonly SessionRecord[],
  maxLive: number,
  { kept, relation }: Kept = { kept: [], relation: "gone" },
  known?: SessionRecord,
): Promise<string[]> {
  const admitted: string[] = [];
  const limiter = new ProcessLimiter({
    backend: {
      leases: { atWork: async () => Promise.resolve(records), abandoned: async () => Promise.resolve(kept) },
    } as never,
    processLimits: { maxLive, maxStarting: 10, maxBackground: 1 },
    runtime: {
      spares: { available: 0, retire: async () => Promise.resolve() },
      shimRelation: async () => Promise.resolve(relation),
    },
    clock: { after: () => () => undefined } as never,
    log: { warn: () => undefined },
    stateOf: (id) => (id === known?.id ? known.state : undefined),
    suspend: async () => Promise.resolve(),
    connectionOf: (id) => CONNECTIONS[id],
  });
  for (const { id, state } of known ? [known] : records) {
    if (state.process.phase !== "starting" || id.startsWith("x")) continue;
    void limiter.acquireSlot(id, new AbortController().signal, () => undefined).then(() => admitted.push(id));
  }
  await new Promise((resolve) => setImmediate(resolve));
  return admitted;
}

it("a connection with fewer processes gets the next slot, even if it came later", async () => {
  const records = [record("a1", 1, false), record("a2", 2, true), record("b1", 3, true)];
  expect(await findAdmitted(records, 2)).toEqual(["b1"]);
  expect(await findAdmitted(records, 3)).toEqual(["b1", "a2"]);
});

it("a process of a dead server keeps its slot as long as a shim holds the process", async () => {
  const kept = [record("x1", 1, false)];
  const admitted = async (relation: ShimRelation) => findAdmitted([record("b1", 2, true)], 1, { kept, relation });
  expect(await Promise.all((["ours", "theirs", "gone"] as const).map(admitted))).toEqual([[], [], ["b1"]]);
});

it("a session whose installation still runs takes no place in the queue", async () => {
  const installing = record("x1", 1, true);
  Object.assign(installing.state.process, { installing: true });
  expect(await findAdmitted([installing, record("b1", 2, true)], 1)).toEqual(["b1"]);
});

it("sessions of one connection keep their order, and sessions of other servers keep their places", async () => {
  expect(await findAdmitted([record("a1", 1, false), record("a2", 2, true), record("a3", 3, true)], 2)).toEqual(["a2"]);
  const behind = [record("x1", 1, true), record("a2", 2, true), record("b1", 3, true)];
  expect(await findAdmitted(behind, 1)).toEqual([]);
  expect(await findAdmitted(behind, 2)).toEqual(["a2"]);
});

/** Builds a limiter over the sessions in `records`, with logged `failures`, pending `looks` and a settable `time`. */
function makeLimiter(
  records: () => Promise<readonly SessionRecord[]>,
  { maxBackground = 1, maxLive = 1, maxStarting = 10, spares = 0 } = {},
) {
  const failures: unknown[] = [];
  const suspended: string[] = [];
  const looks: (() => void)[] = [];
  const time = { now: 0 };
  const limiter = new ProcessLimiter({
    backend: { leases: { atWork: records, abandoned: async () => Promise.resolve([]) } } as never,
    processLimits: { maxLive, maxStarting, maxBackground },
    runtime: {
      spares: { available: spares, retire: async () => Promise.resolve() },
      shimRelation: async () => Promise.resolve("gone"),
    },
    clock: { after: (_: number, look: () => void) => looks.push(look), tick: () => time.now } as never,
    log: { warn: (_, about) => failures.push(about) },
    stateOf: () => undefined,
    suspend: async ({ id }, reason) => {
      suspended.push(reason === undefined ? id : `${id} (${reason})`);
      return Promise.resolve();
    },
    connectionOf: () => undefined,
  });
  return { failures, limiter, looks, suspended, time };
}

it("a look for a free slot that fails is logged, and the next look admits the session", async () => {
  let fails = true;
  const records = async () => (fails ? Promise.reject(new Error("disk")) : Promise.resolve([record("b1", 1, true)]));
  const { failures, limiter, looks } = makeLimiter(records);
  const admitted = limiter.acquireSlot("b1", new AbortController().signal, () => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  expect(failures).toEqual([{ error: "disk" }]);
  fails = false;
  looks.shift()?.();
  await expect(admitted).resolves.toBeUndefined();
});

it("looks that fail for 30 s end the wait with the reason, and are logged once", async () => {
  const { failures, limiter, looks, time } = makeLimiter(async () => Promise.reject(new Error("disk")));
  const admitted = limiter.acquireSlot("b1", new AbortController().signal, () => undefined);
  const told = admitted.catch(String);
  for (const now of [1_000, 29_999, 30_000]) {
    await new Promise((resolve) => setImmediate(resolve));
    time.now = now;
    looks.shift()?.();
  }
  expect(await told).toBe("Error: No slot for Claude Code could be found: disk");
  expect(failures).toEqual([{ error: "disk" }]);
});

it("a session with an unreadable row waits by its node's own state; a session of another node keeps its slot", async () => {
  const unreadable = { why: "state: missing", isNewer: false };
  const damaged = (state: SessionRecord["state"]) => ({ ...state, process: { phase: "none" as const } });
  const own = record("b1", 2, true);
  const rows = [own, record("x1", 1, false)].map((row) => ({ ...row, state: damaged(row.state), unreadable }));
  expect(await findAdmitted(rows, 1, undefined, own)).toEqual([]);
  expect(await findAdmitted(rows, 2, undefined, own)).toEqual(["b1"]);
});

it("a session that is stopped before or during its wait for a slot gets no slot", async () => {
  const { limiter, looks } = makeLimiter(async () =>
    Promise.resolve([record("a1", 1, false), record("a2", 2, true), record("b1", 3, true)]),
  );
  const why = "The process was stopped before it started.";
  await expect(limiter.acquireSlot("a2", AbortSignal.abort(), () => undefined)).rejects.toThrow(why);
  const leaving = new AbortController();
  const told: SlotWait[] = [];
  const waiting = limiter.acquireSlot("b1", leaving.signal, (wait) => told.push(wait));
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual([{ before: 1, hasSlot: false }]);
  expect(await Promise.all(["a1", "a2", "b1"].map(async (id) => limiter.before(id)))).toEqual([undefined, 0, 1]);
  leaving.abort();
  await expect(waiting).rejects.toThrow(why);
  expect(looks).toHaveLength(1);
});

it.each([
  [
    "for a slot",
    { maxLive: 2 },
    ["All --max-live slots are in use: this session waits for a free one, 1 ahead of it."],
  ],
  [
    "for others to start",
    { maxLive: 9, maxStarting: 2 },
    ["Other sessions are starting, and this machine starts no more at once: this session waits, 1 ahead of it."],
  ],
  ["for a spare to end, which takes a moment", { maxLive: 4, spares: 2 }, []],
])("a session that waits %s logs exactly the notice of the wait, if there is one", async (_, limits, said) => {
  const starting = (id: string) => {
    const { state, ...rest } = record(id, 1, true);
    return { ...rest, state: { ...state, process: { ...state.process, waiting: false } } } as SessionRecord;
  };
  const records = [starting("x1"), starting("x2"), record("a1", 2, true), record("b1", 3, true)];
  const { limiter } = makeLimiter(async () => Promise.resolve(records), limits);
  const told: unknown[] = [];
  const leaving = new AbortController();
  const waiting = limiter.acquireSlot("b1", leaving.signal, (wait) => told.push(waitingNotice(wait)));
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toEqual(said.map((message) => ({ type: "notice", kind: "waiting", message })));
  leaving.abort();
  await expect(waiting).rejects.toThrow("stopped");
});

const BACKGROUND = { priority: "background" } as const;

it("a session of priority background comes after all others, whoever waits longer and has fewer processes", async () => {
  const others = [record("a1", 1, false), record("x1", 9, true)];
  const records = [...others, record("b1", 2, true, BACKGROUND), record("a2", 3, true)];
  expect(await findAdmitted(records, 2)).toEqual(["a2"]);
  expect(await findAdmitted(records, 3)).toEqual(["a2"]);
  expect(await findAdmitted(records, 4)).toEqual(["a2", "b1"]);
  const { limiter } = makeLimiter(async () => Promise.resolve(records));
  expect(await Promise.all(["a2", "x1", "b1"].map(async (id) => limiter.before(id)))).toEqual([0, 1, 2]);
});

/** Builds a live session without a running turn, or in the given state. */
function still(
  id: string,
  idleSince: number,
  { spec = {}, ...state }: Partial<SessionRecord["state"]> & WithSpec = {},
) {
  const { state: live, ...rest } = record(id, 1, false, spec);
  return { ...rest, state: { ...live, turn: null, idleSince, ...state } } as SessionRecord;
}

interface WithSpec {
  readonly spec?: Partial<SessionRecord["spec"]>;
}

/** Returns the sessions that are asked to make room for those of `records` that wait for a slot. */
async function findSuspended(records: readonly SessionRecord[], limits = {}): Promise<readonly string[]> {
  const { limiter, suspended } = makeLimiter(async () => Promise.resolve(records), limits);
  const leaving = new AbortController();
  const waiting = limiter.acquireSlot(records.at(-1)!.id, leaving.signal, () => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  leaving.abort();
  await expect(waiting).rejects.toThrow("stopped");
  return suspended;
}

it("sessions of priority background make room first, then those that are idle for longest", async () => {
  const idle = [still("x1", 5), still("x2", 4), still("x3", 6, { spec: BACKGROUND })];
  const waiting = [record("w1", 2, true), record("w2", 3, true)];
  expect(await findSuspended([...idle, ...waiting], { maxLive: 3 })).toEqual(["x3", "x2"]);
});

it("a session that waits for a session of priority background to end loses no background work to it", async () => {
  const tasks = { background: [{ id: "t", type: "local_agent", description: "" }] } as const;
  const working = [still("x1", 1, tasks as never), still("x2", 2, { ...tasks, spec: BACKGROUND } as never)];
  const limits = { maxLive: 2, maxBackground: 0 };
  const [w1, w2] = [record("w1", 2, true, BACKGROUND), record("w2", 3, true, BACKGROUND)];
  expect(await findSuspended([...working, w1, w2], limits)).toEqual(["x2 (slot)"]);
  expect(await findSuspended([...working, w1, record("w2", 3, true)], limits)).toEqual(["x2 (slot)"]);
  const normal = [record("w1", 2, true), record("w2", 3, true)];
  expect(await findSuspended([...working, ...normal], limits)).toEqual(["x2 (slot)", "x1 (slot)"]);
});

it("a turn that waits at a limit gives up its slot, unless it would lose work, and takes none without a process", async () => {
  const turn = { id: "t" } as never;
  const at = (since: number) => ({ turn, waiting: { kind: "usage_limit", since } as const, queue: [{}] as never });
  const tasks = { background: [{ id: "t", type: "local_agent", description: "" }] };
  const live = [
    still("running", 0, { turn }),
    still("ephemeral", 0, { ...at(1), spec: { persistSession: false } }),
    still("with tasks", 0, { ...at(1), ...tasks }),
    still("waits", 0, at(8)),
    still("idle", 7),
  ];
  const waiting = [record("w1", 2, true), record("w2", 3, true), record("w3", 4, true)];
  expect(await findSuspended([...live, ...waiting], { maxLive: 5 })).toEqual(["idle", "waits"]);
  const closed = still("closed", 0, { ...at(1), process: { phase: "none" } });
  expect(await findAdmitted([closed, record("b1", 2, true)], 1)).toEqual(["b1"]);
});
