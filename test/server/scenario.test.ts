import { beforeAll, describe, it } from "vitest";
import type { ClientKind } from "../support/connection.ts";
import type { HttpServer } from "../support/http-server.ts";
import { expectSameFacts, SCENARIO_ARGS, type Toolset } from "../support/scenario.ts";
import { useWorld } from "../support/world.ts";

/** Each toolset over each transport, each client once. All combinations: test/matrices/scenario.test.ts. */

/** Has the real Claude Code, once for each toolset. */
const real = useWorld();
const world = useWorld({ agent: "stand-in" });
const args = SCENARIO_ARGS;

describe("a task of seven turns is reported alike", () => {
  it.each<[Toolset, ClientKind]>([
    ["agent", "modern"],
    ["query", "legacy"],
    ["chat", "v1"],
  ])("by the toolset %s to a %s client of stdio", async (toolset, client) => {
    await expectSameFacts(real, await real.server({ client, args }), toolset);
  });

  describe("over HTTP", () => {
    let server: HttpServer;
    beforeAll(async () => {
      server = await world.http({ args });
    });

    it.each<[Toolset, ClientKind]>([
      ["agent", "legacy"],
      ["query", "modern"],
      ["chat", "v1"],
    ])("by the toolset %s to a %s client", async (toolset, client) => {
      await expectSameFacts(world, await server.connect(client), toolset);
    });
  });
});
