import { readFacts } from "../../../stats/reading.ts";
import type { SessionRecord, Store } from "../store.ts";
import { isAbandoned, statusWord } from "../words.ts";
import type { Tally } from "./tally.ts";

/** Counts the session, and what has happened in it since `since`, ms since the epoch. */
export async function readSession(
  store: Pick<Store, "log">,
  record: SessionRecord,
  since: number,
  tally: Tally,
): Promise<void> {
  tally.session(statusWord(record), isAbandoned(record) ? 0 : record.state.asks.length);
  await readFacts(store.log, record, since, tally);
}
