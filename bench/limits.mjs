import { join } from "node:path";

import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

/** Turns of each kind in a round. */
const TURNS = 8;

const WITHOUT = "no reserve and no budget";

const SETTINGS = ["--plan-reserve", '{"fiveHour": 15, "sevenDay": 20}', "--budget-usd-per-day", "100000"];

export const limits = {
  name: "limits",
  about: "a later turn with a reserve and a budget, on a subscription",
  rows: [
    { row: "later turn, with a reserve and a budget", of: "turn", base: WITHOUT, unit: "ms", atMost: 1.1 },
    { row: "its start, until the reply returns", of: "start", base: `${WITHOUT}: start`, unit: "ms", atMostMore: 5 },
  ],
  async run({ figures, progress, rounds, world }) {
    const bounded = await open(world, "bounded", SETTINGS);
    const free = await open(world, "free", []);
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      for (let turn = 0; turn < TURNS; turn++) {
        await figures.timed(WITHOUT, async () => free.turn(figures, `${WITHOUT}: start`));
        await figures.timed("turn", async () => bounded.turn(figures, "start"));
      }
    }
    for (const { close } of [bounded, free]) await close();
  },
};

/** Starts a server with a session on a subscription. */
async function open(world, name, flags) {
  const { ANTHROPIC_API_KEY: token, ...others } = world.environment;
  const signedIn = { ...world, environment: { ...others, CLAUDE_CODE_OAUTH_TOKEN: token } };
  const server = await startServer(signedIn, ["--store", join(world.home, `${name}.db`), ...flags]);
  let turns = 0;
  /** Each answer changes the used share, so that Claude Code reports the plan in each turn. */
  const ask = () => {
    turns += 1;
    const fiveHour = { used: 0.3 + 0.01 * (turns % 2), resetsInS: 3_600 };
    return prompt({ text: "hi", plan: { claim: "five_hour", fiveHour, sevenDay: { used: 0.2, resetsInS: 300_000 } } });
  };
  const sessionId = await server.begin(ask());
  await server.end(sessionId);
  return {
    async turn(figures, start) {
      await figures.timed(start, async () => server.call("claude_code_reply", { sessionId, prompt: ask() }));
      await server.end(sessionId);
    },
    close: async () => server.close(),
  };
}
