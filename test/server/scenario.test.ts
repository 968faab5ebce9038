import { beforeAll, describe, it } from "vitest";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { expectSameFacts, SCENARIO_ARGS, SHOWN_OVER, TOOLSETS } from "../kit/sessions/scenario.ts";
import { useWorld } from "../kit/world.ts";

/** Each toolset over each transport, each client once. The other combinations: test/matrices/scenario.test.ts. */

/** Has the real Claude Code, once for each toolset. */
const real = useWorld({ daemon: "auto" });
const world = useWorld({ agent: "stand-in", daemon: "auto" });
const args = SCENARIO_ARGS;
const rowsOf = (transport: keyof typeof SHOWN_OVER) =>
  TOOLSETS.map((toolset) => [toolset, SHOWN_OVER[transport][toolset]] as const);

describe("a task of seven turns is reported alike", () => {
  it.each(rowsOf("stdio"))("by the toolset %s to a %s client of stdio", async (toolset, client) => {
    await expectSameFacts(real, await real.server({ client, args }), toolset);
  });

  describe("over HTTP", () => {
    let server: HttpServer;
    beforeAll(async () => {
      server = await world.http({ args });
    });

    it.each(rowsOf("http"))("by the toolset %s to a %s client", async (toolset, client) => {
      await expectSameFacts(world, await server.connect(client), toolset);
    });
  });
});
