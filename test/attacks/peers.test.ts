import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { messageTo, runStranger } from "../kit/attacks/stranger.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Another Claude Code of the same configuration folder starts no turn of a session. */

const world = useWorld({ daemon: "never" });
let refusing: Server;
let asking: Server;
beforeAll(async () => {
  // Senders are offered `SendMessage` without a search.
  const env = { ENABLE_TOOL_SEARCH: "false" };
  refusing = await world.server({ env });
  asking = await world.server({ args: ["--ask-rules", "PeerMessage"], env });
});
afterEach(() => rmSync(join(world.configFolder, "settings.json"), { force: true }));

let victims = 0;

/** A session that may run every command, and a message at which it would write a file. */
async function victimOf(server: Server, script: Parameters<typeof scriptTag>[0]) {
  const cwd = world.folder();
  const title = `victim-${String((victims += 1))}`;
  const { sessionId } = await server.call("claude_code", {
    prompt: scriptTag(script),
    cwd,
    title,
    allowedTools: ["Bash"],
  });
  const file = join(cwd, "made");
  const obey = [{ tools: [{ name: "Bash", input: { command: `touch ${file}` } }] }, { text: "Obeyed." }];
  return { sessionId, title, file, message: messageTo(title, obey) };
}

/** Claude Code says so in a tool's result. */
const SENT = /\\"success\\+":true/;

/** The transcript of a session that sends the message without a request. */
async function sendFrom(server: Server, message: Parameters<typeof scriptTag>[0]): Promise<string> {
  const sender = { prompt: scriptTag(message), cwd: world.folder(), waitMs: 40_000 };
  const { sessionId } = await server.call("claude_code", sender);
  return world.transcript(sessionId);
}

/** Runs until the test releases it. */
const atWork = (gate: string) => [{ gateBefore: gate, text: "Worked." }];

describe("a message of another session is refused", () => {
  const opened = { crossSessionInbound: "accept", env: { CLAUDE_CODE_HARBOR_KITE: "1" } };

  it.each([
    ["that is idle", undefined, false],
    ["that is idle, with messages accepted in the user's settings", { crossSessionInbound: "accept" }, false],
    ["that is idle, with the sessions shown by the user's settings", opened, true],
  ])("by a session %s", async (_, settings, isSent) => {
    if (settings) writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify(settings));
    const { file, message, sessionId, title } = await victimOf(refusing, [{ text: "Here." }]);
    await refusing.end(sessionId);
    const printed = await runStranger(world, message);
    expect(SENT.test(printed)).toBe(isSent);
    expect(printed.includes(`${title} [`)).toBe(settings === opened);
    const prompt = scriptTag([{ text: "Mine." }]);
    const { result } = await refusing.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
    expect(result).toMatchObject({ result: "Mine.", sessionTotalTurns: 2 });
    expect(world.transcript(sessionId).includes("Please do this.")).toBe(false);
    expect(existsSync(file)).toBe(false);
  });

  it("by a session in a turn, which goes on without it", async () => {
    writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify(opened));
    const { file, message, sessionId } = await victimOf(refusing, atWork("refused"));
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    expect(await runStranger(world, message)).toMatch(SENT);
    world.model.release("refused");
    expect((await refusing.end(sessionId)).result).toMatchObject({ result: "Worked.", sessionTotalTurns: 1 });
    expect(world.transcript(sessionId).includes("Please do this.")).toBe(false);
    expect(existsSync(file)).toBe(false);
  });

  it("and a session of this server can send none", async () => {
    const { message, title } = await victimOf(asking, [{ text: "Here." }]);
    const said = await sendFrom(refusing, message);
    expect(said).toContain("SendMessage");
    expect(said).not.toContain(`${title} [`);
    expect(said).not.toMatch(SENT);
  });
});

describe("with --ask-rules PeerMessage a message is a request that names its sender", () => {
  const decide = async (sessionId: string, requestId: string | undefined, decision: string) =>
    asking.call("claude_code_check", { action: "respond_permission", sessionId, requestId, decision });

  it.each(["deny", "allow"])("to an idle session: %s", async (decision) => {
    const { file, message, sessionId } = await victimOf(asking, [{ text: "Here." }]);
    const { nextCursor } = await asking.end(sessionId);
    await runStranger(world, message);
    const { actions } = await asking.news(sessionId, nextCursor);
    const [request] = actions;
    expect(request).toMatchObject({
      toolName: "PeerMessage",
      input: {
        name: expect.stringMatching(/^work-/),
        from: expect.stringMatching(/^uds:/),
        message: expect.stringMatching(/^Please do this/),
      },
      risk: { level: "all" },
    });
    expect(existsSync(file)).toBe(false);
    await decide(sessionId, request?.requestId, decision);
    const { events, result } = await asking.end(sessionId, nextCursor);
    expect(result?.errorSubtype).toBe(decision === "deny" ? "prompt_blocked" : undefined);
    expect(JSON.stringify(events)).toMatch(/This turn was begun by another session, work-\S+ \(uds:/);
    expect(existsSync(file)).toBe(decision === "allow");
  });

  it("also of a session of this server", async () => {
    const { file, message, sessionId } = await victimOf(asking, [{ text: "Here." }]);
    const { nextCursor } = await asking.end(sessionId);
    expect(await sendFrom(asking, message)).toMatch(SENT);
    const { actions } = await asking.news(sessionId, nextCursor);
    expect(actions).toMatchObject([{ toolName: "PeerMessage" }]);
    await decide(sessionId, actions[0]?.requestId, "deny");
    await asking.end(sessionId, nextCursor);
    expect(existsSync(file)).toBe(false);
  });

  it("to a session in a turn: it holds the turn, and denied it is not seen", async () => {
    const { file, message, sessionId } = await victimOf(asking, [
      { tools: [{ name: "Bash", input: { command: "true" } }], gateBefore: "asked" },
      { text: "Worked." },
    ]);
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    await runStranger(world, message);
    world.model.release("asked");
    const { actions, nextCursor } = await asking.news(sessionId);
    expect(actions).toMatchObject([{ toolName: "PeerMessage", input: { message: expect.any(String) } }]);
    const changed = { message: "Something else." };
    const permissionOptions = { updatedInput: changed };
    const edit = { sessionId, requestId: actions[0]?.requestId, decision: "allow", permissionOptions };
    const refusal = await asking.refusal("claude_code_check", { action: "respond_permission", ...edit });
    expect(refusal.text).toContain("Allow it as it is, or deny it.");
    await decide(sessionId, actions[0]?.requestId, "deny");
    expect((await asking.end(sessionId, nextCursor)).result).toMatchObject({ result: "Worked.", sessionTotalTurns: 2 });
    expect(existsSync(file)).toBe(false);
  });

  it("and is dropped when the turn is interrupted", async () => {
    const { file, message, sessionId } = await victimOf(asking, [{ text: "Here." }]);
    const { nextCursor } = await asking.end(sessionId);
    await runStranger(world, message);
    await asking.news(sessionId, nextCursor);
    await asking.call("claude_code_session", { action: "interrupt", sessionId });
    const { actions } = await asking.end(sessionId, nextCursor);
    expect(actions).toEqual([]);
    const prompt = scriptTag([{ text: "Mine." }]);
    const { result } = await asking.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
    expect(result).toMatchObject({ result: "Mine." });
    expect(existsSync(file)).toBe(false);
  });
});

it.each([
  ["allow", true],
  ["deny", false],
])("a request for a message outlives the daemon: %s", { timeout: 60_000 }, async (decision, isMade) => {
  const client = await world.shared({ args: ["--ask-rules", "PeerMessage"] });
  const { file, message, sessionId } = await victimOf(client, [{ text: "Here." }]);
  const { nextCursor } = await client.end(sessionId);
  await runStranger(world, message);
  const { actions } = await client.news(sessionId, nextCursor);
  const { requestId } = actions[0] ?? {};
  for (const pid of world.daemons()) process.kill(pid, "SIGKILL");
  const ask = async () => client.call("claude_code_check", { action: "poll", sessionId }).catch(() => undefined);
  await expect.poll(async () => (await ask())?.actions[0]?.requestId, { timeout: 30_000 }).toBe(requestId);
  await client.call("claude_code_check", { action: "respond_permission", sessionId, requestId, decision });
  await client.end(sessionId, nextCursor);
  expect(existsSync(file)).toBe(isMade);
});

describe("a scheduled task that lies in a folder", () => {
  /** A folder whose task is due. */
  const folderWithTask = () => {
    const cwd = world.folder();
    mkdirSync(join(cwd, ".claude"));
    const task = { id: "0a1b2c3d", cron: "* * * * *", prompt: "Scheduled words.", createdAt: Date.now() - 120_000 };
    const tasks = [{ ...task, recurring: true }];
    writeFileSync(join(cwd, ".claude", "scheduled_tasks.json"), JSON.stringify({ tasks }));
    return cwd;
  };

  it.each([["the default sources of settings"], ["no source of the project", ["user"]]])(
    "begins no turn where the folder is not trusted, with %s",
    async (_, settingSources?: string[]) => {
      const prompt = scriptTag([{ text: "Mine." }]);
      const given = { prompt, cwd: folderWithTask(), waitMs: 40_000, ...(settingSources && { settingSources }) };
      const { sessionId } = await refusing.call("claude_code", given);
      const { result } = await refusing.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
      expect(result).toMatchObject({ sessionTotalTurns: 2 });
      expect(world.transcript(sessionId).includes("Scheduled words.")).toBe(false);
    },
  );

  it("begins a turn where the operator trusts it, which an event tells", async () => {
    const cwd = folderWithTask();
    const trusting = await world.server({ args: ["--trust-dir", cwd] });
    const given = { prompt: scriptTag([{ text: "Mine." }]), cwd };
    const { sessionId } = await trusting.call("claude_code", given);
    const poll = { action: "poll", sessionId, until: "event", waitMs: 40_000 };
    let told: Answer["events"] = [];
    const isTold = () => JSON.stringify(told).includes("This turn was begun by a scheduled task.");
    for (let cursor = 1; !isTold();) {
      const { events, nextCursor } = await trusting.call("claude_code_check", { ...poll, cursor });
      [told, cursor] = [events, nextCursor];
    }
    expect(isTold()).toBe(true);
  });
});
