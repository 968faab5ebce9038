import { describe, expect, it } from "vitest";
import type { ControlRequest } from "../../src/domain/control.ts";
import { AppError } from "../../src/domain/error.ts";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { initialState, type SessionState } from "../../src/domain/session.ts";
import type { Engine } from "../../src/engine/api.ts";
import type { SessionRecord } from "../../src/engine/ports.ts";
import { OPERATOR } from "../kit/sessions/open-gate.ts";
import { type SessionReader, createNestedEngine, createReaderEngine } from "../../src/engine/session/readers.ts";

/** Operations of the engine that a restricted caller gets. Each new operation must be entered here. */

const PROMPT = { text: "go on" };
const CONTROL = { do: "usage" } as const;

const CALLS: { readonly [K in keyof Engine]: Parameters<Engine[K]> } = {
  forCaller: [LOCAL_CALLER],
  forConnection: [{ id: "c", ...OPERATOR }],
  checkMayConfigure: [],
  create: [LOCAL_CALLER, { cwd: "/repo" }],
  open: [LOCAL_CALLER, { options: { cwd: "/repo" }, prompt: PROMPT }],
  fork: [LOCAL_CALLER, "s", PROMPT],
  adopt: [LOCAL_CALLER, { sessionId: "s", options: {}, fork: false, prompt: PROMPT }],
  prompt: ["local", "s", PROMPT],
  verify: ["local", "s", { by: "ann" }],
  continueTurn: ["local", "s", { by: "ann" }],
  use: ["local", "s"],
  answer: [LOCAL_CALLER, "s", { requestId: "r", decision: "deny", by: "caller" }],
  pass: ["local", "s", { requestId: "r", from: "caller", why: "dismissed" }],
  extend: ["local", "s", "r"],
  fill: ["local", "s", { requestId: "r", from: "caller", filled: { name: "x" } }],
  revoke: ["local", "s", { by: "ann" }],
  delivered: ["local", "s", [{ requestId: "r", whole: true }]],
  interrupt: ["local", "s", "ann", "p"],
  clientGone: ["local", "s", "p"],
  cancel: ["local", "s", { by: "ann" }],
  close: ["local", "s", "ann"],
  queue: ["local", "s", { do: "drop", by: "ann" }],
  control: [LOCAL_CALLER, "s", CONTROL, "ann"],
  waitingBefore: ["s"],
  atWork: [],
  partial: ["s"],
  workTree: ["local", "s"],
  pack: ["local", "s"],
  rename: ["local", "s", "title"],
  delete: ["local", "s", "ann"],
  get: ["local", "s"],
  list: [{ principal: "local", limit: 1 }],
  takeUnattended: ["local"],
  read: ["local", "s", 1, 10],
  wait: ["local", { sessions: [], until: "end", timeoutMs: 1, signal: new AbortController().signal }],
  enforceGate: [],
  stop: [1000],
  drain: [],
};

/**
 * `passed`: calls the engine and returns its result. `only read`: reads through `SessionReader`, which takes over nothing.
 * `forwarded`: calls the engine and returns nothing. `refused`: PERMISSION_DENIED. `ignored`: succeeds without a call.
 */
type Way = "ignored" | "only read" | "passed" | "refused" | "forwarded";
type Ways = Readonly<Record<Exclude<keyof Engine, "forCaller" | "forConnection">, Way>>;

const READ = { get: "only read", list: "only read", wait: "only read" } as const;
const PASSED_READS = {
  waitingBefore: "passed",
  atWork: "passed",
  partial: "passed",
  workTree: "passed",
  read: "passed",
} as const;
const CHANGING = {
  create: "refused",
  open: "refused",
  fork: "refused",
  adopt: "refused",
  prompt: "refused",
  verify: "refused",
  continueTurn: "refused",
  use: "passed",
  interrupt: "refused",
  clientGone: "refused",
  cancel: "refused",
  close: "refused",
  queue: "refused",
  rename: "refused",
  delete: "refused",
} as const;

const OF_READERS: Ways = {
  ...READ,
  ...PASSED_READS,
  ...CHANGING,
  checkMayConfigure: "passed",
  enforceGate: "passed",
  takeUnattended: "ignored",
  answer: "passed",
  pass: "passed",
  extend: "passed",
  fill: "passed",
  revoke: "passed",
  delivered: "forwarded",
  control: "passed",
  pack: "passed",
  stop: "refused",
  drain: "refused",
};

const OF_NESTED: Ways = {
  ...READ,
  ...PASSED_READS,
  ...CHANGING,
  checkMayConfigure: "refused",
  enforceGate: "passed",
  takeUnattended: "ignored",
  answer: "refused",
  pass: "refused",
  extend: "refused",
  fill: "refused",
  revoke: "refused",
  delivered: "ignored",
  control: "refused",
  pack: "refused",
  stop: "passed",
  drain: "passed",
};

const LIVE: SessionState = { ...initialState(0), process: { phase: "live", id: "p", since: 0 } };

function makeRecord(state: SessionState, alive: boolean): SessionRecord {
  const owner = { nodeId: "n", alive };
  const row = { title: undefined, createdAt: 0, updatedAt: 0, rev: 1, spec: { cwd: "/repo" }, policy: undefined };
  return { ...row, id: "s", principal: "local", state, owner };
}

type Called = readonly [name: string, args: readonly unknown[]];

/** Builds an engine that records each call in `calls`, and a reader `looking` with `record` as its only session. */
function recordCalls(record = makeRecord(LIVE, true)) {
  const calls: Called[] = [];
  const engine = new Proxy({} as Engine, {
    get:
      (_, name) =>
      (...args: unknown[]) => {
        calls.push([String(name), args]);
        return name === "forCaller" || name === "forConnection" ? engine : { did: name };
      },
  });
  const looking: SessionReader = {
    get: async () => Promise.resolve(record),
    list: async () => Promise.resolve([record]),
    wait: async () => Promise.resolve({ woke: "s" }),
  };
  return { calls, engine, looking, record };
}

/** Calls operation `name`. Returns its result or the code of its refusal, with `calls`. */
async function callOperation(restricted: Engine, name: keyof Engine, calls: readonly Called[]) {
  const operation = restricted[name] as (...args: readonly unknown[]) => unknown;
  try {
    return { result: await operation(...CALLS[name]), calls };
  } catch (error) {
    return { result: error instanceof AppError ? error.code : error, calls };
  }
}

function expected(way: Way, name: keyof Ways, record: SessionRecord) {
  const read: Readonly<Record<string, unknown>> = { get: record, list: [record], wait: { woke: "s" } };
  const results: Readonly<Record<Way, unknown>> = {
    refused: "PERMISSION_DENIED",
    passed: { did: name },
    forwarded: undefined,
    ignored: name === "takeUnattended" ? [] : undefined,
    "only read": read[name],
  };
  return { result: results[way], calls: way === "passed" || way === "forwarded" ? [[name, CALLS[name]]] : [] };
}

const NAMES = Object.keys(OF_READERS) as (keyof Ways)[];

describe("a caller without the scope run", () => {
  it.each(NAMES.map((name) => [name, OF_READERS[name]] as const))(
    "for a caller without the scope run, %s is %s",
    async (name, way) => {
      const { calls, engine, looking, record } = recordCalls();
      expect(await callOperation(createReaderEngine(engine, looking), name, calls)).toEqual(
        expected(way, name, record),
      );
    },
  );

  it("a caller without the scope run stays restricted on a connection, and another caller is not", async () => {
    const { calls, engine, looking } = recordCalls();
    const reader = createReaderEngine(engine, looking);
    expect(reader.forCaller(LOCAL_CALLER)).toBe(engine);
    const refused = reader.forConnection(...CALLS.forConnection).prompt(...CALLS.prompt);
    await expect(refused).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(calls).toEqual([
      ["forCaller", CALLS.forCaller],
      ["forConnection", CALLS.forConnection],
    ]);
  });

  const ANSWERING = ["answer", "revoke", "pass", "extend", "fill", "control"] as const;
  it.each(ANSWERING)(
    "a caller without the scope run gets SESSION_BUSY if %s would take over a dead server's session",
    async (name) => {
      const { calls, engine, looking } = recordCalls(makeRecord(LIVE, false));
      const refused = { code: "SESSION_BUSY", sessionId: "s", message: expect.stringContaining("has died") as string };
      const asked = createReaderEngine(engine, looking)[name] as (...args: readonly unknown[]) => Promise<unknown>;
      await expect(asked(...CALLS[name])).rejects.toMatchObject(refused);
      expect(calls).toEqual([]);
    },
  );

  it("a caller without the scope run records no delivery in a session of a dead server", async () => {
    const { calls, engine, looking } = recordCalls(makeRecord(LIVE, false));
    await createReaderEngine(engine, looking).delivered(...CALLS.delivered);
    expect(calls).toEqual([]);
  });

  it("a caller without the scope run may read the output of a task in an idle session, without a process", async () => {
    const { calls, engine, looking } = recordCalls(makeRecord(initialState(0), true));
    const request = { do: "task-output", taskId: "t" } as const;
    expect(await createReaderEngine(engine, looking).control(LOCAL_CALLER, "s", request, "ann")).toEqual({
      did: "control",
    });
    expect(calls).toEqual([["control", [LOCAL_CALLER, "s", request, "ann"]]]);
  });

  const STARTING = "No Claude Code process runs in the session, and starting one for this needs the scope run";
  it.each<[ControlRequest, string]>([
    [{ do: "usage" }, STARTING],
    [{ do: "stop-task", taskId: "t" }, "This needs the scope run"],
    [{ do: "configure", model: "m" }, "This needs the scope run"],
    [{ do: "suspend" }, "This needs the scope run"],
    [{ do: "rewind", promptId: "p", dryRun: true }, "This needs the scope run"],
  ])("a caller without the scope run is refused %j in an idle session: %s", async (request, why) => {
    const { calls, engine, looking } = recordCalls(makeRecord(initialState(0), true));
    const asked = createReaderEngine(engine, looking).control(LOCAL_CALLER, "s", request, "ann");
    await expect(asked).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: `${why}. Use a token that has it.`,
    });
    expect(calls).toEqual([]);
  });
});

describe("a server inside a session", () => {
  it.each(NAMES.map((name) => [name, OF_NESTED[name]] as const))(
    "for a server inside a session, %s is %s",
    async (name, way) => {
      const { calls, engine, looking, record } = recordCalls();
      const nested = createNestedEngine(engine, looking, { depth: 1 });
      expect(await callOperation(nested, name, calls)).toEqual(expected(way, name, record));
    },
  );

  it("a server inside a session stays restricted on every connection, whatever the scopes of its caller", () => {
    const { engine, looking } = recordCalls();
    const nested = createNestedEngine(engine, looking, { depth: 1 });
    expect([nested.forCaller(LOCAL_CALLER), nested.forConnection(...CALLS.forConnection)]).toEqual([nested, nested]);
  });

  it.each([
    [1, "runs inside a session of claude-agents-mcp already (depth 1)"],
    [0, "starts no sessions (--max-depth 0)"],
  ])("a refusal at depth %i says that the server %s", async (depth, why) => {
    const { engine, looking } = recordCalls();
    const refused = createNestedEngine(engine, looking, { depth }).open(...CALLS.open);
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining(why) as string });
  });
});
