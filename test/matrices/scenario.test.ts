import { beforeAll, describe, it } from "vitest";
import { CLIENT_KINDS, type Connection } from "../support/connection.ts";
import type { HttpServer } from "../support/http-server.ts";
import { expectSameFacts, SCENARIO_ARGS, TOOLSETS } from "../support/scenario.ts";
import { useWorld } from "../support/world.ts";

/** Each toolset through each client over each transport. */

const world = useWorld({ agent: "stand-in" });
const args = SCENARIO_ARGS;
let http: HttpServer;
beforeAll(async () => {
  http = await world.http({ args });
});

const connections = CLIENT_KINDS.flatMap((client): [string, () => Promise<Connection>][] => [
  [`a ${client} client of stdio`, async () => world.server({ client, args })],
  [`a ${client} client over HTTP`, async () => http.connect(client)],
]);

describe.each(connections)("a task of seven turns is reported alike to %s", (_, connect) => {
  let server: Connection;
  beforeAll(async () => {
    server = await connect();
  });

  it.each(TOOLSETS)("by the toolset %s", async (toolset) => {
    await expectSameFacts(world, server, toolset);
  });
});
