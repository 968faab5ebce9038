import { beforeAll, describe, it } from "vitest";
import { CLIENT_KINDS, type ClientKind, type Connection } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { expectSameFacts, SCENARIO_ARGS, SHOWN_OVER, TOOLSETS, type Toolset } from "../kit/sessions/scenario.ts";
import { useWorld } from "../kit/world.ts";

/** Each toolset through each client over each transport, except the rows of test/server/scenario.test.ts. */

const world = useWorld({ agent: "stand-in" });
const args = SCENARIO_ARGS;
let http: HttpServer;
beforeAll(async () => {
  http = await world.http({ args });
});

type Row = [string, ClientKind, keyof typeof SHOWN_OVER | "daemon", () => Promise<Connection>];
const connections = CLIENT_KINDS.flatMap((client): Row[] => [
  [`a ${client} client of stdio`, client, "stdio", async () => world.server({ client, args })],
  [`a ${client} client of a daemon`, client, "daemon", async () => world.shared({ client, args })],
  [`a ${client} client over HTTP`, client, "http", async () => http.connect(client)],
]);

describe.each(connections)("a task of seven turns is reported alike to %s", (_, client, transport, connect) => {
  let server: Connection;
  beforeAll(async () => {
    server = await connect();
  });

  const isShown = (toolset: Toolset) => transport !== "daemon" && SHOWN_OVER[transport][toolset] === client;
  const others = TOOLSETS.filter((toolset) => !isShown(toolset));
  it.each(others)("the toolset %s reports equal facts about the task", async (toolset) => {
    await expectSameFacts(world, server, toolset);
  });
});
