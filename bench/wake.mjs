import { setTimeout as sleep } from "node:timers/promises";

import { rawQuery } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
/** Minimum of `--idle-process-ms`. */
const IDLE_MS = 1_000;

const RESUME = "raw query() with resume: prompt to result";

export const wake = {
  name: "wake",
  about: "the next turn of a session whose process was closed because it was idle",
  rows: [{ row: "wake from hibernation", of: "wake", base: RESUME, unit: "ms", atMost: 1.1 }],
  async run({ figures, progress, rounds, world }) {
    const server = await startServer(world, ["--idle-process-ms", String(IDLE_MS)]);
    const sessionId = await server.begin(ASK);
    await server.end(sessionId);
    const cwd = world.folder();
    const { sessionId: resume } = await rawQuery(world, ASK, { cwd });
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      while (world.claudes().length > 0) await sleep(100);
      await figures.timed("wake", async () => server.turn(sessionId, ASK));
      while (world.claudes().length > 0) await sleep(100);
      figures.note(RESUME, (await rawQuery(world, ASK, { cwd, resume })).resultMs);
    }
    await server.close();
  },
};
