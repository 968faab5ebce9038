import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect } from "vitest";
import { z } from "zod";
import { SessionPolicy } from "../../../src/domain/approvals/session-policy.ts";
import { SessionEvent } from "../../../src/domain/event.ts";
import { JsonObject } from "../../../src/domain/json.ts";
import { SessionOptions } from "../../../src/domain/options.ts";
import { LOCAL_CALLER } from "../../../src/domain/principal.ts";
import { initialState, SessionState, statusOf } from "../../../src/domain/session.ts";
import type { SessionBackend } from "../../../src/engine/ports.ts";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";
import { STATE_NAMES, walkTo } from "../step/cases.ts";
import { ManualClock } from "../step/clock.ts";
import { TestNode } from "../step/two-nodes.ts";
import { BEGUN_POLICY, T0, Walk } from "../step/walk.ts";
import { StoreFile } from "./files.ts";

/**
 * Sessions as a store keeps them, one per line in test/unit/fixtures/stored-rows/VERSION.jsonl. A file is written by the engine
 * and the SQLite store of its version and never changed: every stored format must stay readable.
 */
export const StoredRow = z.object({
  situation: z.string(),
  id: z.string(),
  status: z.string(),
  atWork: z.int(),
  spec: JsonObject,
  policy: JsonObject.nullable(),
  state: JsonObject,
  events: z.array(z.object({ at: z.int(), type: z.string(), event: JsonObject })),
});
export type StoredRow = z.infer<typeof StoredRow>;

export const ROWS_FOLDER = "test/unit/fixtures/stored-rows";

export async function readRows(version: number): Promise<StoredRow[]> {
  const text = await readFile(`${ROWS_FOLDER}/${String(version)}.jsonl`, "utf8");
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => StoredRow.parse(JSON.parse(line)));
}

/** States of every kind, and further parts of a state: a remembered answer, a transcript after /clear, chosen settings. */
const WALKS: [situation: string, walk: () => Walk][] = [
  ...STATE_NAMES.map((name): [string, () => Walk] => [name, () => walkTo(name)]),
  ["remembers an answer", remembering],
  ["after /clear", () => walkTo("running").hear({ type: "reported", model: "opus", transcriptId: "cleared" })],
  ["chose a model", chosen],
  ["prompted at the console", () => new Walk().promptWith("p1", { limits: { atConsole: true, decides: true } })],
  ["prompted by a program", () => new Walk().promptWith("p1", { limits: { noCaller: true, unattended: true } })],
  ["prompted to end with its client", () => new Walk().promptWith("p1", { limits: { endWithClient: true } })],
  ["asked cut, then by page", paged],
  ["prompted by a client that allows less", stricter],
];

function stricter(): Walk {
  const policy = { ...BEGUN_POLICY, sandbox: "required" as const };
  const walk = walkTo("idle, live").promptWith("p2", { policy, environmentId: "e1" });
  const started = { type: "started", pid: 4712, resumed: true, environmentId: "e1" } as const;
  return walk.hear({ type: "exited", code: 0, signal: null }, { type: "admitted" }, started);
}

function paged(): Walk {
  const requests = [{ requestId: "a1", whole: false, page: { from: 0, to: 100, of: 300 } }];
  return walkTo("asking").command("delivered", { requests });
}

function remembering(): Walk {
  const remember = { rules: ["Bash(make:*)"], level: "all" as const, eventId: 3 };
  const decision = { behavior: "allow" as const };
  return walkTo("asking").command("answer", { requestId: "a1", by: "user", decision, forSession: true, remember });
}

function chosen(): Walk {
  const request = { do: "configure" as const, model: "opus", permissionMode: "plan" as const };
  const walk = walkTo("idle, live");
  return walk.take({
    type: "controlled",
    at: walk.at,
    commandId: "c9",
    by: "caller",
    request,
    outcome: { ok: true, data: {} },
  });
}

/** Options of many kinds, as a caller gives them. */
const OPTIONS: SessionOptions = {
  cwd: "/repo",
  title: "The harbour",
  model: "opus",
  permissionMode: "acceptEdits",
  allowedTools: ["Read", "Bash(git *)"],
  disallowedTools: ["WebFetch"],
  maxTurns: 7,
  maxBudgetUsd: 2,
  systemPrompt: { type: "preset", preset: "claude_code", append: "Be short." },
  agents: { scout: { description: "Looks around.", prompt: "Look." } },
  mcpServers: { own: { type: "stdio", command: "serve", args: ["--quick"] } },
  additionalDirectories: ["/more"],
  env: { LANG: "C" },
  effort: "high",
  thinking: { type: "enabled", budgetTokens: 2048 },
  onLost: "resume",
};

/** Returns a session in each situation, as written by the engine and the store of this version. */
export async function writtenRows(): Promise<StoredRow[]> {
  const walked = async (node: SessionBackend): Promise<void> => {
    await node.leases.heartbeat(30_000);
    for (const [situation, walk] of WALKS) await write(node, situation, walk());
    await node.close();
  };
  // `open` uses a store of its own, because its engine would recover seemingly abandoned sessions.
  return [...(await dumped(walked)), ...(await dumped(open))];
}

async function dumped(work: (node: SessionBackend) => Promise<void>): Promise<StoredRow[]> {
  const store = await StoreFile.make();
  try {
    await work(store.connect("writer"));
    return await dump(store.file);
  } finally {
    await store.close();
  }
}

async function write(node: SessionBackend, id: string, { log, state }: Walk): Promise<void> {
  await node.rows.create({ id, principal: "local", spec: { cwd: "/work" }, state: initialState(T0), at: T0 });
  const lease = (await node.leases.claim(id))!;
  const events = log.map((event) => SessionEvent.parse(event));
  await node.log.append(lease, { events, at: T0, state });
  await node.leases.release(lease);
}

/** Stores a session and its fork with the engine: with a policy, options, the account, and the fields of a fork. */
async function open(backend: SessionBackend): Promise<void> {
  const node = new TestNode(backend, new ManualClock());
  const id = await node.open("begin", "key", OPTIONS);
  node.runtime.lastProcess(id).finish();
  await node.waitForEvent(id, "turn.ended");
  const fork = await node.engine.fork(LOCAL_CALLER, id, { text: "branch off" });
  await node.waitForEvent(fork.sessionId, "process.started");
  await node.engine.drain();
}

const Dumped = z.object({
  id: z.string(),
  status: z.string(),
  at_work: z.int(),
  spec: z.string(),
  policy: z.string().nullable(),
  state: z.string(),
});
const DumpedEvent = z.object({ at: z.int(), type: z.string(), event: z.string() });

async function dump(file: string): Promise<StoredRow[]> {
  const db = await openDatabase(file);
  const rows = db.prepare(
    "SELECT id, status, at_work, state, spec, policy FROM sessions JOIN descriptions ON session_id = id ORDER BY sessions.rowid",
  );
  const log = db.prepare("SELECT at, type, event FROM events WHERE session_id = $id ORDER BY id");
  const found = z
    .array(Dumped)
    .parse(rows.all({}))
    .map(({ at_work: atWork, id, policy, spec, state, status }): StoredRow => {
      const events = z.array(DumpedEvent).parse(log.all({ id }));
      return {
        situation: id.includes("-") && id.length === 36 ? "opened by an engine" : id,
        id,
        status,
        atWork,
        spec: parse(spec),
        policy: policy === null ? null : parse(policy),
        state: parse(state),
        events: events.map(({ event, ...row }) => ({ ...row, event: parse(event) })),
      };
    });
  db.close();
  return found;
}

function parse(text: string): JsonObject {
  return JsonObject.parse(JSON.parse(text));
}

/** Inserts rows into a store unchanged, bypassing the code that writes rows of this version. */
export async function insert(store: StoreFile, rows: readonly StoredRow[]): Promise<void> {
  await mkdir(dirname(store.file), { recursive: true });
  const node = store.connect("maker");
  await node.maintenance.size();
  await node.close();
  const db = await openDatabase(store.file);
  const session = db.prepare(`INSERT INTO sessions(id, principal, cwd, state, status, at_work, last_event, rev, epoch,
      created_at, updated_at)
    VALUES($id, '"local"', '"/work"', $state, $status, $atWork, $last, 1, 1, ${String(T0)}, ${String(T0)})`);
  const description = db.prepare(
    "INSERT INTO descriptions(session_id, spec, policy, sought_cwd) VALUES($id, $spec, $policy, '/work')",
  );
  const event = db.prepare("INSERT INTO events(session_id, id, at, type, event) VALUES($id, $n, $at, $type, $event)");
  for (const { atWork, events, id, policy, spec, state, status } of rows) {
    session.run({ id, state: JSON.stringify(state), status, atWork, last: events.length });
    description.run({ id, spec: JSON.stringify(spec), policy: policy === null ? null : JSON.stringify(policy) });
    for (const [index, each] of events.entries()) {
      event.run({ id, n: index + 1, at: each.at, type: each.type, event: JSON.stringify(each.event) });
    }
  }
  db.close();
}

/** Expects that a node reads stored rows completely, as sessions of this version. */
export async function expectPresentShape(node: SessionBackend, rows: readonly StoredRow[]): Promise<void> {
  const records = await Promise.all(rows.map(async ({ id }) => (await node.rows.get(id))!));
  expect(records.map(({ state }) => SessionState.parse(state))).toEqual(records.map(({ state }) => state));
  expect(records.map(({ spec }) => SessionOptions.parse(spec))).toEqual(records.map(({ spec }) => spec));
  expect(records.map(({ policy }) => policy && Object.keys(SessionPolicy.parse(policy)).length)).toEqual(
    rows.map(({ policy }) => (policy === null ? undefined : Object.keys(SessionPolicy.shape).length)),
  );
  expect(records.map(({ state }) => statusOf(state))).toEqual(rows.map(({ status }) => status));
  const logs = await Promise.all(rows.map(async ({ id }) => node.log.read(id, 1, 1000)));
  const withPlace = (event: SessionEvent, at: number, index: number) => ({ ...event, at, id: index + 1 });
  expect(logs.map((log) => log.map((event, index) => withPlace(SessionEvent.parse(event), event.at, index)))).toEqual(
    logs,
  );
  expect(logs.map((log) => log.map(({ type }) => type))).toEqual(
    rows.map(({ events }) => events.map(({ type }) => type)),
  );
}

/**
 * Returns the schemas of stored parts without words and order. Options are left out, because all but the folder may be missing.
 */
export function shapes(): Record<string, unknown> {
  const schemas = { state: SessionState, policy: SessionPolicy, event: SessionEvent };
  return Object.fromEntries(
    Object.entries(schemas).map(([part, schema]) => [
      part,
      shapeOf(z.toJSONSchema(schema, { unrepresentable: "any" })),
    ]),
  );
}

const WORDS = new Set(["$schema", "description"]);

function shapeOf(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(shapeOf).toSorted(byText);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries = Object.entries(schema).filter(([key]) => !WORDS.has(key));
  return Object.fromEntries(entries.toSorted(byText).map(([key, value]) => [key, shapeOf(value)]));
}

function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}
