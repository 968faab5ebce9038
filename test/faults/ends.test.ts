import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { constants } from "../kit/servers/constants.ts";
import { END_NAMES, kindsOf, playEnd, type Outcome } from "../kit/faults/ends.ts";
import { limitedClaude } from "../kit/faults/limited-claude.ts";
import { amount } from "../kit/runner/amount.ts";
import { useWorld } from "../kit/world.ts";

/** After the reported end of a turn, only work listed in `background` may ask the model. */

const SILENCE_MS = 10_000;
/** Number of rows that run concurrently. */
const AT_ONCE = 8;

const world = useWorld();
const outcomes = new Map<string, Promise<Outcome>>();

beforeAll(async () => {
  const args = ["--toolsets", "agent,query,chat", "--allow-rules", "Bash"];
  const settings = { maxLive: 60 };
  const own = [...args, "--max-live", "60"];
  const bounds = constants({ unattendedAfterMs: 100, unattendedMaxMs: 2000 });
  const client = async () => world.shared({ args, settings });
  const unattendedHome = world.folder();
  const servers = {
    plain: await client(),
    budget: await world.shared({ args, settings, env: limitedClaude(world.folder(), 0.15) }),
    deaf: await world.server({ args: own, env: limitedClaude(world.folder(), 0.15, { deaf: true }) }),
    brief: await world.server({ args: [...own, "--turn-max-ms", "4000"] }),
    silent: await world.server({ args: own, env: constants({ inactivityMs: 2500 }) }),
    unattended: await world.shared({ args, settings, env: { HOME: unattendedHome, ...bounds } }),
  };
  const scene = { client, servers, unattendedHome, world };
  const rows = END_NAMES.flatMap((end) => chosenKinds(end).map((kind) => [end, kind] as const));
  const lanes = Array.from({ length: AT_ONCE }, (): Promise<unknown> => Promise.resolve());
  for (const [index, row] of rows.entries()) {
    const outcome = lanes[index % AT_ONCE]!.then(async () => playEnd(scene, row, SILENCE_MS));
    lanes[index % AT_ONCE] = outcome.catch(() => undefined);
    outcomes.set(row.join(), outcome);
  }
}, 60_000);
afterAll(async () => world.quiet(20_000));

/** Usually every third kind of each end, so that every kind follows some ends. */
function chosenKinds(end: (typeof END_NAMES)[number]) {
  const kinds = kindsOf(end);
  return kinds.filter((_, at) => kinds.length === 1 || (at + END_NAMES.indexOf(end)) % amount(3, 1) === 0);
}

describe.each(END_NAMES)("after an end by %s", (end) => {
  it.each(chosenKinds(end))(
    "%s asks the model after the end only if listed as background work",
    async (kind) => {
      const { asked, told, wanted } = await outcomes.get([end, kind].join())!;
      expect(told.result?.errorSubtype).toBe(wanted);
      // The end of a listed shell begins a turn of the main conversation.
      const isListed = told.background.some(({ type }) => type === "local_bash");
      expect(isListed ? asked.filter(({ agentId }) => agentId !== undefined) : asked).toEqual([]);
    },
    600_000,
  );
});
