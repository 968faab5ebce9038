import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { haproxy } from "../../scripts/install-postgres.mjs";
import { freePort } from "../../scripts/postgres-cluster.mjs";
import { scriptTag } from "../../src/demo/model/script.ts";
import { newClient } from "../kit/clients/connection.ts";
import { signIn } from "../kit/clients/console-client.ts";
import { compose, nodes, nodeSettings, textOf, USER_TOKEN } from "../kit/machines/cluster-example.ts";
import { Machine } from "../kit/machines/machine.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { type Guarded, startGuarded } from "../kit/postgres/guarded.ts";
import { constants } from "../kit/servers/constants.ts";
import { connectOver, type HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Runs the services of examples/cluster without containers: each node in a pid namespace, with a home folder of its own. */

describePostgres("examples/cluster without containers", () => {
  const database = useDatabase();
  const world = useWorld({ agent: "stand-in", daemon: "never" });
  const machines: Machine[] = [];
  const ports = new Map<string, number>();
  let shared = "";
  let balancer: Guarded | undefined;
  let origin = "";
  let port = 0;

  const main = (words: readonly string[]) => ["dist/cli/main.js", ...words];
  const inWorld = (...names: string[]) => join(String(world.environment["HOME"]), ...names);

  /** Starts a node by its command line in the example, with paths of this machine. */
  async function startNode(name: string): Promise<{ server: HttpServer; machine: Machine }> {
    const { command } = compose.services[name]!;
    const disks = [...ports.keys()].map((each) => inWorld(each));
    const machine = await Machine.start(disks.filter((disk) => disk !== inWorld(name)));
    machines.push(machine);
    const home = inWorld(name);
    const args = command.slice(1).map((word) => (word.startsWith("/etc/") ? inWorld("node.json") : word));
    const server = await world.http({
      args: [...args, "--http", `127.0.0.1:${String(ports.get(name))}`],
      env: { HOME: home, CLAUDE_CONFIG_DIR: join(home, ".claude"), ...constants({ testLeaseMs: 3_000 }) },
      through: machine.through,
    });
    return { server, machine };
  }

  /** Starts the balancer with the file of the example, with ports of this machine. */
  async function startBalancer(): Promise<Guarded> {
    const file = inWorld("haproxy.cfg");
    const text = textOf("haproxy.cfg")
      .replace(/bind :\d+/, `bind 127.0.0.1:${String(port)}`)
      .replaceAll(
        /^( {2}server (\w+)) \S+/gm,
        (_, begin: string, name: string) => `${begin} 127.0.0.1:${String(ports.get(name))}`,
      );
    writeFileSync(file, text);
    return startGuarded([haproxy(), "-db", "-f", file], port);
  }

  beforeAll(async () => {
    shared = inWorld("work");
    for (const folder of [shared, ...nodes.map(([name]) => inWorld(name))]) mkdirSync(folder);
    for (const [name] of nodes) ports.set(name, await freePort());
    const share = compose.services["marker"]!.command.map((word) => (word.startsWith("/") ? shared : word));
    execFileSync(process.execPath, main(share), { env: { PATH: process.env["PATH"] } });
    port = await freePort();
    origin = `http://127.0.0.1:${String(port)}`;
    const [, store = "", , storePasswordFile = ""] = database().flags();
    const here = { store, storePasswordFile, publicUrl: origin, allowDirs: [shared], sharedFolders: [shared] };
    writeFileSync(inWorld("node.json"), nodeSettings(here));
  });
  afterAll(async () => {
    await world.closeServers();
    await balancer?.stop();
    await Promise.all(machines.map(async (machine) => machine.kill()));
  });

  it("a client of the 2025 protocol and a browser go on at the other node when theirs is killed", async () => {
    const one = await startNode("one");
    balancer = await startBalancer();
    const page = await signIn({ origin }, USER_TOKEN);
    const client = await connectOver(new URL("/mcp", origin), newClient("2025-11-25"), USER_TOKEN);
    const begun = await client.call("claude_code", {
      prompt: scriptTag([{ text: "From one." }]),
      cwd: shared,
      waitMs: 20_000,
    });
    expect(begun).toMatchObject({ status: "idle", result: { result: "From one." } });

    // The balancer takes a node for up until two looks have failed.
    await expect.poll(() => balancer?.output()).toContain("Server nodes/two is DOWN");
    const two = await startNode("two");
    await expect.poll(() => balancer?.output()).toContain("Server nodes/two is UP");
    await one.machine.kill();
    // Until then the balancer may close a connection on which a call, which it must not repeat, is under way.
    await expect.poll(() => balancer?.output()).toContain("Server nodes/one is DOWN");

    expect(await client.call("claude_code_session", { action: "list" })).toMatchObject({
      sessions: [{ sessionId: begun.sessionId }],
    });
    const prompt = scriptTag([{ text: "From two." }]);
    const { sessionId } = begun;
    expect(await client.call("claude_code_reply", { sessionId, prompt, waitMs: 20_000 })).toMatchObject({
      status: "idle",
      result: { result: "From two." },
    });
    expect(await page.get("sessions")).toMatchObject({ sessions: [{ id: sessionId }] });
    const late = await signIn({ origin: two.server.origin }, USER_TOKEN);
    expect(await late.end(sessionId)).toMatchObject({ id: sessionId, status: "idle" });
    await client.close();
  });
});
