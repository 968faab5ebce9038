import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const SECRET = "correct horse battery staple";

const world = useWorld();
const ALLOWED = { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: "1" };
/** Has run sessions on a store of its own, which no other server sees. */
let elsewhere: Server;
/** Takes what is on disk. */
let here: Server;
/** Takes it from whoever has the token. */
let secretive: Server;
/** A session that nobody goes on with before the token is asked for. */
let untouched: string;
beforeAll(async () => {
  [elsewhere, here, secretive] = await Promise.all([
    onStoreOfItsOwn(),
    onStoreOfItsOwn(ALLOWED),
    onStoreOfItsOwn({ ...ALLOWED, CLAUDE_CODE_MCP_RESUME_SECRET: SECRET }),
  ]);
  ({ sessionId: untouched } = await begun());
});

async function onStoreOfItsOwn(env: Record<string, string> = {}) {
  return world.server({ args: ["--store", join(world.folder(), "sessions.db")], env });
}

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

/** A session that Claude Code has on disk, and that nothing has open. */
async function begun() {
  const cwd = world.folder();
  const first = await elsewhere.call("claude_code", { prompt: say("one"), cwd, waitMs: 40_000 });
  await elsewhere.call("claude_code_session", { action: "close", sessionId: first.sessionId });
  while (world.processes().some(({ command }) => command.includes(first.sessionId))) await sleep(50);
  return { sessionId: first.sessionId, costUsd: first.result?.usage?.costUsd ?? 0 };
}

const tokenOf = (sessionId: string) => createHmac("sha256", SECRET).update(`local\n${sessionId}`).digest("hex");

describe("a session that no server of the store has run, and `claude_code_reply`", () => {
  it("is not found unless the operator allows it, and the answer names the variable", async () => {
    const strict = await onStoreOfItsOwn();
    const refused = await strict.refusal("claude_code_reply", { sessionId: untouched, prompt: say("x") });
    expect(refused).toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect(refused.text).toContain("CLAUDE_CODE_MCP_ALLOW_DISK_RESUME");
  });

  it("goes on where it was, with its own totals and the options of `diskResumeConfig`", async () => {
    const { costUsd, sessionId } = await begun();
    const prompt = say("two");
    const diskResumeConfig = { model: "haiku", allowedTools: ["Bash"] };
    const answer = await here.call("claude_code_reply", { sessionId, prompt, diskResumeConfig, waitMs: 40_000 });
    expect(answer).toMatchObject({ sessionId, status: "idle", result: { result: "two", sessionTotalTurns: 1 } });
    const request = world.model.requests.findLast(({ lastUserText }) => lastUserText.includes("two?"));
    expect(request?.told).toContain("one?");
    expect(request?.model).toContain("haiku");
    // What it had cost before was somebody else's.
    expect(answer.result?.usage?.costUsd).toBeGreaterThan(0);
    expect(answer.result?.usage?.costUsd).toBeLessThan(costUsd);
    const known = await here.call("claude_code_session", { action: "get", sessionId });
    expect(known.sessions).toMatchObject([{ totalTurns: 1 }]);
    const again = await here.call("claude_code_reply", { sessionId, prompt: say("three"), waitMs: 40_000 });
    expect(again.result).toMatchObject({ result: "three", sessionTotalTurns: 2 });
  });

  it("has the names of tools in `diskResumeConfig` put right, as a start has, and tells what it does not know", async () => {
    const { sessionId } = await begun();
    const file = join(world.folder(), "ran");
    const prompt = scriptTag([{ tools: [{ name: "Bash", input: { command: `touch ${file}` } }] }, { text: "end" }]);
    const diskResumeConfig = { allowedTools: ["Bash"], disallowedTools: ["bash", "Bsah"] };
    const answer = await here.call("claude_code_reply", { sessionId, prompt, diskResumeConfig, waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle", result: { result: "end" } });
    expect(answer["warnings"]).toEqual([expect.stringContaining("disallowedTools: there is no tool Bsah")]);
    expect(existsSync(file)).toBe(false);
  });

  it("is no way around the gate of bypassPermissions", async () => {
    const diskResumeConfig = { permissionMode: "bypassPermissions" };
    const refused = await here.refusal("claude_code_reply", {
      sessionId: untouched,
      prompt: say("x"),
      diskResumeConfig,
    });
    expect(refused).toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("needs the right `resumeToken` where a secret is set; ours come with one", async () => {
    const sessionId = untouched;
    const reply = { sessionId, prompt: say("two"), waitMs: 40_000 };
    expect(await secretive.refusal("claude_code_reply", reply)).toMatchObject({ code: "PERMISSION_DENIED" });
    const wrong = { ...reply, resumeToken: tokenOf("another") };
    expect(await secretive.refusal("claude_code_reply", wrong)).toMatchObject({ code: "PERMISSION_DENIED" });
    const right = await secretive.call("claude_code_reply", { ...reply, resumeToken: tokenOf(sessionId) });
    expect(right).toMatchObject({ result: { result: "two" }, resumeToken: tokenOf(sessionId) });
  });

  it("takes no option twice, and names in `warnings` what it cannot use once the session is known", async () => {
    const { sessionId } = await begun();
    const reply = { sessionId, prompt: say("two"), resumeToken: tokenOf(sessionId), waitMs: 40_000 };
    const twice = { ...reply, model: "opus", diskResumeConfig: { model: "haiku" } };
    const refused = await secretive.refusal("claude_code_reply", twice);
    expect(refused).toMatchObject({
      code: "INVALID_ARGUMENT",
      text: expect.stringContaining("diskResumeConfig.model: differs from model"),
    });
    const first = await secretive.call("claude_code_reply", { ...twice, diskResumeConfig: { model: "opus" } });
    expect(first).toMatchObject({ result: { result: "two" } });
    expect(first).not.toHaveProperty("warnings");

    const stray = { model: "haiku", permissionMode: "plan", diskResumeConfig: { maxTurns: 3 }, resumeToken: "wrong" };
    const known = await secretive.call("claude_code_reply", { ...reply, ...stray });
    expect(known["warnings"]).toEqual([
      expect.stringMatching(/^diskResumeConfig, model, permissionMode: not used/),
      expect.stringContaining("resumeToken: is not the one"),
    ]);
    const fork = await secretive.call("claude_code_reply", { ...reply, forkSession: true, model: "haiku" });
    expect(fork["warnings"]).toEqual([expect.stringMatching(/^model: not used/)]);
  });

  it("does not show the secret to what it runs", async () => {
    const script = [{ tools: [{ name: "Bash", input: { command: "env; cat /proc/$PPID/environ" } }] }, { text: "ok" }];
    const { sessionId } = await secretive.call("claude_code", {
      prompt: scriptTag(script),
      cwd: world.folder(),
      allowedTools: ["Bash"],
      waitMs: 40_000,
    });
    const told = await secretive.call("claude_code_check", {
      action: "poll",
      sessionId,
      waitMs: 0,
      responseMode: "full",
      maxBytes: 1_000_000,
    });
    expect(JSON.stringify(told)).toContain("CLAUDE_CONFIG_DIR");
    expect(JSON.stringify(told)).not.toContain(SECRET);
  });

  it("is refused while another Claude Code has it open, and can be forked", async () => {
    const cwd = world.folder();
    const { sessionId } = await elsewhere.call("claude_code", { prompt: say("one"), cwd, waitMs: 40_000 });
    const reply = { sessionId, prompt: say("two"), waitMs: 40_000 };
    const refused = await here.refusal("claude_code_reply", reply);
    expect(refused).toMatchObject({ code: "SESSION_BUSY" });
    expect(refused.text).toContain("forkSession");
    const fork = await here.call("claude_code_reply", { ...reply, forkSession: true });
    expect(fork.sessionId).not.toBe(sessionId);
    expect(fork.result).toMatchObject({ result: "two" });
  });

  it("is refused as well when it is ours but open elsewhere by now", async () => {
    const { sessionId } = await begun();
    const reply = { sessionId, prompt: say("two"), waitMs: 40_000 };
    await here.call("claude_code_reply", reply);
    const ours = world.processes().find(({ command }) => command.includes(sessionId));
    process.kill(ours?.pid ?? Number.NaN, "SIGTERM");
    await expect
      .poll(async () => (await here.call("claude_code_session", { action: "get", sessionId })).sessions[0])
      .toMatchObject({ processLive: false });
    const third = await onStoreOfItsOwn(ALLOWED);
    await third.call("claude_code_reply", { ...reply, prompt: say("three") });
    const refused = await here.refusal("claude_code_reply", { ...reply, prompt: say("four") });
    expect(refused).toMatchObject({ code: "SESSION_BUSY" });
    expect(refused.text).toContain("process ");
  });

  it("is known by the id that /clear has given it, and keeps the rules that it began under", async () => {
    const store = ["--store", join(world.folder(), "shared.db")];
    const strict = await world.server({ args: [...store, "--deny-rules", "Bash(touch:*)"] });
    const { sessionId } = await strict.call("claude_code", { prompt: say("one"), cwd: world.folder(), waitMs: 40_000 });
    for (const prompt of ["/clear", say("two")]) {
      await strict.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
    }
    const { sessionId: cleared = "" } = world.model.requests.findLast(({ told }) => told.includes("two?")) ?? {};
    expect(cleared).not.toBe(sessionId);

    const looser = await world.server({ args: store, env: ALLOWED });
    const script = [{ tools: [{ name: "Bash", input: { command: "touch made" } }] }, { text: "end" }];
    const cwd = world.folder();
    const reply = { sessionId: cleared, prompt: scriptTag(script), waitMs: 40_000 };
    const refused = await looser.refusal("claude_code_reply", reply);
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining(sessionId) });
    const diskResumeConfig = { cwd, permissionMode: "acceptEdits", allowedTools: ["Bash"] };
    const fork = await looser.call("claude_code_reply", { ...reply, forkSession: true, diskResumeConfig });
    expect(fork).toMatchObject({ result: { result: "end" } });
    expect(existsSync(join(cwd, "made"))).toBe(false);
  });

  it("is not found where Claude Code has none of that id", async () => {
    for (const sessionId of ["00000000-0000-4000-8000-000000000000", "../../etc/passwd"]) {
      const refused = await here.refusal("claude_code_reply", { sessionId, prompt: say("x") });
      expect(refused).toMatchObject({ code: "SESSION_NOT_FOUND" });
    }
  });
});
