import { resolve } from "node:path";
import { noId, pointInTime, readArguments } from "./arguments.ts";
import { tell } from "./stats/page.ts";
import { readSession } from "./stats/reading.ts";
import { Tally } from "./stats/tally.ts";
import { allSessions, withStoreIfAny } from "./store.ts";
import { isoTime, jsonLine } from "./words.ts";

const FLAGS = { cwd: { type: "string" }, since: { type: "string" }, json: { type: "boolean" } } as const;

/** Prints counts, times and error rates of what has happened in the sessions. */
export async function stats(argv: string[]): Promise<number> {
  const { positionals, values } = readArguments("stats", argv, FLAGS);
  noId("stats", positionals);
  const cwd = values.cwd === undefined ? undefined : resolve(values.cwd);
  const since = values.since === undefined ? undefined : pointInTime("since", values.since, Date.now());
  const query = { ...(cwd !== undefined && { cwd }), ...(since !== undefined && { since }) };
  const tally = new Tally();
  await withStoreIfAny(
    values,
    async (store) => {
      for await (const record of allSessions(store, query)) await readSession(store, record, since ?? 0, tally);
    },
    () => undefined,
  );
  const report = tally.report();
  const of = { ...(since !== undefined && { since: isoTime(since) }), ...(cwd !== undefined && { cwd }) };
  process.stdout.write(values.json === true ? jsonLine({ ...of, ...report }) : tell(report));
  return 0;
}
