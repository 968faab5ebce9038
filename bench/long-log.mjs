import { setTimeout as sleep } from "node:timers/promises";

import { filledStore } from "./internals.mjs";
import { residentMb } from "./processes.mjs";
import { startServer } from "./server.mjs";

const EVENTS = 1_002_000;
const SESSIONS = 1_000;
/** Polls of each kind in a round. */
const POLLS = 30;
/** Time for a server to release unused memory, ms. */
const SETTLE_MS = 3_000;

const AT_10 = "the same at cursor 10";
const EMPTY = "a server on an empty store, after as many polls";

export const longLog = {
  name: "long-log",
  long: true,
  about: "1,000 sessions and a million events in the store: what a poll costs, and what the server keeps in memory",
  rows: [
    { row: "poll at cursor 1,000,000", of: "poll", base: AT_10, unit: "ms", atMost: 1.5 },
    { row: "memory, every session polled", of: "memory", base: EMPTY, unit: "MB", atMostMore: 40 },
  ],
  async run({ figures, progress, rounds, world }) {
    const { file, ids } = await filledStore(world, { events: EVENTS, progress, sessions: SESSIONS });
    const empty = await filledStore(world, { progress, sessions: 1 });
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      await measure(
        empty,
        Array.from({ length: SESSIONS }, () => empty.ids[0]),
      );
      await measure({ file }, ids);
    }

    async function measure(store, polled) {
      const server = await startServer(world, ["--store", store.file]);
      for (const sessionId of polled) await poll(server, { sessionId, cursor: 1 });
      await sleep(SETTLE_MS);
      figures.note(store === empty ? EMPTY : "memory", residentMb(server.pid));
      for (let count = 0; count < POLLS && store !== empty; count++) {
        await figures.timed(AT_10, () => poll(server, { sessionId: ids.at(-1), cursor: 10 }));
        await figures.timed("poll", () => poll(server, { sessionId: ids.at(-1), cursor: 1_000_000 }));
      }
      await server.close();
    }
  },
};

function poll(server, place) {
  return server.call("claude_code_check", { action: "poll", ...place, maxEvents: 20, waitMs: 0 });
}
