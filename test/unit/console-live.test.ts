import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { SubagentTasks } from "../../src/console/subagent-tasks.ts";
import { shownEvent } from "../../src/console/shown-event.ts";
import { streamLive, type Send } from "../../src/console/live.ts";
import { readPending } from "../../src/console/requests.ts";
import type { Sources } from "../../src/console/sources.ts";
import { Titles } from "../../src/console/titles.ts";
import type { LiveEvents } from "../../src/console/wire.ts";
import { sessionNotFound } from "../../src/domain/error.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import type { OpenRequest } from "../../src/domain/permission.ts";
import { initialState } from "../../src/domain/session.ts";
import type { Engine } from "../../src/engine/api.ts";
import type { SessionQuery, SessionRecord } from "../../src/engine/ports.ts";
import { withCaller } from "../kit/sessions/open-request.ts";

/** Events of an open page under adverse timing. Each test scripts the engine. */

type Verbs = Pick<Engine, "delivered" | "get" | "list" | "partial" | "read">;

const ANN = { principal: "ann", scopes: ["read", "run", "approve"] } as const;

function record(over: Partial<SessionRecord> = {}): SessionRecord {
  const state = { ...initialState(1), lastEventId: 1 };
  return {
    id: "s",
    principal: "ann",
    spec: { cwd: "/repo" },
    state,
    title: undefined,
    createdAt: 1,
    updatedAt: 1,
    rev: 1,
    owner: null,
    ...over,
  } as SessionRecord;
}

const queued = (text: string): StoredEvent => ({
  id: 1,
  at: 1,
  type: "prompt.queued",
  data: { promptId: "p", text },
});
const asked: StoredEvent = {
  id: 2,
  at: 1,
  type: "permission.asked",
  data: { requestId: "r", kind: "permission", toolName: "Bash", input: {}, toolUseId: "u" },
};
const open = (over: Partial<OpenRequest> = {}): OpenRequest => ({
  requestId: "r",
  kind: "permission",
  toolName: "Bash",
  eventId: 2,
  seenWhole: false,
  ...withCaller(1, 1000),
  ...over,
});
const waiting = (over: Partial<OpenRequest>, rev: number): SessionRecord => {
  const { state } = record();
  return record({ rev, state: { ...state, requests: [open(over)] } });
};

function sourcesOf(verbs: Partial<Verbs>, tail: Sources["store"]["log"]["tail"] = nothing): Sources {
  const engine = {
    list: async () => Promise.resolve([]),
    read: async (_: string, __: string, from: number) => Promise.resolve([queued("Do it."), asked].slice(from - 1)),
    delivered: async () => Promise.resolve(),
    partial: async () => Promise.resolve(""),
    ...verbs,
  } as unknown as Engine;
  const log = { tail } as unknown as Sources["store"]["log"];
  return {
    engine,
    store: { ledger: undefined as never, log },
    titles: new Titles(engine),
    agents: new SubagentTasks(log),
    usage: () => Promise.reject(new Error("not asked for")),
  };
}

async function* nothing(_: string, __: number, signal: AbortSignal): AsyncGenerator<StoredEvent, void> {
  while (!signal.aborted) {
    await nextTurn();
    yield* [];
  }
}

type SentEvent = { [K in keyof LiveEvents]: readonly [K, LiveEvents[K]] }[keyof LiveEvents];

/** Collects events until `isEnough`, called after each event, returns true. */
async function eventsUntil(sources: Sources, isEnough: (sent: readonly SentEvent[]) => boolean, session?: string) {
  const sent: SentEvent[] = [];
  const ended = new AbortController();
  const send: Send = async (kind, data) => {
    sent.push([kind, data] as unknown as SentEvent);
    if (isEnough(sent)) ended.abort();
    return Promise.resolve();
  };
  await streamLive(sources, { caller: ANN, query: { session, from: 1 } }, send, ended.signal);
  return sent;
}

const eventsOf = <K extends keyof LiveEvents>(sent: readonly SentEvent[], kind: K) =>
  sent.filter((each) => each[0] === kind).map(([, data]) => data as LiveEvents[K]);

describe("an open page", () => {
  it("an open page reads only changes since shortly before its previous read", async () => {
    const queries: SessionQuery[] = [];
    const ended = new AbortController();
    const list: Verbs["list"] = async (query) => {
      if (query.statuses === undefined && queries.push(query) === 3) ended.abort();
      return Promise.resolve([]);
    };
    const began = Date.now();
    await streamLive(
      sourcesOf({ list }),
      { caller: ANN, query: { session: undefined, from: 1 } },
      async () => Promise.resolve(),
      ended.signal,
    );
    const [first = 0, , third = 0] = queries.map(({ since }) => since);
    expect(first).toBeGreaterThanOrEqual(began - 5_000);
    expect(third).toBeGreaterThan(first);
  });

  it("an open page receives all of 450 simultaneous changes, which need several pages", async () => {
    const all = Array.from({ length: 450 }, (_, each) => record({ id: `s${String(each)}`, updatedAt: 1_000 - each }));
    const list: Verbs["list"] = async ({ before, limit, statuses }) => {
      const from = before ? all.findIndex(({ id }) => id === before.id) + 1 : 0;
      return Promise.resolve(statuses ? [] : all.slice(from, from + limit));
    };
    const sent = await eventsUntil(sourcesOf({ list }), (each) => eventsOf(each, "sessions").length > 0);
    expect(eventsOf(sent, "sessions").flat()).toHaveLength(450);
  });

  it("an open page shows the queue position of a session after 3 s of waiting, not after 0.5 s", async () => {
    const { state } = record();
    const process = { phase: "starting", waiting: true } as never;
    const positionAfter = async (agoMs: number) => {
      const waits = record({ updatedAt: Date.now() - agoMs, state: { ...state, process } });
      const verbs = { list: async () => Promise.resolve([waits]), waitingBefore: async () => Promise.resolve(3) };
      const all = await eventsUntil(sourcesOf(verbs), (each) => eventsOf(each, "sessions").length > 0);
      return eventsOf(all, "sessions")[0]?.[0]?.waiting;
    };
    expect([await positionAfter(500), await positionAfter(3_000)]).toEqual([undefined, { kind: "slot", ahead: 3 }]);
  });

  it("an open page receives the changed deadline of a request, even if the session's row is unchanged", async () => {
    let looks = 0;
    const list: Verbs["list"] = async ({ statuses }) => {
      if (!statuses) looks++;
      return Promise.resolve([looks < 3 ? waiting({}, 1) : waiting({ expiresAt: 5000 }, 2)]);
    };
    const sent = await eventsUntil(sourcesOf({ list }), (all) => eventsOf(all, "requests").length === 2);
    expect(eventsOf(sent, "requests").map(([request]) => request?.expiresAt)).toEqual([1000, 5000]);
    expect(eventsOf(sent, "sessions")).toHaveLength(1);
  });

  it("an open page receives all other changes while the report of a delivery hangs", async () => {
    let looks = 0;
    const list: Verbs["list"] = async ({ statuses }) => {
      if (!statuses) looks++;
      return Promise.resolve(statuses || looks < 2 ? [waiting({}, 1)] : [record({ id: "other" })]);
    };
    const delivered: Verbs["delivered"] = async () => new Promise(() => undefined);
    const sent = await eventsUntil(sourcesOf({ list, delivered }), (all) => eventsOf(all, "sessions").length === 2);
    expect(
      eventsOf(sent, "sessions")
        .flat()
        .map(({ id }) => id),
    ).toEqual(["s", "other"]);
  });

  it("an open page receives nothing more for the id of a deleted session", async () => {
    let looks = 0;
    const get: Verbs["get"] = async (_, id) => {
      if (++looks > 3) throw sessionNotFound(id);
      return Promise.resolve(record());
    };
    let isGone = false;
    let partialReads = 0;
    const partial = async () => {
      if (isGone) partialReads++;
      return Promise.resolve("");
    };
    let tailEnded = false;
    async function* tail(...args: Parameters<typeof nothing>) {
      yield* nothing(...args);
      tailEnded = true;
    }
    let others = 0;
    const list: Verbs["list"] = async () => Promise.resolve(isGone ? [record({ id: `n${String(++others)}` })] : []);
    await eventsUntil(
      sourcesOf({ get, list, partial }, tail),
      (all) => {
        isGone = eventsOf(all, "gone").length > 0;
        return isGone && eventsOf(all, "sessions").length >= 2;
      },
      "s",
    );
    expect([tailEnded, partialReads]).toEqual([true, 0]);
  });

  it("a session deleted between two reads fails neither an open page nor the list of requests", async () => {
    const read: Verbs["read"] = async (_, id) => Promise.reject(sessionNotFound(id));
    const list: Verbs["list"] = async () => Promise.resolve([waiting({}, 1)]);
    const sent = await eventsUntil(sourcesOf({ list, read }), (all) => eventsOf(all, "requests").length > 0);
    expect(eventsOf(sent, "sessions")).toMatchObject([[{ id: "s", title: "" }]]);
    expect(eventsOf(sent, "requests")).toEqual([[]]);
    expect(await readPending(sourcesOf({ list, read }), "ann")).toEqual([]);
  });
});

it("the title of a deleted session is not shown for a new session with the same id", async () => {
  const texts = ["Hers.", "His."];
  const titles = new Titles({ read: async () => Promise.resolve([queued(texts.shift() ?? "")]) });
  expect(await titles.findTitle(record())).toBe("Hers.");
  expect(await titles.findTitle(record())).toBe("Hers.");
  expect(await titles.findTitle(record({ principal: "bob", createdAt: 2 }))).toBe("His.");
});

describe("events as the page gets them", () => {
  it("a large event is cut to a bounded depth, with the beginnings of its texts", () => {
    const deep: unknown = JSON.parse(`${'{"__proto__":['.repeat(2_300)}"${"x".repeat(20_000)}"${"]}".repeat(2_300)}`);
    const event = { ...asked, data: { ...asked.data, input: { deep, long: "y".repeat(20_000), n: 1 } } } as StoredEvent;
    const shown = shownEvent(event);
    expect(shown).toMatchObject({ id: 2, type: "permission.asked", cut: true, data: { toolName: "Bash" } });
    const text = JSON.stringify(shown);
    expect(text).toContain("…");
    expect(text.length).toBeLessThan(20_000);
    expect(text).toContain(`"long":"${"y".repeat(10_000)}","n":1`);
  });

  it("an event is unchanged if there is nothing to cut", () => {
    expect(shownEvent(asked)).toBe(asked);
  });
});
