import { expect, it } from "vitest";
import { useNodes } from "../kit/machines/nodes.ts";
import {
  expectCalls,
  expectEnds,
  goOn,
  LOST,
  startAtGate,
  startLongCall,
  startWhole,
  wentOn,
} from "../kit/machines/turns.ts";
import { describePostgres } from "../kit/postgres/database.ts";

/** A machine, or its server alone, dies in a turn. */

describePostgres("a machine that dies", () => {
  const nodes = useNodes({ hasVolume: true });
  const inVolume = () => ({ world: nodes.world, below: nodes.shared });

  it("the turn of a machine that dies is lost once, and the next prompt goes on at another node with the shared folder", async () => {
    const { a, b } = nodes;
    const other = await b.connect();
    const written = await startLongCall(await a.connect(), inVolume());
    const ended = other.end(written.sessionId);
    await a.kill();
    expect(await ended).toMatchObject(LOST);
    expect(await goOn(other, written, "two")).toMatchObject(wentOn("two"));
    expectCalls(written, ["one", "two"]);
    await expectEnds(other, written, ["lost", "ok"]);
    await a.start();
    // The node that is back sees what went on without it, and may go on itself.
    expect(await goOn(await a.connect(), written, "three")).toMatchObject(wentOn("three"));
  });

  it("a turn with `onLost: resume` goes on by itself at another node with the shared folder", async () => {
    const { a, b, world } = nodes;
    const from = { ...inVolume(), advanced: { onLost: "resume" } };
    const written = await startAtGate(await a.connect(), from, "resumed");
    await a.kill();
    const ended = (await b.connect()).end(written.sessionId);
    world.model.release("resumed");
    expect(await ended).toMatchObject({ status: "idle", result: { isError: false } });
    await a.start();
  });

  it("a session in a folder of the dead node waits for the node, and then goes on by itself", async () => {
    const { a, b, shared, world } = nodes;
    const from = { world, below: a.ownFolder, filesIn: shared };
    const other = await b.connect();
    const written = await startWhole(await a.connect(), from);
    await a.kill();
    const waiting = await goOn(other, written, "two", { waitMs: 0 });
    expect(waiting).toMatchObject({ status: "running" });
    const { sessionId } = written;
    const shown = async () => (await other.call("claude_code_session", { action: "get", sessionId })).sessions[0];
    await expect.poll(shown).toMatchObject({ status: "running", waiting: { kind: "workspace" } });
    const { sessions } = await other.call("claude_code_session", { action: "list" });
    expect(sessions.find((each) => each.sessionId === sessionId)).toMatchObject({ waiting: { kind: "workspace" } });
    const news = await other.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(JSON.stringify(news)).toContain("which is not alive, or is being drained");
    expectCalls(written, ["one"]);
    const ended = other.end(sessionId);
    await a.start();
    expect(await ended).toMatchObject(wentOn("two"));
    expectCalls(written, ["one", "two"]);
    await expectEnds(other, written, ["ok", "ok"]);
  });

  it("a caller whose node dies goes on at the node of the session, whose turn goes on", async () => {
    const { a, b, world } = nodes;
    const client = await a.connect();
    const from = { ...inVolume(), advanced: { node: "b" } };
    const written = await startAtGate(client, from, "beside");
    const cut = client.end(written.sessionId).catch((error: unknown) => String(error));
    await a.kill();
    expect(await cut).toMatch(/fetch failed|closed|terminated/);
    const ended = (await b.connect()).end(written.sessionId);
    world.model.release("beside");
    expect(await ended).toMatchObject({ status: "idle", result: { result: "Done." } });
    expectCalls(written, ["one"]);
    await expectEnds(await b.connect(), written, ["ok"]);
    await a.start();
  });
});

describePostgres("a server that dies beside its shim", () => {
  // Long enough for the start of a server on a busy machine.
  const nodes = useNodes({ leaseMs: 20_000 });

  it("the next server of a node goes on with the turn of a killed one", async () => {
    const { a, b, world } = nodes;
    const other = await b.connect();
    const written = await startAtGate(await a.connect(), { world, below: world.folder() }, "attached");
    const ended = other.end(written.sessionId);
    await a.killServer();
    await a.start();
    world.model.release("attached");
    expect(await ended).toMatchObject({ status: "idle", result: { result: "Done." } });
    expectCalls(written, ["one"]);
    expect(await goOn(other, written, "two")).toMatchObject(wentOn("two"));
  });
});

describePostgres("a daemon on a store of several machines", () => {
  const nodes = useNodes();

  it("a session of a client over stdio is prompted at another node, and waits for the node of its daemon after the machine has died", async () => {
    const { a, b, shared, world } = nodes;
    const client = await a.connectDaemon("c");
    const other = await b.connect();
    const written = await startWhole(client, { world, below: shared });
    expect(await goOn(other, written, "two")).toMatchObject(wentOn("two"));
    const { sessions } = await client.call("claude_code_session", { action: "get", sessionId: written.sessionId });
    expect(sessions).toMatchObject([{ status: "idle", place: { node: "c" } }]);
    const ended = other.end(
      written.sessionId,
      (await goOn(client, written, "three", { lines: 1_200, waitMs: 0 })).nextCursor,
    );
    await a.kill();
    expect(await ended).toMatchObject(LOST);
    expect(await goOn(other, written, "four", { waitMs: 0 })).toMatchObject({ waiting: { kind: "workspace" } });
    await a.start();
    const next = await a.connectDaemon("c");
    // A daemon starts with the first call.
    await next.call("claude_code_session", { action: "list" });
    expect(await other.end(written.sessionId)).toMatchObject(wentOn("four"));
  });
});
