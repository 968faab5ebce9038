import { afterAll, beforeAll, expect, it } from "vitest";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "../../scripts/postgres-cluster.mjs";
import { scriptTag } from "../../src/demo/model/script.ts";
import { TcpProxy } from "../kit/faults/tcp-proxy.ts";
import { BACK_PROMPT } from "../kit/faults/driving.ts";
import { countLost, expectUsable, Watcher } from "../kit/faults/watcher.ts";
import { Database, describePostgres } from "../kit/postgres/database.ts";
import { fullDiskTest } from "../kit/postgres/full-disk.ts";
import { amount } from "../kit/runner/amount.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Faults of the database in the middle of a turn: the turn goes on, and nothing that a caller saw is lost. */

/** Time without a database, ms. */
const AWAY_MS = amount(1_500, 20_000);
/** Time for which a call waits for the database, ms: `PATIENCE_MS.call` of the store. */
const PATIENCE_MS = 10_000;

describePostgres("a turn while its database", () => {
  const world = useWorld({ agent: "stand-in", daemon: "never" });
  let cluster: Cluster;
  let database: Database;
  let server: Server;
  beforeAll(async () => {
    cluster = await Cluster.start();
    database = await Database.create(cluster);
    server = await world.server({ args: database.flags() });
  });
  afterAll(async () => {
    await world.closeServers();
    await database.drop();
    await cluster.remove();
  });

  let cwd: string;
  let gate: string;
  let sessionId: string;
  let watcher: Watcher;

  /** Begins a turn, followed by a client, that waits for the model. */
  async function begin(through = server): Promise<void> {
    cwd = world.folder();
    gate = `held-${cwd}`;
    const look = { text: "I look.", tools: [{ name: "Bash", input: { command: "echo seen" } }] };
    const prompt = scriptTag([look, { gateBefore: gate, text: "Held." }]);
    ({ sessionId } = await through.call("claude_code", { prompt, cwd, allowedTools: ["Bash"] }));
    watcher = new Watcher(through);
    void watcher.follow(sessionId);
    await world.model.waitForRequest(
      (request) => request.sessionId === sessionId && "entry" in request.served && request.served.entry === 1,
    );
  }

  /** Expects that the turn ends well, and that the session takes another. */
  async function expectGoesOn(through = server): Promise<void> {
    expect(await through.end(sessionId)).toMatchObject({ status: "idle", result: { result: "Held.", isError: false } });
    expect(await countLost(through, sessionId, watcher.seen)).toBe(0);
    await expectUsable(through, sessionId, BACK_PROMPT);
  }

  it("is restarted goes on", async () => {
    await begin();
    await cluster.stop();
    await cluster.start();
    world.model.release(gate);
    await expectGoesOn();
  });

  it("crashes goes on", async () => {
    await begin();
    await cluster.stop("QUIT");
    await cluster.start();
    world.model.release(gate);
    await expectGoesOn();
  });

  /**
   * Causes a fault for `AWAY_MS`, in which Claude Code ends its work. A session that is begun meanwhile runs afterwards. A question
   * is answered afterwards, or refused with `reason` if the fault is long.
   */
  async function expectRidden(reason: string, cause: () => Promise<unknown>, mend: () => Promise<void>): Promise<void> {
    await begin();
    await cause();
    world.model.release(gate);
    const begun = server.call("claude_code", { prompt: BACK_PROMPT, cwd, waitMs: 30_000 });
    const asked = server.call("claude_code_session", { action: "get", sessionId }).then(
      () => "answered",
      (error: unknown) => String(error),
    );
    await sleep(AWAY_MS);
    await mend();
    expect(await asked).toContain(AWAY_MS > PATIENCE_MS && reason !== "" ? reason : "answered");
    expect(await begun).toMatchObject({ status: "idle", result: { result: "Back." } });
    await expectGoesOn();
  }

  it("is away goes on", async () => {
    await expectRidden(
      "does not answer",
      async () => cluster.stop(),
      async () => cluster.start(),
    );
  });

  it("is read-only, as a former primary, goes on", async () => {
    await expectRidden(
      // Reads go on.
      "",
      async () => database.setReadOnly(true),
      async () => database.setReadOnly(false),
    );
  });

  it("has no connection left goes on", async () => {
    await expectRidden(
      "no free connection",
      async () => database.limitConnections(0).then(async () => database.disconnect()),
      async () => database.limitConnections(-1),
    );
  });

  it.each(["cut", "freeze"] as const)(
    "is out of reach of its node alone goes on: the network does %s",
    async (fault) => {
      const proxy = await TcpProxy.open(cluster.port);
      const node = await world.server({ args: database.flags(proxy.port) });
      await begin(node);
      proxy[fault]();
      world.model.release(gate);
      await sleep(amount(2_000, 5_000));
      expect(await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 })).toMatchObject({
        status: "running",
      });
      proxy.continue();
      await expectGoesOn(node);
      await node.close();
      await proxy.close();
    },
  );
});

// At night only: a store waits for its database before it refuses.
if (amount(0, 1) === 1) describePostgres("a database whose disk is full", fullDiskTest);
