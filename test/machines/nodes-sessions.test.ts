import { execFile } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { signIn } from "../kit/clients/console-client.ts";
import { useNodes } from "../kit/machines/nodes.ts";
import { goOn, startAtGate, startWhole, wentOn } from "../kit/machines/turns.ts";
import { gif } from "../kit/pictures.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { describePostgres } from "../kit/postgres/database.ts";

const run = promisify(execFile);
const say = (text: string) => `${text}? ${scriptTag([{ text }])}`;

describePostgres("sessions at another node", () => {
  const nodes = useNodes({ args: ["--approvals", "caller,console"] });
  const connected = async () => Promise.all([nodes.a.connect(), nodes.b.connect()]);

  it("a request that opens at another node ends the wait of its caller, and shows at the console of each", async () => {
    const { a, b, world } = nodes;
    const [client, other] = await connected();
    const cwd = world.folder();
    const start = { prompt: toolCalls([writeCall(join(cwd, "x"))]), cwd, advanced: { node: "b" }, waitMs: 40_000 };
    const { actions, sessionId } = await client.call("claude_code", start);
    expect(actions).toMatchObject([{ type: "permission", toolName: "Write" }]);
    const pages = await Promise.all([a, b].map(async ({ server }) => signIn(server, server.token)));
    const shown = await Promise.all(pages.map(async (page) => page.asked(sessionId)));
    expect(new Set(shown.map(({ requestId }) => requestId))).toEqual(new Set([actions[0]?.requestId]));
    const waits = other.end(sessionId, actions.length);
    await pages[0]!.post(`sessions/${sessionId}/requests/${shown[0]!.requestId}`, { decision: "allow" });
    void waits.catch(() => undefined);
    expect(await client.end(sessionId)).toMatchObject({ status: "idle", result: { result: "Over." } });
    await expect.poll(() => b.running(sessionId).length).toBe(1);
    expect(a.running(sessionId)).toEqual([]);
  });

  it("an interrupt, a cancel and a delete reach the turn at another node", async () => {
    const { b, world } = nodes;
    const [client] = await connected();
    const from = { world, below: world.folder(), advanced: { node: "b" } };
    const [one, two] = [await startAtGate(client, from, "never-1"), await startAtGate(client, from, "never-2")];
    await client.call("claude_code_session", { action: "interrupt", sessionId: one.sessionId });
    expect(await client.end(one.sessionId)).toMatchObject({ result: { errorSubtype: "interrupted" } });
    expect(await goOn(client, one, "two")).toMatchObject(wentOn("two"));
    await client.call("claude_code_session", { action: "cancel", sessionId: two.sessionId });
    await client.call("claude_code_session", { action: "delete", sessionId: two.sessionId });
    const get = { action: "get", sessionId: two.sessionId };
    expect(await client.refusal("claude_code_session", get)).toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect.poll(() => b.running(two.sessionId)).toEqual([]);
  });

  it("images reach a session at another node, by data and by a path at the node that is called", async () => {
    const { a, world } = nodes;
    const [client] = await connected();
    const picture = gif(1, 1);
    const file = join(mkdtempSync(join(a.ownFolder, "pictures-")), "a.gif");
    writeFileSync(file, Buffer.from(picture, "base64"));
    const attachments = [{ path: file }, { data: picture, mediaType: "image/gif" }];
    const start = { prompt: say("images"), cwd: world.folder(), attachments, advanced: { node: "b" } };
    const { sessionId } = await client.call("claude_code", start);
    expect(await client.end(sessionId)).toMatchObject({ status: "idle", result: { isError: false } });
    const images = () => world.model.requests.filter((each) => each.sessionId === sessionId).map((each) => each.images);
    expect(images()).toEqual([2]);
    const next = { sessionId, prompt: say("more"), attachments, waitMs: 40_000 };
    expect(await client.call("claude_code_reply", next)).toMatchObject({ status: "idle" });
    expect(images().at(-1)).toBe(4);
  });

  it("a fork of a session at another node runs there, with its conversation", async () => {
    const { a, b, world } = nodes;
    const [client] = await connected();
    const { sessionId } = await startWhole(client, { world, below: world.folder(), advanced: { node: "b" } });
    const reply = { sessionId, prompt: say("forked"), forkSession: true, waitMs: 40_000 };
    const fork = await client.call("claude_code_reply", reply);
    expect(fork).toMatchObject({ status: "idle", result: { result: "forked" } });
    expect([a, b].map((node) => node.running(fork.sessionId).length)).toEqual([0, 1]);
    const asked = world.model.requests.findLast(({ lastUserText }) => lastUserText.includes("forked?"));
    expect(asked?.told).toContain('"text":"After one."');
  });

  it("a folder that the other node does not have is refused, and no session is left", async () => {
    const { a } = nodes;
    const [client] = await connected();
    const cwd = mkdtempSync(join(a.ownFolder, "work-"));
    const refused = await client.refusal("claude_code", { prompt: say("x"), cwd, advanced: { node: "b" } });
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining(cwd) as string });
    expect(JSON.stringify(await client.call("claude_code_session", { action: "list" }))).not.toContain(cwd);
  });

  it.each([
    ["a node that the store does not know", { node: "nowhere" }, "Nodes alive: a, b"],
    ["labels that no node has", { labels: { disk: "c" } }, "Nodes alive: a, b"],
    ["both a node and labels", { node: "b", labels: { disk: "b" } }, "labels"],
    ["another node without a log there", { node: "b", persistSession: false }, "persistSession"],
  ])("a start on %s is refused with what would do", async (_, advanced, text) => {
    const [client] = await connected();
    const refused = await client.refusal("claude_code", { prompt: "x", cwd: nodes.world.folder(), advanced });
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining(text) as string });
  });

  it("a session with `persistSession: false` stays at its node", async () => {
    const [client, other] = await connected();
    const start = { prompt: say("once"), cwd: nodes.world.folder(), advanced: { persistSession: false } };
    const { sessionId } = await client.call("claude_code", { ...start, waitMs: 40_000 });
    const get = { action: "get", sessionId };
    expect((await client.call("claude_code_session", get)).sessions).toMatchObject([{ sessionId }]);
    expect(await other.refusal("claude_code_session", get)).toMatchObject({ code: "SESSION_NOT_FOUND" });
    const { sessions } = await other.call("claude_code_session", { action: "list" });
    expect(sessions.map((each) => each.sessionId)).not.toContain(sessionId);
  });

  it("a session that does not exist is found at no node", async () => {
    for (const client of await connected()) {
      const sessionId = "00000000-0000-4000-8000-000000000000";
      for (const [tool, args] of [
        ["claude_code_session", { action: "get" }],
        ["claude_code_check", { action: "poll" }],
        ["claude_code_session", { action: "interrupt" }],
      ] as const)
        expect(await client.refusal(tool, { ...args, sessionId })).toMatchObject({ code: "SESSION_NOT_FOUND" });
    }
  });

  it("resources show a session of another node", async () => {
    const { world } = nodes;
    const [client, other] = await connected();
    const { sessionId } = await startWhole(client, { world, below: world.folder() });
    for (const uri of [`claude-code://sessions/${sessionId}`, `claude-code://sessions/${sessionId}/events`]) {
      const [here, there] = await Promise.all(
        [client, other].map(async (each) => (await each.client.readResource({ uri })).contents[0]),
      );
      expect(here).toMatchObject({ text: expect.stringContaining(sessionId) as string });
      expect(there).toEqual(here);
    }
  });

  it("a node that is drained begins no turn until the drain is over", async () => {
    const { b, world } = nodes;
    const [client] = await connected();
    const from = { world, below: world.folder(), advanced: { node: "b" } };
    const written = await startWhole(client, from);
    const drain = async (...verb: string[]) => run(process.execPath, b.command("nodes", ...verb, "b"));
    await drain("drain");
    const start = { prompt: "x", cwd: world.folder(), advanced: { node: "b" } };
    // A node knows the others as of a second ago.
    await sleep(1_100);
    expect(await client.refusal("claude_code", start)).toMatchObject({ code: "SESSION_BUSY" });
    expect(await goOn(client, written, "two", { waitMs: 1_000 })).toMatchObject({ status: "running" });
    const ended = client.end(written.sessionId);
    await drain("undrain");
    expect(await ended).toMatchObject(wentOn("two"));
  });
});
