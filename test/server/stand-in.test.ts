import { afterAll, beforeAll, describe, it } from "vitest";

import { comparable, unordered } from "../kit/stand-in/comparable.ts";
import { SESSIONS } from "../kit/stand-in/scenarios.ts";
import { Stage } from "../kit/stand-in/stage.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { createWorld, STAND_IN, type World } from "../kit/world.ts";

/** Contract of the stand-in: each scenario leaves the same log as with Claude Code. */

const worlds: Record<"real" | "stand-in", { world: World; server: Server }> = {} as never;
beforeAll(async () => {
  for (const agent of ["real", "stand-in"] as const) {
    const world = await createWorld();
    const env = agent === "real" ? {} : STAND_IN;
    worlds[agent] = { world, server: await world.server({ args: ["--max-live", "50"], env }) };
  }
});
afterAll(async () => {
  for (const { world } of Object.values(worlds)) await world.close();
});

async function logOf(agent: "real" | "stand-in", { options = {}, scenarios }: (typeof SESSIONS)[string]) {
  const { server, world } = worlds[agent];
  const stage = new Stage(world, server, options);
  const returned: [string, unknown][] = [];
  for (const [name, scenario] of Object.entries(scenarios)) returned.push([name, await stage.play(scenario)]);
  const { events } = await stage.log();
  // Closes the session, because an idle Claude Code still uses the processor.
  await stage.act("close");
  const all = [...events, { type: "returned", data: { returned } }];
  return comparable(all, { cwd: stage.cwd, elsewhere: stage.elsewhere, config: world.configFolder });
}

describe("the stand-in for Claude Code", () => {
  it.concurrent.for(Object.entries(SESSIONS))(
    "a session %s leaves the same log with Claude Code and with its stand-in",
    async ([, session], { expect }) => {
      const [real, standIn] = await Promise.all([logOf("real", session), logOf("stand-in", session)]);
      if (session.unordered) expect(unordered(standIn)).toEqual(unordered(real));
      else expect(standIn).toEqual(real);
    },
  );
});
