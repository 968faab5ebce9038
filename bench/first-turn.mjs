import { setTimeout as sleep } from "node:timers/promises";

import { rawInFreshNode, rawQuery } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
/**
 * Time for a spare process to come up, ms: the quiet second before its start, and about as long as any start of Claude Code.
 */
const SPARE_MS = 3_000;
const SPARES = 1;

const INIT = "raw query(): call to init";
const RESULT = "raw query(): prompt to result";
const FRESH = "raw, in a fresh node: import of the SDK, query() to result";

export const firstTurn = {
  name: "first-turn",
  about: "a new session: until claude_code returns, and until its first turn has ended",
  rows: [
    { row: "claude_code returns", of: "returns", base: INIT, unit: "ms", atMost: 0.05 },
    { row: "claude_code returns, first call of a server", of: "fresh: returns", base: INIT, unit: "ms" },
    { row: "first turn, warm spare", of: "warm: result", base: RESULT, unit: "ms", atMost: 0.55 },
    {
      row: "first turn, right behind that of another session",
      of: "behind: result",
      base: RESULT,
      unit: "ms",
      atMost: 1.1,
    },
    { row: "first turn, cold", of: "result", base: RESULT, unit: "ms", atMost: 1.1 },
    { row: "first turn, first call of a server", of: "fresh: result", base: FRESH, unit: "ms" },
  ],
  async run({ figures, progress, rounds, world }) {
    // Warms up: the first start after an installation reads the program from the disk.
    await rawQuery(world, ASK);
    // Warms up both sides with a call: separate rows measure the cost of a first call.
    const server = await startServer(world);
    await quiet(world, server, await newSession(server, figures));
    const withSpares = await startServer(world, ["--spares", String(SPARES)]);
    await warm(withSpares, figures, undefined);
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      const { initMs, resultMs } = await rawQuery(world, ASK);
      figures.note(INIT, initMs);
      figures.note(RESULT, resultMs);
      await quiet(world, server, await newSession(server, figures, ""));
      await fresh(world, figures);
      // A fresh Node has not loaded the SDK, like a server before its first call.
      figures.note(FRESH, (await rawInFreshNode(world, ASK)).resultMs);
      await warm(withSpares, figures, "warm: ", "behind: ");
    }
    await withSpares.close();
    await server.close();
  },
};

/**
 * Ends the session and waits, so that no other Claude Code except a waiting spare uses the processor during the next start, as
 * on the raw side.
 */
async function quiet(world, server, sessionId) {
  await server.call("claude_code_session", { action: "cancel", sessionId });
  while (world.claudes().length > SPARES) await sleep(50);
}

async function fresh(world, figures) {
  const server = await startServer(world);
  await newSession(server, figures, "fresh: ");
  await server.close();
}

/**
 * Runs one session per prefix, each as soon as the session before has its result. Leaves a spare, and waits for the spare to
 * come up.
 */
async function warm(server, figures, ...prefixes) {
  const begun = [];
  for (const prefix of prefixes) begun.push(await newSession(server, figures, prefix));
  for (const sessionId of begun) await server.call("claude_code_session", { action: "cancel", sessionId });
  await sleep(SPARE_MS);
}

/** Without `prefix`, names the samples like no row. */
function newSession(server, figures, prefix = "to warm up: ") {
  return figures.timed(`${prefix}result`, async () => {
    const sessionId = await figures.timed(`${prefix}returns`, () => server.begin(ASK));
    await server.end(sessionId);
    return sessionId;
  });
}
