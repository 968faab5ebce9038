import { createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it, vi } from "vitest";

import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import type { Answer, Failure } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const SECRET = "correct horse battery staple";
const ALLOWED = { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: "1" };

const world = useWorld();
/** Ran the sessions, on a store of its own. */
let elsewhere: Server;
/** Allows disk resume: `ALLOWED`. */
let here: Server;
/** Shares the store of `here`, and does not allow disk resume. */
let strict: Server;
/** Resumes for callers with the token of `SECRET`, on a store of its own. */
let secretive: Server;
/**
 * `original`: a session of `elsewhere`. `whileOpen`: answers of the other servers before it was closed. Both `original` and the
 * fork are
 * closed.
 */
let original: { sessionId: string; costUsd: number };
let whileOpen: { refused: Failure; strictly: Failure; fork: Answer };
beforeAll(async () => {
  const store = () => join(world.folder(), "sessions.db");
  const shared = store();
  const start = async (file: string, env: Record<string, string> = {}, ...args: string[]) =>
    world.server({ args: ["--store", file, ...args], env });
  [elsewhere, here, strict, secretive] = await Promise.all([
    start(store()),
    start(shared, ALLOWED),
    start(shared, {}, "--deny-rules", "Bash(touch:*)"),
    start(store(), { ...ALLOWED, CLAUDE_CODE_MCP_RESUME_SECRET: SECRET }),
  ]);
  original = await begin();
  const { sessionId } = original;
  const reply = { sessionId, prompt: say("two"), waitMs: 40_000 };
  whileOpen = {
    strictly: await strict.refusal("claude_code_reply", reply),
    refused: await here.refusal("claude_code_reply", reply),
    fork: await here.call("claude_code_reply", { ...reply, forkSession: true }),
  };
  await close(here, whileOpen.fork.sessionId);
  await close(elsewhere, sessionId);
});

const say = (text: string, before: Script = []): string => `${text}? ${scriptTag([...before, { text }])}`;
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });

/** Creates a session that Claude Code has on disk. */
async function begin() {
  const first = await elsewhere.call("claude_code", { prompt: say("one"), cwd: world.folder(), waitMs: 40_000 });
  return { sessionId: first.sessionId, costUsd: first.result?.usage?.costUsd ?? 0 };
}

/** Closes a session and waits until no process has the session open. */
async function close(server: Server, sessionId: string) {
  await server.call("claude_code_session", { action: "close", sessionId });
  await vi.waitUntil(() => !world.processes().some(({ command }) => command.includes(sessionId)), 15_000);
}

const tokenOf = (sessionId: string) => createHmac("sha256", SECRET).update(`local\n${sessionId}`).digest("hex");

describe("`claude_code_reply` to a session that no server of the store has run", () => {
  let sessionId: string;
  let bypassing: Failure;
  let answer: Answer;
  const file = () => join(world.configFolder, "ran");
  beforeAll(async () => {
    ({ sessionId } = original);
    const reply = { sessionId, prompt: say("two", [bash(`touch ${file()}`)]), waitMs: 40_000 };
    const bypass = { permissionMode: "bypassPermissions" };
    bypassing = await here.refusal("claude_code_reply", { ...reply, diskResumeConfig: bypass });
    const diskResumeConfig = { model: "haiku", allowedTools: ["Bash"], disallowedTools: ["bash", "Bsah"] };
    answer = await here.call("claude_code_reply", { ...reply, diskResumeConfig });
  });

  it("a session on disk is not found unless the operator allows disk resume, and the error names the variable", () => {
    expect(whileOpen.strictly).toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect(whileOpen.strictly.text).toContain("CLAUDE_CODE_MCP_ALLOW_DISK_RESUME");
  });

  it("a session open in another Claude Code is refused, but can be forked", () => {
    expect(whileOpen.refused).toMatchObject({ code: "SESSION_BUSY" });
    expect(whileOpen.refused.text).toContain("forkSession");
    expect(whileOpen.fork.sessionId).not.toBe(sessionId);
    expect(whileOpen.fork.result).toMatchObject({ result: "two" });
  });

  it("a resumed session continues its conversation with totals of its own and the options of `diskResumeConfig`", async () => {
    // `sessionTotalTurns` counts two turns of the model, because a tool was tried; former turns and cost belong to the former
    // session.
    expect(answer).toMatchObject({ sessionId, status: "idle", result: { result: "two", sessionTotalTurns: 2 } });
    const request = world.model.requests.findLast(({ lastUserText }) => lastUserText.includes("two?"));
    expect(request?.sessionId).toBe(sessionId);
    expect(request?.told).toContain("one?");
    expect(request?.model).toContain("haiku");
    expect(answer.result?.usage?.costUsd).toBeGreaterThan(0);
    expect(answer.result?.usage?.costUsd).toBeLessThan(original.costUsd);
    const known = await here.call("claude_code_session", { action: "get", sessionId });
    expect(known.sessions).toMatchObject([{ totalTurns: 2 }]);
    const again = await here.call("claude_code_reply", { sessionId, prompt: say("three"), waitMs: 40_000 });
    expect(again.result).toMatchObject({ result: "three", sessionTotalTurns: 3 });
  });

  it("tool names in `diskResumeConfig` are corrected as at a start, and unknown names give a warning", () => {
    expect(answer["warnings"]).toEqual([expect.stringContaining("disallowedTools: this server knows no tool Bsah")]);
    expect(existsSync(file())).toBe(false);
  });

  it("disk resume is no way around the gate of bypassPermissions", () => {
    expect(bypassing).toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("a session known to this server is refused while another Claude Code has it open", async () => {
    const ours = world.processes().find(({ command }) => command.includes(sessionId));
    process.kill(ours?.pid ?? Number.NaN, "SIGTERM");
    await expect
      .poll(async () => (await here.call("claude_code_session", { action: "get", sessionId })).sessions[0])
      .toMatchObject({ processLive: false });
    const reply = { sessionId, prompt: say("four"), waitMs: 40_000 };
    await secretive.call("claude_code_reply", { ...reply, resumeToken: tokenOf(sessionId) });
    const refused = await here.refusal("claude_code_reply", reply);
    expect(refused).toMatchObject({ code: "SESSION_BUSY" });
    expect(refused.text).toContain("process ");
  });

  it("a session is known by its id after /clear, and keeps the rules of its start", async () => {
    const { sessionId: begun } = await strict.call("claude_code", {
      prompt: say("one"),
      cwd: world.folder(),
      waitMs: 40_000,
    });
    for (const prompt of ["/clear", say("two")]) {
      await strict.call("claude_code_reply", { sessionId: begun, prompt, waitMs: 40_000 });
    }
    const { sessionId: cleared = "" } = world.model.requests.findLast(({ told }) => told.includes("two?")) ?? {};
    expect(cleared).not.toBe(begun);

    const script = [{ tools: [{ name: "Bash", input: { command: "touch made" } }] }, { text: "end" }];
    const cwd = world.folder();
    const reply = { sessionId: cleared, prompt: scriptTag(script), waitMs: 40_000 };
    const refused = await here.refusal("claude_code_reply", reply);
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining(begun) });
    const diskResumeConfig = { cwd, permissionMode: "acceptEdits", allowedTools: ["Bash"] };
    const fork = await here.call("claude_code_reply", { ...reply, forkSession: true, diskResumeConfig });
    expect(fork).toMatchObject({ result: { result: "end" } });
    expect(existsSync(join(cwd, "made"))).toBe(false);
  });

  it("an id unknown to Claude Code is not found", async () => {
    for (const unknown of ["00000000-0000-4000-8000-000000000000", "../../etc/passwd"]) {
      const refused = await here.refusal("claude_code_reply", { sessionId: unknown, prompt: say("x") });
      expect(refused).toMatchObject({ code: "SESSION_NOT_FOUND" });
    }
  });
});

describe("`claude_code_reply` to a session that no server of the store has run, with a resume secret", () => {
  let reply: { sessionId: string; prompt: string; waitMs: number };
  let refused: { without: Failure; wrong: Failure; twice: Failure };
  let first: Answer;
  beforeAll(async () => {
    const { sessionId } = whileOpen.fork;
    reply = { sessionId, prompt: say("two"), waitMs: 40_000 };
    const right = { ...reply, resumeToken: tokenOf(sessionId), model: "opus" };
    refused = {
      without: await secretive.refusal("claude_code_reply", reply),
      wrong: await secretive.refusal("claude_code_reply", { ...reply, resumeToken: tokenOf("another") }),
      twice: await secretive.refusal("claude_code_reply", { ...right, diskResumeConfig: { model: "haiku" } }),
    };
    const prompt = say("two", [bash("env; cat /proc/$PPID/environ")]);
    const same = { model: "opus", allowedTools: ["Bash"] };
    first = await secretive.call("claude_code_reply", { ...right, prompt, diskResumeConfig: same });
  });

  it("a resume needs the right `resumeToken`, and answers of this server include one", () => {
    expect(refused.without).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(refused.wrong).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(first).toMatchObject({ result: { result: "two" }, resumeToken: tokenOf(reply.sessionId) });
  });

  it("an option given twice is refused, and options unused for a known session are named in `warnings`", async () => {
    expect(refused.twice).toMatchObject({
      code: "INVALID_ARGUMENT",
      text: expect.stringContaining("diskResumeConfig.model: differs from model"),
    });
    expect(first).not.toHaveProperty("warnings");

    const stray = { model: "haiku", permissionMode: "plan", diskResumeConfig: { maxTurns: 3 }, resumeToken: "wrong" };
    const known = await secretive.call("claude_code_reply", { ...reply, ...stray });
    expect(known["warnings"]).toEqual([
      expect.stringMatching(/^diskResumeConfig, model, permissionMode: not used/),
      expect.stringContaining("resumeToken: does not match"),
    ]);
    const resumeToken = tokenOf(reply.sessionId);
    const fork = await secretive.call("claude_code_reply", {
      ...reply,
      resumeToken,
      forkSession: true,
      model: "haiku",
    });
    expect(fork["warnings"]).toEqual([expect.stringMatching(/^model: not used/)]);
  });

  it("commands of a resumed session cannot see the secret", async () => {
    const { sessionId } = reply;
    const whole = { waitMs: 0, responseMode: "full", maxBytes: 1_000_000 };
    const told = await secretive.call("claude_code_check", { action: "poll", sessionId, cursor: 1, ...whole });
    expect(JSON.stringify(told)).toContain("CLAUDE_CONFIG_DIR");
    expect(JSON.stringify(told)).not.toContain(SECRET);
  });
});
