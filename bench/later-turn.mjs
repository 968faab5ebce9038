import { setTimeout as sleep } from "node:timers/promises";

import { RawLive, rawQuery } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
/** Turns of each kind in a round. */
const TURNS = 8;

/**
 * Time for a spare process to come up, ms: the quiet second before its start, and about as long as any start of Claude Code.
 */
const SPARE_MS = 3_000;

const LIVE = "raw live process: prompt to result";
const QUERY = "raw query(): prompt to result";

export const laterTurn = {
  name: "later-turn",
  about: "the next turn of a session whose process lives",
  rows: [
    { row: "later turn", of: "turn", base: LIVE, unit: "ms", atMost: 1.3 },
    { row: "later turn, against a new process", of: "turn", base: QUERY, unit: "ms", atMost: 0.1 },
    { row: "right behind a first turn, against a new process", of: "behind", base: QUERY, unit: "ms", atMost: 0.12 },
  ],
  async run({ figures, progress, rounds, world }) {
    const server = await startServer(world);
    const sessionId = await server.begin(ASK);
    await server.end(sessionId);
    const withSpares = await startServer(world, ["--spares", "1"]);
    const live = new RawLive(world);
    await live.turn(ASK);
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      for (let turn = 0; turn < TURNS; turn++) {
        await figures.timed(LIVE, async () => live.turn(ASK));
        await figures.timed("turn", async () => server.turn(sessionId, ASK));
      }
      figures.note(QUERY, (await rawQuery(world, ASK)).resultMs);
      await behindFirst(withSpares, figures);
    }
    await withSpares.close();
    await live.close();
    await server.close();
  },
};

/**
 * Runs the first two turns of a session without a pause, because starting a spare after a turn must not slow down the next
 * turn.
 */
async function behindFirst(server, figures) {
  const sessionId = await server.begin(ASK);
  await server.end(sessionId);
  await figures.timed("behind", () => server.turn(sessionId, ASK));
  await server.call("claude_code_session", { action: "cancel", sessionId });
  await sleep(SPARE_MS);
}
