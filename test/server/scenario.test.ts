import { beforeAll, describe, it } from "vitest";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { expectSameFacts, SCENARIO_ARGS, SHOWN_OVER, TOOLSETS } from "../kit/sessions/scenario.ts";
import { useWorld } from "../kit/world.ts";

/** Each toolset over each transport, each client once. Other combinations: `test/matrices/scenario.test.ts`. */

/** Runs the real Claude Code, once for each toolset. */
const real = useWorld({ daemon: "auto" });
const world = useWorld({ agent: "stand-in", daemon: "auto" });
const args = SCENARIO_ARGS;
const rowsOf = (transport: keyof typeof SHOWN_OVER) =>
  TOOLSETS.map((toolset) => [toolset, SHOWN_OVER[transport][toolset]] as const);

describe("reports of a task of seven turns", () => {
  it.each(rowsOf("stdio"))(
    "the toolset %s reports the same facts of a task to a %s client over stdio",
    async (toolset, client) => {
      await expectSameFacts(real, await real.server({ client, args }), toolset);
    },
  );

  describe("over HTTP", () => {
    let server: HttpServer;
    beforeAll(async () => {
      server = await world.http({ args });
    });

    it.each(rowsOf("http"))(
      "the toolset %s reports the same facts of a task to a %s client over HTTP",
      async (toolset, client) => {
        await expectSameFacts(world, await server.connect(client), toolset);
      },
    );
  });
});
