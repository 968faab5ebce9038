import { RawLive, rawQuery } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
/** Turns of each kind in a round: they are short. */
const TURNS = 8;

const LIVE = "raw live process: prompt to result";
const QUERY = "raw query(): prompt to result";

export const laterTurn = {
  name: "later-turn",
  about: "the next turn of a session whose process lives",
  rows: [
    { row: "later turn", of: "turn", base: LIVE, unit: "ms", atMost: 1.3 },
    { row: "later turn, against a new process", of: "turn", base: QUERY, unit: "ms", atMost: 0.1 },
  ],
  async run({ figures, progress, rounds, world }) {
    const server = await startServer(world);
    const sessionId = await server.begin(ASK);
    await server.end(sessionId);
    const live = new RawLive(world);
    await live.turn(ASK);
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      for (let turn = 0; turn < TURNS; turn++) {
        await figures.timed(LIVE, async () => live.turn(ASK));
        await figures.timed("turn", async () => server.turn(sessionId, ASK));
      }
      figures.note(QUERY, (await rawQuery(world, ASK)).resultMs);
    }
    await live.close();
    await server.close();
  },
};
