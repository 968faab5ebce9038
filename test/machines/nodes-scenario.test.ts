import { expect, it } from "vitest";
import { signIn } from "../kit/clients/console-client.ts";
import { Targets } from "../kit/actions/targets.ts";
import { INVALID_ARGUMENT, WAYS } from "../kit/actions/ways.ts";
import { useNodes } from "../kit/machines/nodes.ts";
import { describePostgres } from "../kit/postgres/database.ts";
import { half } from "../kit/runner/amount.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { expectSameFacts, SHOWN_OVER } from "../kit/sessions/scenario.ts";

/** A caller at one node, and a session at the other. */

const kinds = SHOWN_OVER.http;

describePostgres("the task of seven turns at two nodes", () => {
  const nodes = useNodes();

  it("the toolset agent reports the same facts of a session that runs at another node, by name or by labels", async () => {
    const { a, b, world } = nodes;
    const client = await a.connect(kinds.agent);
    await expectSameFacts(world, client, "agent");
    await expectSameFacts(world, client, "agent", { advanced: { node: "b" } });
    await expectSameFacts(world, client, "agent", { advanced: { labels: { disk: "b" } }, later: await b.connect() });
  });

  it.each(["query", "chat"] as const)(
    "the toolset %s reports the same facts when its later calls go to another node",
    async (toolset) => {
      const { a, b, world } = nodes;
      const later = await a.connect(kinds[toolset]);
      await expectSameFacts(world, await b.connect(kinds[toolset]), toolset, { later });
    },
  );
});

const users = namedUsers({ all: { scopes: ["read", "run", "approve"] } });

describePostgres("actions on sessions of another node", () => {
  const env = ["--approvals", "caller,console"];
  const nodes = useNodes({ args: [...users.args, ...env, "--toolsets", "all"] });
  let targets: Promise<Targets> | undefined;
  const { all: token } = users.tokens;

  it.each(half(half(WAYS)))("$action by $way is performed for a session of another node", async (way) => {
    const { a, b, world } = nodes;
    targets ??= Targets.on({ server: a.server, token, folder: () => world.folder() });
    const target = await (await targets).for(way);
    // Only the node of a folder can read it.
    const comesTo = way.action === "diff" ? INVALID_ARGUMENT : (way.comesTo ?? "ok");
    expect(await way.drive(target)(b.server, token)).toBe(comesTo);
  });

  it("the console shows the sessions of both nodes at each", async () => {
    const { a, b, world } = nodes;
    const pages = await Promise.all([a, b].map(async ({ server }) => signIn(server, token)));
    const [first, second] = pages;
    const sessionId = await first!.start("Say it.", world.folder());
    expect(await second!.end(sessionId)).toMatchObject({ id: sessionId });
  });
});
