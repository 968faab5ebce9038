import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { stream } from "../kit/clients/streaming.ts";
import { post } from "../kit/servers/http-server.ts";
import { ofType, startReceiver, WITH_SECRET } from "../kit/clients/webhook-receiver.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await world.server({ env: { CLAUDE_CODE_MCP_ALLOW_SENSITIVE_SESSION_DETAILS: "1" } });
});

const WAIT = { waitMs: 20_000 };
const RUNS = { allowedTools: ["Bash"] };
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const says = (text: string) => ({ text });

/** Starts a turn in a folder of its own that plays `script`, and is verified by `verify`. */
async function begin(script: object[], verify: unknown, over: Record<string, unknown> = {}) {
  const cwd = world.folder();
  const answer = await server.call("claude_code", {
    prompt: scriptTag(script),
    cwd,
    ...RUNS,
    advanced: { verify },
    ...over,
  });
  return { cwd, answer, sessionId: answer.sessionId };
}

const shown = ({ result }: Answer) => {
  const { errorSubtype, isError, result: text, verification, warnings }: Record<string, unknown> = result ?? {};
  return { errorSubtype, isError, text, verification, warnings };
};

/** Resolves once the file exists; the command that makes it runs already. */
async function made(file: string): Promise<void> {
  while (!existsSync(file)) await sleep(20);
}

describe("a verification", () => {
  it("a turn passes after Claude Code has repaired what its first run found red", async () => {
    const script = [says("All tests pass."), bash("echo yes > ok"), says("Now they do.")];
    const { answer } = await begin(script, ["test -f ok || { echo no file; exit 3; }", "true"], WAIT);
    expect(shown(answer)).toMatchObject({
      isError: false,
      text: "Now they do.",
      verification: { status: "passed", attempts: 2, of: 2, commands: [{ exit: 0 }, { command: "true", exit: 0 }] },
    });
    const asked = world.model.requests.map(({ lastUserText }) => lastUserText).find((text) => text.includes("no file"));
    expect(asked).toMatch(/\(.* exited with 3\.\)\n\nno file/);
  });

  it("a turn fails that stays red after its repairs, and its session takes the next prompt", async () => {
    const { answer, sessionId } = await begin(
      [says("Done."), says("Really."), says("Sure.")],
      {
        commands: ["echo $((6 * 7)); false"],
        attempts: 2,
      },
      WAIT,
    );
    expect(shown(answer)).toMatchObject({
      isError: true,
      errorSubtype: "verification_failed",
      text: expect.stringMatching(/^Sure\.\n\nThe verification failed: .* exited with 1\.$/),
      verification: { status: "failed", attempts: 3, of: 3, commands: [{ exit: 1, tail: "42" }] },
    });
    const next = await server.call("claude_code_reply", {
      sessionId,
      prompt: scriptTag([says("Still here.")]),
      ...WAIT,
      advanced: { verify: ["true"] },
    });
    expect(shown(next)).toMatchObject({ text: "Still here.", verification: { status: "passed", attempts: 1, of: 2 } });
  });

  it("the commands go along the approval chain if no rule allows them, once for all runs of the turn", async () => {
    const script = [says("Done."), says("Repaired.")];
    const { cwd, sessionId } = await begin(script, ["echo run >> runs; false"], { allowedTools: [] });
    const asked = await server.news(sessionId);
    expect(asked.actions).toMatchObject([
      { toolName: "Verification", input: { commands: ["echo run >> runs; false"] } },
    ]);
    const { requestId } = asked.actions[0]!;
    const answer = { action: "respond_permission", sessionId, requestId, decision: "allow" };
    const changed = { ...answer, permissionOptions: { updatedInput: { commands: ["true"] } } };
    expect(await server.refusal("claude_code_check", changed)).toMatchObject({ code: "PERMISSION_DENIED" });
    await server.call("claude_code_check", answer);
    expect(shown(await server.end(sessionId))).toMatchObject({ verification: { status: "failed", attempts: 2 } });
    expect(readFileSync(join(cwd, "runs"), "utf8")).toBe("run\nrun\n");
  });

  it("a denial runs no command: the turn is done, and a warning says that nothing was verified", async () => {
    const { cwd, sessionId } = await begin([says("Done.")], ["touch ran"], { allowedTools: [] });
    const { requestId } = (await server.news(sessionId)).actions[0]!;
    await server.call("claude_code_check", { action: "respond_permission", sessionId, requestId, decision: "deny" });
    expect(shown(await server.end(sessionId))).toMatchObject({
      isError: false,
      verification: { status: "denied", attempts: 0, commands: [] },
      warnings: ["The turn was not verified (denied): Denied by caller."],
    });
    expect(existsSync(join(cwd, "ran"))).toBe(false);
  });

  it.each([
    ["permissionMode dontAsk", { permissionMode: "dontAsk", allowedTools: [] }, "denied"],
    ["permissionMode plan", { permissionMode: "plan", allowedTools: [] }, "denied"],
    ["a denying rule", { disallowedTools: ["Bash(touch:*)"] }, "denied"],
  ])("%s runs no command without asking", async (_, over, status) => {
    const { answer, cwd } = await begin([says("Done.")], ["true", "touch ran"], { ...over, ...WAIT });
    expect(shown(answer).verification).toMatchObject({ status, commands: [] });
    expect(existsSync(join(cwd, "ran"))).toBe(false);
  });

  it("an interrupt ends the running command, and the turn as interrupted", async () => {
    const { cwd, sessionId } = await begin([says("Done.")], ["touch begun; sleep 60; touch over"]);
    await made(join(cwd, "begun"));
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    const ended = await server.end(sessionId);
    expect(shown(ended)).toMatchObject({ errorSubtype: "interrupted", verification: { status: "interrupted" } });
    expect(existsSync(join(cwd, "over"))).toBe(false);
  });

  it("a command that hangs is red after timeoutMs", async () => {
    const { answer } = await begin([says("Done.")], { commands: ["sleep 60"], attempts: 0, timeoutMs: 1_000 }, WAIT);
    expect(shown(answer)).toMatchObject({
      errorSubtype: "verification_failed",
      verification: { status: "timeout", attempts: 1, of: 1, commands: [{ exit: null }] },
    });
  });

  it("a prompt that joins the turn stops the commands, which begin anew after it", async () => {
    const { cwd, sessionId } = await begin(
      [says("Done."), says("That too.")],
      ["echo begun >> begun; test $(wc -l < begun) -gt 1 || sleep 60"],
    );
    await made(join(cwd, "begun"));
    await server.call("claude_code_reply", { sessionId, prompt: "And that.", whenBusy: "steer" });
    expect(shown(await server.end(sessionId))).toMatchObject({
      text: "That too.",
      verification: { status: "passed", attempts: 1, of: 2 },
    });
  });
});

describe("a verification that a webhook approves", () => {
  it("the webhook is shown the commands, and its answer lets them run", async () => {
    const receiver = await startReceiver();
    const flags = ["--notify-url", receiver.url, "--approvals", "webhook,caller"];
    const http = await world.http({ args: flags, env: WITH_SECRET });
    const client = await http.connect();
    const start = { prompt: scriptTag([says("Done.")]), cwd: world.folder(), advanced: { verify: ["true"] } };
    const { sessionId } = await client.call("claude_code", start);
    const { payload } = await receiver.next(ofType("permission.asked"));
    expect(payload.request).toMatchObject({ toolName: "Verification", input: { commands: ["true"] } });
    await fetch(payload.answerUrl, post({ decision: "allow" }, { authorization: `Bearer ${http.token}` }));
    expect(shown(await client.end(sessionId))).toMatchObject({ verification: { status: "passed" } });
    await receiver.close();
  });
});

it("`claude_code` accepts one to eight commands as `verify`, refuses what only the operator may give, and keeps the option", async () => {
  const prompt = scriptTag([{ text: "Nothing to do." }]);
  const start = { prompt, cwd: world.folder() };
  const nine = await server.refusal("claude_code", { ...start, advanced: { verify: Array(9).fill("true") } });
  expect(nine.text).toContain("verify");
  const own = { commands: ["true"], ownTurns: true };
  expect((await server.refusal("claude_code", { ...start, advanced: { verify: own } })).text).toContain("verify");
  const verify = { commands: ["true"], attempts: 0 };
  const { sessionId } = await server.call("claude_code", { ...start, advanced: { verify } });
  const get = { action: "get", sessionId, includeSensitive: true };
  const [session] = (await server.call("claude_code_session", get)).sessions;
  expect(session).toMatchObject({ sessionId, verify });
});

describe("commands that a reply, an action or the operator gives", () => {
  it("a red command of `verify` fails the turn of `claude_code`, and the commands of a reply replace it for one turn", async () => {
    const script = (text: string) => scriptTag([{ text }, { text: "I could not repair it." }]);
    const verify = { commands: ["true", "echo broken; exit 4"], attempts: 1 };
    const start = { prompt: script("All is well."), cwd: world.folder(), ...RUNS, advanced: { verify }, ...WAIT };
    const { result, sessionId } = await server.call("claude_code", start);
    expect(result).toMatchObject({
      isError: true,
      errorSubtype: "verification_failed",
      verification: { status: "failed", attempts: 2, of: 2, commands: [{ exit: 0 }, { exit: 4, tail: "broken" }] },
    });
    const reply = { sessionId, prompt: script("Again."), advanced: { verify: ["true"] }, ...WAIT };
    const passed = { isError: false, verification: { status: "passed", attempts: 1, of: 2 } };
    expect((await server.call("claude_code_reply", reply)).result).toMatchObject(passed);
  });

  it("action `verify` of `claude_code_session` runs `commands`, or those of the session, as a turn", async () => {
    const cwd = world.folder();
    const prompt = scriptTag([{ text: "Done." }]);
    const { sessionId } = await server.call("claude_code", { prompt, cwd, ...RUNS, ...WAIT });
    const missing = await server.refusal("claude_code_session", { action: "verify", sessionId });
    expect(missing).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining("commands") as string });
    const commands = ["touch ran"];
    const begun = await server.call("claude_code_session", { action: "verify", sessionId, commands });
    expect(begun).toMatchObject({ sessionId, status: "running" });
    const wait = { action: "poll", sessionId, cursor: begun.nextCursor, until: "end", ...WAIT };
    const { result } = await server.call("claude_code_check", wait);
    expect(result).toMatchObject({ isError: false, verification: { status: "passed" } });
    expect(existsSync(join(cwd, "ran"))).toBe(true);
  });

  it("the operator's commands for a folder verify every session there, and a caller can only replace them", async () => {
    const cwd = world.folder();
    const settings = JSON.stringify([{ folder: cwd, commands: ["exit 5"], attempts: 0 }]);
    const operated = await world.server({ args: ["--toolsets", "all", "--allow-rules", "Bash", "--verify", settings] });
    const prompt = scriptTag([{ text: "Done." }]);
    const red = { verification: { status: "failed", commands: [{ command: "exit 5", exit: 5 }] } };
    const start = { prompt, cwd, ...WAIT };
    expect((await operated.call("claude_code", start)).result).toMatchObject(red);
    const query = await stream(operated, "claude_code_query", { prompt, cwd });
    expect(query).toMatchObject({ isError: false, data: { status: "failed", result: { success: false }, ...red } });
    expect(query.progress.map(({ message }) => message)).toContain("verifying, attempt 1 of 1");
    const own = await operated.call("claude_code", { ...start, advanced: { verify: ["true"] } });
    expect(own.result).toMatchObject({ verification: { status: "passed" } });
    for (const verify of [[], false]) {
      const answer = operated.refusal("claude_code", { ...start, advanced: { verify } });
      await expect(answer).resolves.toMatchObject({ code: "INVALID_ARGUMENT" });
    }
  });
});
