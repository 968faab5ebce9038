import type { StoredRow } from "../store/stored-rows.ts";
import { T0 } from "../step/walk.ts";
import type { PostgresStore } from "./store.ts";

/** Quotes a text of any content for SQL. */
export const quoted = (text: string): string => `$text$${text}$text$`;

const json = (value: unknown): string => quoted(JSON.stringify(value));

/** Inserts rows into a store unchanged, bypassing the code that writes rows of this version. */
export async function insertRows(store: PostgresStore, rows: readonly StoredRow[]): Promise<void> {
  const maker = store.connect("maker");
  await maker.maintenance.count();
  await maker.close();
  const inserts = rows.flatMap(({ atWork, events, id, policy, spec, state, status }) => [
    `INSERT INTO sessions(id, principal, cwd, state, status, at_work, last_event, rev, epoch, created_at, updated_at,
        listed_at, last_write, bytes)
      VALUES(${quoted(id)}, '"local"', '"/work"', ${json(state)}, '${status}', ${String(atWork)}, ${String(events.length)},
        1, 1, ${String(T0)}, ${String(T0)}, ${String(T0)}, '', 0)`,
    `INSERT INTO descriptions(session_id, spec, policy, sought_cwd)
      VALUES(${quoted(id)}, ${json(spec)}, ${policy === null ? "NULL" : json(policy)}, '/work')`,
    ...events.map(
      ({ at, event, type }, index) =>
        `INSERT INTO events(session_id, id, at, type, event)
          VALUES(${quoted(id)}, ${String(index + 1)}, ${String(at)}, '${type}', ${json(event)})`,
    ),
  ]);
  await store.query("BEGIN", ...inserts, "COMMIT");
}
