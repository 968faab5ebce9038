import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { messageTo, runStranger } from "../kit/attacks/stranger.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Messages from other Claude Code sessions with the same configuration folder start no turn without approval. */

const world = useWorld({ daemon: "never" });
let refusing: Server;
let asking: Server;
beforeAll(async () => {
  // Gives senders the tool `SendMessage` without a search.
  const env = { ENABLE_TOOL_SEARCH: "false" };
  refusing = await world.server({ env });
  asking = await world.server({ args: ["--ask-rules", "PeerMessage"], env });
});
afterEach(() => rmSync(join(world.configFolder, "settings.json"), { force: true }));

let victims = 0;

/** Starts a session that may run every command. Returns a message that asks the session to create `file`. */
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

/** Matches a result of `SendMessage` that reports success, which does not mean that the receiver accepts the message. */
const SENT = /\\"success\\+":true/;

/** Sends the message from a session of `server`, without a request; returns the transcript. */
async function sendFrom(server: Server, message: Parameters<typeof scriptTag>[0]): Promise<string> {
  const sender = { prompt: scriptTag(message), cwd: world.folder(), waitMs: 40_000 };
  const { sessionId } = await server.call("claude_code", sender);
  return world.transcript(sessionId);
}

/** Returns a script whose turn waits until the test releases `gate`. */
const waitingAt = (gate: string) => [{ gateBefore: gate, text: "Worked." }];

describe("messages from other sessions", () => {
  const opened = { crossSessionInbound: "accept", env: { CLAUDE_CODE_HARBOR_KITE: "1" } };

  it.each([
    ["", undefined, false],
    [", with messages accepted in the user's settings", { crossSessionInbound: "accept" }, false],
    [", with sessions made visible in the user's settings", opened, true],
  ])("an idle session refuses a message%s", async (_, settings, isSent) => {
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

  it("a session refuses a message during a turn, and the turn continues", async () => {
    writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify(opened));
    const { file, message, sessionId } = await victimOf(refusing, waitingAt("refused"));
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    expect(await runStranger(world, message)).toMatch(SENT);
    world.model.release("refused");
    expect((await refusing.end(sessionId)).result).toMatchObject({ result: "Worked.", sessionTotalTurns: 1 });
    expect(world.transcript(sessionId).includes("Please do this.")).toBe(false);
    expect(existsSync(file)).toBe(false);
  });

  it("a session cannot send messages to other sessions", async () => {
    const { message, title } = await victimOf(asking, [{ text: "Here." }]);
    const said = await sendFrom(refusing, message);
    expect(said).toContain("SendMessage");
    expect(said).not.toContain(`${title} [`);
    expect(said).not.toMatch(SENT);
  });
});

describe("messages with --ask-rules PeerMessage", () => {
  const decide = async (sessionId: string, requestId: string | undefined, decision: string) =>
    asking.call("claude_code_check", { action: "respond_permission", sessionId, requestId, decision });

  it.each(["deny", "allow"])(
    "a message to an idle session becomes a permission request that names the sender: %s",
    async (decision) => {
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
    },
  );

  it("a message from a session of the same server becomes a permission request", async () => {
    const { file, message, sessionId } = await victimOf(asking, [{ text: "Here." }]);
    const { nextCursor } = await asking.end(sessionId);
    expect(await sendFrom(asking, message)).toMatch(SENT);
    const { actions } = await asking.news(sessionId, nextCursor);
    expect(actions).toMatchObject([{ toolName: "PeerMessage" }]);
    await decide(sessionId, actions[0]?.requestId, "deny");
    await asking.end(sessionId, nextCursor);
    expect(existsSync(file)).toBe(false);
  });

  it("a message during a turn holds the turn until answered; the model does not see a denied message", async () => {
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

  it("a message is dropped when its turn is interrupted", async () => {
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
])("a permission request for a message outlives the daemon: %s", { timeout: 60_000 }, async (decision, isMade) => {
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

describe("a scheduled task in a folder", () => {
  /** Creates a folder whose scheduled task is due. */
  const folderWithTask = () => {
    const cwd = world.folder();
    mkdirSync(join(cwd, ".claude"));
    const task = { id: "0a1b2c3d", cron: "* * * * *", prompt: "Scheduled words.", createdAt: Date.now() - 120_000 };
    const tasks = [{ ...task, recurring: true }];
    writeFileSync(join(cwd, ".claude", "scheduled_tasks.json"), JSON.stringify({ tasks }));
    return cwd;
  };

  it.each([["the default sources of settings"], ["no source of the project", ["user"]]])(
    "a task of an untrusted folder begins no turn, with %s",
    async (_, settingSources?: string[]) => {
      const prompt = scriptTag([{ text: "Mine." }]);
      const given = { prompt, cwd: folderWithTask(), waitMs: 40_000, ...(settingSources && { settingSources }) };
      const { sessionId } = await refusing.call("claude_code", given);
      const { result } = await refusing.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
      expect(result).toMatchObject({ sessionTotalTurns: 2 });
      expect(world.transcript(sessionId).includes("Scheduled words.")).toBe(false);
    },
  );

  it("a task of a trusted folder begins a turn, reported by an event", async () => {
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
