import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/domain/event.ts";
import { initialState, type SessionState } from "../../src/domain/session.ts";
import type { SessionBackend } from "../../src/engine/ports.ts";
import { createMetrics, type Metrics } from "../../src/http/metrics/metrics.ts";
import { instruments } from "../../src/http/metrics/instruments.ts";
import type { GaugeSources } from "../../src/http/metrics/gauges.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { withObserver } from "../../src/store/open.ts";
import { claimLease, failed, notice, session, T0, TTL } from "../kit/store/vocabulary.ts";
import { TURN_CLOCK, withCaller } from "../kit/sessions/open-request.ts";

interface Family {
  type: string;
  help: string;
  samples: Map<string, number>;
}

const SAMPLE = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/;

/** Parses `text` like Prometheus: samples by name and labels, each under the HELP and TYPE of its family. */
function parsed(text: string): Map<string, Family> {
  const families = new Map<string, Family>();
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    const last = [...families].at(-1);
    if (kind === "HELP" && !families.has(name)) families.set(name, { type: "", help: rest, samples: new Map() });
    else if (kind === "TYPE" && last?.[0] === name) last[1].type = rest;
    else addSample(line, last);
  }
  return families;
}

function addSample(line: string, [name, family]: [string, Family] = ["", { type: "", help: "", samples: new Map() }]) {
  const [, sample = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
  const key = labels === "" ? sample : `${sample}{${labels}}`;
  const isOfFamily = sample === name || sample.replace(/_(bucket|sum|count)$/, "") === name;
  if (sample === "" || !isOfFamily || family.samples.has(key)) throw new Error(`Prometheus would refuse: ${line}`);
  family.samples.set(key, Number(value));
}

const warnings: string[] = [];
const log = { warn: (message: string): void => void warnings.push(message) };
const metricsOf = (store?: GaugeSources["store"], available = 0): Metrics => {
  const sources = store && { store, spares: { available }, budgets: [], now: () => T0 };
  return createMetrics({ version: "1.2.3", gaugeSources: () => sources, log });
};

/** Returns the server's own samples without prefix and without buckets. */
async function samples(metrics: Metrics): Promise<Record<string, number>> {
  const all = [...parsed(await metrics.text()).values()].flatMap((family) => [...family.samples]);
  const own = all.filter(([name]) => name.startsWith("claude_code_mcp_") && !name.includes("_bucket{"));
  return Object.fromEntries(own.map(([name, value]) => [name.slice("claude_code_mcp_".length), value]));
}

const turnEnded = (over: object): SessionEvent => ({
  type: "turn.ended",
  data: {
    turnId: "t",
    outcome: "done",
    isError: false,
    durationMs: 2500,
    durationApiMs: 1,
    numTurns: 1,
    costUsd: 0.5,
    sessionTurns: 1,
    sessionCostUsd: 0.5,
    ...over,
  },
});
const asked: SessionEvent = {
  type: "permission.asked",
  data: { requestId: "r", kind: "permission", toolName: "Bash", input: { command: "SECRET" }, toolUseId: "u" },
};
const answered: SessionEvent = {
  type: "permission.answered",
  data: { requestId: "r", toolName: "Bash", behavior: "deny", by: "timeout" },
};
const ASK = {
  requestId: "r",
  kind: "permission",
  eventId: 1,
  toolName: "Bash",
  seenWhole: true,
  ...withCaller(T0, T0),
} as const;
const turn: SessionState["turn"] = {
  id: "t",
  origin: "prompt",
  startedAt: T0,
  clock: TURN_CLOCK,
  awaiting: [],
  pending: false,
  rerun: false,
  durationApiMs: 0,
  numTurns: 0,
  costUsd: 0,
};

async function node(): Promise<SessionBackend> {
  const made = memoryStore({ tick: () => T0 }).connect("a");
  await made.leases.heartbeat(TTL);
  return made;
}

describe("counters", () => {
  it("counters count events once they are written, and no event of a refused write", async () => {
    const backend = await node();
    const metrics = metricsOf();
    const store = withObserver(backend, (...args) => metrics.onAppended(...args));
    const { record } = await store.rows.create(session());
    const lease = await claimLease(store, record.id);
    const state = initialState(T0);
    const write = async (events: SessionEvent[], seconds: number, over: Partial<SessionState> = {}) => {
      const { lastEventId } = (await store.rows.get(record.id))!.state;
      const change = { events, at: T0 + seconds * 1000 };
      await store.log.append(lease, {
        ...change,
        state: { ...state, ...over, lastEventId: lastEventId + events.length },
      });
    };
    await write([asked], 0, { turn, requests: [ASK] });
    await write([notice("meanwhile")], 1, { turn, requests: [ASK] });
    const usage = { input_tokens: 7, output_tokens: 3, cache_read_input_tokens: "odd" };
    const result: SessionEvent = { type: "message", data: { message: { type: "result", num_turns: 1, usage } } };
    await write([answered, result, turnEnded({ costUsd: 0.1 })], 20);
    const billing = { outcome: "failed", category: "billing" };
    await write([turnEnded({ ...billing, costUsd: 0.2 }), turnEnded({ ...billing, costUsd: -1 })], 21);
    await write([{ type: "notice", data: { kind: "retry", message: "" } }], 22);
    const data = { processId: "1", code: 1, signal: null, expected: false };
    await write([{ type: "process.exited", data }], 23);
    const late = { events: [turnEnded({})], at: T0, state: { ...state, lastEventId: 99 } };
    await expect(store.log.append({ ...lease, epoch: lease.epoch - 1 }, late)).rejects.toBeInstanceOf(Error);

    expect(await samples(metrics)).toMatchObject({
      'turns_total{outcome="done",category="none"}': 1,
      'turns_total{outcome="failed",category="billing"}': 2,
      'turns_total{outcome="failed",category="overloaded"}': 0,
      'turns_total{outcome="lost",category="none"}': 0,
      'turn_duration_seconds_sum{outcome="done"}': 2.5,
      'turn_duration_seconds_count{outcome="failed"}': 2,
      'tokens_total{kind="input"}': 7,
      'tokens_total{kind="output"}': 3,
      'tokens_total{kind="cache_read"}': 0,
      cost_usd_total: 0.3,
      'permission_wait_seconds_sum{kind="permission",decision="deny",by="timeout"}': 20,
      'permission_wait_seconds_count{kind="permission",decision="deny",by="timeout"}': 1,
      api_retries_total: 1,
      'claude_exits_total{expected="false"}': 1,
      'claude_exits_total{expected="true"}': 0,
    });
    expect(warnings).toEqual([]);
  });

  it("requests are counted by route, method and status class; open and refused requests are counted too", async () => {
    const metrics = metricsOf();
    metrics.began("/mcp", "POST")(204);
    metrics.began("/requests/of-a-session/request", "POST")(404);
    metrics.began("/etc/passwd", "BREW")(999);
    const ended = metrics.began("/mcp", "GET");
    metrics.refused("host");
    metrics.slowReaderCut();
    metrics.delivery("failed");
    expect(await samples(metrics)).toMatchObject({
      'http_requests_total{route="/mcp",method="POST",status="2xx"}': 1,
      'http_requests_total{route="/requests",method="POST",status="4xx"}': 1,
      'http_requests_total{route="other",method="other",status="other"}': 1,
      'http_request_duration_seconds_count{route="/mcp",method="POST"}': 1,
      'http_requests_open{route="/mcp"}': 1,
      'http_refusals_total{reason="host"}': 1,
      'http_refusals_total{reason="rate"}': 0,
      http_slow_readers_total: 1,
      'webhook_deliveries_total{outcome="failed"}': 1,
      'webhook_deliveries_total{outcome="delivered"}': 0,
    });
    ended(200);
    expect(await samples(metrics)).toMatchObject({ 'http_requests_open{route="/mcp"}': 0 });
  });
});

/** Returns the resource gauges of a session with the process `known`. */
async function usageOf(known: { pid: number; startedAt?: string }): Promise<{ memory: number; cpu: number }> {
  const store = await node();
  const state = { ...initialState(T0), process: { phase: "live", id: "1", since: T0, ...known } as const };
  const { record } = await store.rows.create(session({ state }));
  await store.leases.claim(record.id);
  const reported = await samples(metricsOf(store));
  return { memory: reported["claude_resident_memory_bytes"]!, cpu: reported["claude_cpu_seconds"]! };
}

describe("gauges", () => {
  it("gauges report the sessions in the store and the running processes", async () => {
    const store = await node();
    const metrics = metricsOf(store, 2);
    await store.rows.create(session({ state: failed }));
    const live = { phase: "live", id: "1", since: T0, pid: process.pid } as const;
    const waiting = { phase: "starting", id: "1", since: T0, waiting: true } as const;
    const states = [
      { turn, process: live, requests: [ASK, { ...ASK, kind: "question" as const }] },
      { process: waiting },
      { turn, waiting: { kind: "usage_limit", since: T0 } as const },
    ];
    for (const state of states) {
      const { record } = await store.rows.create(session({ state: { ...initialState(T0), ...state } }));
      await store.leases.claim(record.id);
    }
    const reported = await samples(metrics);
    expect(reported).toMatchObject({
      'build_info{version="1.2.3"}': 1,
      store_up: 1,
      'sessions{status="error"}': 1,
      'sessions{status="waiting_permission"}': 1,
      'sessions{status="idle"}': 1,
      'sessions{status="running"}': 1,
      'sessions_waiting{kind="slot"}': 1,
      'sessions_waiting{kind="usage_limit"}': 1,
      'sessions_waiting{kind="budget"}': 0,
      'permission_requests_open{kind="permission"}': 1,
      'permission_requests_open{kind="question"}': 1,
      queue_length: 1,
      'claude_processes{phase="live"}': 1,
      'claude_processes{phase="starting"}': 0,
      spares: 2,
    });
  });

  it.runIf(process.platform === "linux")("gauges report resources of a process unless its pid is reused", async () => {
    const [own, other] = [await usageOf({ pid: process.pid }), await usageOf({ pid: process.pid, startedAt: "1" })];
    const { rss } = process.memoryUsage();
    expect(own.memory / rss).toBeGreaterThan(0.5);
    expect(own.memory / rss).toBeLessThan(2);
    expect(own.cpu).toBeGreaterThan(0);
    // `startedAt` differs: another process has the pid now.
    expect(other).toEqual({ memory: 0, cpu: 0 });
  });

  it("gauges query the store once for concurrent requests", async () => {
    const store = await node();
    let counts = 0;
    const count = async () => ((counts += 1), store.maintenance.count());
    const counting = { ...store, maintenance: { ...store.maintenance, count } };
    const metrics = metricsOf(counting);
    await Promise.all([metrics.text(), metrics.text(), metrics.text()]);
    await metrics.text();
    expect(counts).toBe(1);
  });

  it("gauges are omitted if the store cannot be read or does not exist yet; counters are still reported", async () => {
    const store = await node();
    const broken = metricsOf(store);
    await store.close();
    const [reported, before] = [await samples(broken), await samples(metricsOf())];
    expect(reported).toMatchObject({ store_up: 0, cost_usd_total: 0 });
    expect(warnings.splice(0)).toEqual(["the store could not be read for the metrics"]);
    expect(before).toMatchObject({ cost_usd_total: 0 });
    expect(before).not.toHaveProperty("store_up");
    for (const missing of ["sessions", "queue_length", "spares", "claude_"]) {
      const there = [...Object.keys(reported), ...Object.keys(before)].filter((name) => name.startsWith(missing));
      expect(there.filter((name) => !name.startsWith("claude_exits"))).toEqual([]);
    }
  });
});

describe("the text of the metrics", () => {
  it("the metrics follow the conventions of Prometheus, and contain no principal and no folder", async () => {
    const backend = await node();
    const metrics = metricsOf(backend);
    const store = withObserver(backend, (...args) => metrics.onAppended(...args));
    const { record } = await store.rows.create(session({ principal: "SECRET", spec: { cwd: "/SECRET" } }));
    const lease = await claimLease(store, record.id);
    const events = [asked, answered, notice("SECRET"), turnEnded({ message: "SECRET", errorSubtype: "SECRET" })];
    await store.log.append(lease, { events, at: T0, state: { ...initialState(T0), lastEventId: 4 } });
    metrics.began("/SECRET", "SECRET")(200);
    metrics.refused("SECRET" as "host");
    expect(metrics.contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await metrics.text();
    expect(text).not.toContain("SECRET");
    expect(text).not.toContain(record.id);
    const families = parsed(text);
    expect(families.has("process_cpu_seconds_total")).toBe(true);
    const own = [...families].filter(([name]) => name.startsWith("claude_code_mcp_"));
    expect(own).toHaveLength(Object.keys(instruments(new Registry())).length);
    const labels = new Set<string>();
    for (const [name, { help, samples: values, type }] of own) {
      expect({ name, help }).toEqual({ name, help: expect.stringMatching(/^[A-Z0-9].*\.$/) as string });
      expect({ name, isCounter: name.endsWith("_total") }).toEqual({ name, isCounter: type === "counter" });
      expect({ name, isInBaseUnit: !/_(ms|millis|kb|mb|percent)(_|$)/.test(name) }).toEqual({
        name,
        isInBaseUnit: true,
      });
      for (const key of values.keys()) for (const [, label = ""] of key.matchAll(/([a-z]+)="/g)) labels.add(label);
    }
    const histograms = own.filter(([, { type }]) => type === "histogram").map(([name]) => name);
    expect(histograms.filter((name) => !name.endsWith("_seconds"))).toEqual([]);
    const words = "by category decision expected kind le method outcome phase reason route status version";
    expect([...labels].toSorted()).toEqual(words.split(" "));
  });
});
