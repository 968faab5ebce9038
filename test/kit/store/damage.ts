import { LOCAL_CALLER } from "../../../src/domain/principal.ts";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";
import { OPTIONS, type TestNode } from "../step/two-nodes.ts";
import { claimLease, notices, T0 } from "./vocabulary.ts";

/** Unreadable rows, written into a store's file as by a damaged disk or another program. */

export async function changeStore(file: string, ...statements: string[]): Promise<void> {
  const database = await openDatabase(file);
  database.exec("PRAGMA busy_timeout = 5000");
  for (const statement of statements) database.exec(statement);
  database.close();
}

/** A damaged row; `why` names the unreadable part. */
interface Damage {
  readonly what: string;
  readonly sql: (id: string) => string;
  readonly why: string | RegExp;
}

const set = (column: string, value: string) => (id: string) =>
  `UPDATE sessions SET ${column} = ${value} WHERE id = '${id}'`;
const describe = (column: string, value: string) => (id: string) =>
  `UPDATE descriptions SET ${column} = ${value} WHERE session_id = '${id}'`;

/** Replaces a part of a state in the present format. */
const replaced = (path: string, value: string) => set("state", `json_set(state, '$.${path}', json('${value}'))`);

/** Each damage leaves a session of which nothing runs and nothing can be started. */
export const DAMAGES: readonly Damage[] = [
  { what: "a state of invalid JSON", sql: set("state", `'{"v":1,"turn":'`), why: "state: not valid JSON" },
  { what: "an empty state", sql: set("state", "''"), why: "state: missing" },
  { what: "a state of bytes", sql: set("state", "x'00ff'"), why: "state: not text" },
  { what: "a state of another type", sql: set("state", "'[]'"), why: "state: not valid JSON" },
  {
    what: "a state without a part",
    sql: set("state", "json_remove(state, '$.totals')"),
    why: "state: no valid totals",
  },
  { what: "a state with a number for a list", sql: replaced("queue", "7"), why: "state: no valid queue" },
  { what: "a state with a process of no phase", sql: replaced("process", "{}"), why: "state: no valid process.phase" },
  {
    what: "a state whose last event differs from its log's",
    sql: replaced("lastEventId", "77"),
    why: "state: its last event is not that of its log",
  },
  { what: "options of invalid JSON", sql: describe("spec", "'{'"), why: "options: not valid JSON" },
  {
    what: "options without a folder",
    sql: describe("spec", "json_remove(spec, '$.cwd')"),
    why: "options: no valid cwd",
  },
  { what: "a policy of invalid JSON", sql: describe("policy", "'nothing'"), why: "policy: not valid JSON" },
  {
    what: "a missing description",
    sql: (id) => `DELETE FROM descriptions WHERE session_id = '${id}'`,
    why: "options: missing",
  },
  {
    what: "a state that only a newer server can read",
    sql: set("state", `json_set(state, '$.v', 99, '$.needs', 99)`),
    why: /needs format version 99.*Update claude-agents-mcp/,
  },
];

/** Each damage leaves a usable session without the damaged part. */
export const HARMLESS: readonly Omit<Damage, "why">[] = [
  { what: "a title of invalid JSON", sql: describe("title", "'nothing'") },
  { what: "times that are not numbers", sql: set("created_at", "'nothing'") },
  { what: "a revision that is not a number", sql: set("rev", "'nothing'") },
];

/** Values in place of an event's JSON. */
export const DAMAGED_EVENTS: readonly (readonly [what: string, value: string, why: string])[] = [
  ["no JSON", `'{"v":1,"type":"mess'`, "content: not valid JSON"],
  ["nothing", "''", "content: missing"],
  ["bytes", "x'00'", "content: not text"],
  ["no type", `'{"v":1}'`, "content: no valid type"],
  ["no data", `'{"v":1,"type":"notice"}'`, "content: no valid data"],
  ["data of another type", `'{"v":1,"type":"message","data":{"message":"said"}}'`, "content: no valid data.message"],
];

/** Creates an idle session with the engine; no server owns the session. */
export async function sessionAtRest(a: TestNode): Promise<string> {
  const { sessionId } = await a.engine.create(LOCAL_CALLER, OPTIONS);
  const lease = await claimLease(a.backend, sessionId);
  const { state } = (await a.backend.rows.get(sessionId))!;
  await a.backend.log.append(lease, { events: notices(1, 3), at: T0, state: { ...state, lastEventId: 3 } });
  await a.backend.leases.release(lease);
  return sessionId;
}
