import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { WITHOUT_DAEMON, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const LATE_USAGE = join(import.meta.dirname, "../kit/stand-in/late-usage-claude.mjs");

const world = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const say = (text: string): string => `${text}? ${scriptTag([{ text }])}`;

async function done(prompt: string, over: Record<string, unknown> = {}) {
  const answer = await server.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000, ...over });
  expect(answer.status).toBe("idle");
  return answer;
}

async function reply(sessionId: string, prompt: string, over: Record<string, unknown> = {}) {
  return server.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000, ...over });
}

/** Returns the texts that the model was sent up to the last prompt with `text`. */
function saidUpTo(text: string): string {
  return world.model.requests.findLast(({ lastUserText }) => lastUserText.includes(text))?.told ?? "";
}

/** Starts a session whose turn is blocked before its text until `release` is called. */
async function startBlocked(then = "Done.") {
  const gate = `gate-${world.folder()}`;
  const prompt = `Begin. ${scriptTag([{ gateBefore: gate, text: then }])}`;
  const { sessionId } = await server.call("claude_code", { prompt, cwd: world.folder() });
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  return { sessionId, release: () => world.model.release(gate) };
}

const ends = ({ events }: Answer) => events.filter(({ type }) => type === "result" || type === "error");

async function pollAll(sessionId: string) {
  return server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0, responseMode: "delta_compact" });
}

describe("`forkSession` of `claude_code_reply`", () => {
  it("a fork of `sessionId` runs `prompt` in a copy with its own id and totals, and leaves the original unchanged", async () => {
    const { sessionId } = await done(say("one"));
    const fork = await reply(sessionId, say("two"), { forkSession: true });
    expect(fork.sessionId).not.toBe(sessionId);
    expect(fork.result).toMatchObject({ result: "two", sessionTotalTurns: 1 });
    const totals = (await pollAll(fork.sessionId)).result;
    expect(totals?.sessionTotalCostUsd).toBeCloseTo(fork.result?.usage?.costUsd ?? 0, 8);
    expect(saidUpTo("two?")).toContain("one?");

    const original = await reply(sessionId, say("three"));
    expect(original.result).toMatchObject({ result: "three", sessionTotalTurns: 2 });
    expect(saidUpTo("three?")).not.toContain("two?");
    // Equal costs: the fork does not count the turns of its original again.
    expect(fork.result?.usage?.costUsd).toBeCloseTo(original.result?.usage?.costUsd ?? 0, 8);

    const again = await reply(fork.sessionId, say("four"));
    expect(again.result).toMatchObject({ result: "four", sessionTotalTurns: 2 });
    expect(saidUpTo("four?")).toContain("two?");
    expect(saidUpTo("four?")).not.toContain("three?");
  });

  it("a fork counts the cost of its first turn, also if Claude Code reports the original's cost late", async () => {
    const slow = await world.server({ env: { CLAUDE_CODE_MCP_CLAUDE_PATH: LATE_USAGE } });
    const wait = { waitMs: 40_000 };
    const one = await slow.call("claude_code", { prompt: say("one"), cwd: world.folder(), ...wait });
    const forking = { sessionId: one.sessionId, forkSession: true };
    const fork = await slow.call("claude_code_reply", { ...forking, prompt: say("two"), ...wait });
    expect(fork.result?.usage?.costUsd).toBeCloseTo(one.result?.usage?.costUsd ?? 0, 8);
    expect(fork.result?.usage?.costUsd).toBeGreaterThan(0);
    await slow.close();
  });

  it("a fork is refused while a turn of the session runs, and after the session was cancelled", async () => {
    const { sessionId, release } = await startBlocked();
    const busy = { sessionId, prompt: say("x"), forkSession: true };
    expect(await server.refusal("claude_code_reply", busy)).toMatchObject({ code: "SESSION_BUSY" });
    release();
    await server.end(sessionId);
    await server.call("claude_code_session", { action: "cancel", sessionId });
    expect(await server.refusal("claude_code_reply", busy)).toMatchObject({ code: "CANCELLED" });
  });
});

describe("`resumeSessionAt` of `claude_code_reply`", () => {
  it("a reply at a message forgets everything after the message, in the session itself or in a fork", async () => {
    const { sessionId } = await done(say("one"));
    await reply(sessionId, say("two"));
    const at = await uuidOfText(sessionId, "one");
    const fork = await reply(sessionId, say("three"), { forkSession: true, resumeSessionAt: at });
    expect(fork.result?.result).toBe("three");
    expect(saidUpTo("three?")).toContain("one?");
    expect(saidUpTo("three?")).not.toContain("two?");

    const same = await reply(sessionId, say("four"), { resumeSessionAt: at });
    expect(same).toMatchObject({ sessionId, status: "idle", result: { result: "four", sessionTotalTurns: 3 } });
    expect(saidUpTo("four?")).not.toContain("two?");
    await reply(sessionId, say("five"));
    expect(saidUpTo("five?")).toContain("four?");
    expect(saidUpTo("five?")).not.toContain("two?");
  });

  it("a reply at a message is refused if the id is no uuid, and fails with Claude Code's error if the message is unknown", async () => {
    const { sessionId } = await done(say("one"));
    const odd = await server.refusal("claude_code_reply", { sessionId, prompt: say("x"), resumeSessionAt: "msg_01" });
    expect(odd).toMatchObject({
      code: "INVALID_ARGUMENT",
      text: expect.stringMatching(/resumeSessionAt: must be the uuid of a message\. .*responseMode full/),
    });
    const lost = await reply(sessionId, say("x"), { resumeSessionAt: "00000000-0000-4000-8000-000000000000" });
    expect(lost).toMatchObject({ status: "error", result: { isError: true } });
    expect(lost.result?.result).toMatch(/No message found/);
    expect((await reply(sessionId, say("on"))).result?.result).toBe("on");
  });
});

async function uuidOfText(sessionId: string, text: string): Promise<string> {
  const { events } = await server.call("claude_code_check", {
    action: "poll",
    sessionId,
    waitMs: 0,
    responseMode: "full",
    maxBytes: 1_000_000,
  });
  const found = events.find(({ data }) => JSON.stringify(data).includes(`"type":"text","text":"${text}"`));
  const uuid = /"uuid":"([^"]+)"/.exec(JSON.stringify(found?.data))?.[1];
  if (uuid === undefined) throw new Error(`no message says ${text}: ${JSON.stringify(events)}`);
  return uuid;
}

describe("`whenBusy` of `claude_code_reply`", () => {
  it("a retry with the same `idempotencyKey` does nothing new", async () => {
    const { sessionId } = await done(say("one"));
    const twice = { idempotencyKey: "once" };
    const first = await reply(sessionId, say("two"), twice);
    const second = await reply(sessionId, say("two"), twice);
    expect(second.result).toEqual(first.result);
    expect(first.result).toMatchObject({ sessionTotalTurns: 2 });
  });

  it("reject is the default: a reply to a busy session is SESSION_BUSY", async () => {
    const { sessionId, release } = await startBlocked();
    const busy = await server.refusal("claude_code_reply", { sessionId, prompt: say("x") });
    expect(busy).toMatchObject({ code: "SESSION_BUSY" });
    expect(busy.text).toContain("whenBusy");
    release();
    await server.end(sessionId);
  });

  it("queue: three prompts run one after the other, each as a turn of its own", async () => {
    const { sessionId, release } = await startBlocked();
    for (const [index, text] of ["one", "two", "three"].entries()) {
      const waiting = await server.call("claude_code_reply", { sessionId, prompt: say(text), whenBusy: "queue" });
      expect(waiting).toMatchObject({ status: "running", queuePosition: index + 1 });
    }
    release();
    await server.end(sessionId);
    const results = ends(await pollAll(sessionId)).map(({ data }) => data["result"]);
    expect(results.slice(0, 3)).toEqual(["Done.", "one", "two"]);
    expect((await pollAll(sessionId)).result).toMatchObject({ result: "three", sessionTotalTurns: 4 });
  });

  it("queue: a waiting prompt survives the death of the server, is held, and runs once released", async () => {
    const doomed = await world.server({ env: WITHOUT_DAEMON });
    const gate = `gate-${world.folder()}`;
    const prompt = `Begin. ${scriptTag([{ gateBefore: gate, text: "never" }])}`;
    const { sessionId } = await doomed.call("claude_code", { prompt, cwd: world.folder() });
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    await doomed.call("claude_code_reply", { sessionId, prompt: say("kept"), whenBusy: "queue" });
    process.kill(doomed.pid, "SIGKILL");
    await doomed.gone;

    // A new prompt neither waits for held prompts nor runs them.
    const first = await reply(sessionId, say("first"));
    expect(first).toMatchObject({ status: "idle", result: { result: "first" } });
    await server.call("claude_code_session", { action: "release_queue", sessionId });
    await server.end(sessionId);
    expect((await pollAll(sessionId)).result).toMatchObject({ result: "kept" });
  });

  it("queue: a prompt that is held after an interrupt can be dropped", async () => {
    const { sessionId } = await startBlocked();
    await server.call("claude_code_reply", { sessionId, prompt: say("unwanted"), whenBusy: "queue" });
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    await server.end(sessionId);
    const held = await server.call("claude_code_session", { action: "get", sessionId });
    expect(held.sessions).toMatchObject([{ queued: 1, held: 1 }]);
    await server.call("claude_code_session", { action: "drop_queue", sessionId });
    await reply(sessionId, say("wanted"));
    expect((await pollAll(sessionId)).result).toMatchObject({ result: "wanted" });
    expect(JSON.stringify(world.model.requests)).not.toContain("unwanted?");
  });

  it("steer: a prompt during a tool use joins the turn, which has one result", async () => {
    const cwd = world.folder();
    const command = `while [ ! -e ${cwd}/go ]; do sleep 0.05; done`;
    const script = [{ tools: [{ name: "Bash", input: { command } }] }, { text: "never, the newer script is played" }];
    const { sessionId } = await server.call("claude_code", {
      prompt: `Begin. ${scriptTag(script)}`,
      cwd,
      allowedTools: ["Bash"],
    });
    await until(() => world.processes().some((process) => process.command.includes("/go ]")));
    await server.call("claude_code_reply", { sessionId, prompt: say("Steered"), whenBusy: "steer" });
    writeFileSync(join(cwd, "go"), "");
    const end = await server.end(sessionId);
    expect(end.result).toMatchObject({ result: "Steered", isError: false });
    expect(ends(await pollAll(sessionId))).toHaveLength(1);
  });

  it("steer: a prompt while Claude Code writes text is answered in the same turn", async () => {
    const { sessionId, release } = await startBlocked("First.");
    await server.call("claude_code_reply", { sessionId, prompt: say("Second"), whenBusy: "steer" });
    release();
    const end = await server.end(sessionId);
    expect(end.result).toMatchObject({ result: "Second", sessionTotalTurns: 2 });
    expect(ends(await pollAll(sessionId))).toHaveLength(1);
  });
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe("bounds of one turn of `claude_code` and `claude_code_reply`", () => {
  it("`timeout`, of a reply for its turn or of a start for every turn, ends the turn within `waitMs`", async () => {
    const { sessionId } = await done(say("one"));
    const never = `Never. ${scriptTag([{ gateBefore: `never-${world.folder()}`, text: "x" }])}`;
    const late = await reply(sessionId, never, { timeout: 1_000 });
    expect(late).toMatchObject({
      status: "error",
      result: { isError: true, errorSubtype: "timeout", code: "TIMEOUT" },
    });
    expect((await reply(sessionId, say("two"))).result?.result).toBe("two");

    const start = { prompt: never, cwd: world.folder(), waitMs: 40_000, advanced: { timeout: 3_000 } };
    expect((await server.call("claude_code", start)).result).toMatchObject({ errorSubtype: "timeout" });
  });

  it("`permissionRequestTimeoutMs` of a reply applies to that reply alone", async () => {
    const { sessionId } = await done(say("one"), { permissionRequestTimeoutMs: 600_000 });
    const file = join(world.folder(), "x.txt");
    const write = scriptTag([{ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] }, { text: "ok" }]);
    const denied = await reply(sessionId, write, { permissionRequestTimeoutMs: 1_000, waitMs: 0 });
    const end = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor: denied.nextCursor,
      until: "end",
      waitMs: 40_000,
    });
    expect(end.result).toMatchObject({ result: "ok", isError: false });
    expect(JSON.stringify(end.events)).toContain('"by":"timeout"');
    await reply(sessionId, write, { waitMs: 0 });
    const asked = await server.news(sessionId, end.nextCursor);
    expect(asked.actions[0]?.remainingMs).toBeGreaterThan(500_000);
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("`maxBudgetUsd` ends the turn, and each of two replies after it has a new budget", async () => {
    const dear = { usage: { input_tokens: 400_000 } };
    const spend = scriptTag([
      { ...dear, tools: [{ name: "Bash", input: { command: "ls" } }] },
      { ...dear, tools: [{ name: "Bash", input: { command: "ls" } }] },
      { text: "never reached" },
    ]);
    const options = { advanced: { maxBudgetUsd: 1 }, allowedTools: ["Bash"], cwd: world.folder() };
    const first = await server.call("claude_code", { prompt: spend, waitMs: 40_000, ...options });
    const { sessionId } = first;
    expect(first).toMatchObject({
      status: "error",
      result: { isError: true, errorSubtype: "error_max_budget_usd", category: "limit" },
    });
    expect(first.result?.usage?.costUsd).toBeGreaterThan(1);
    expect((await reply(sessionId, say("cheap"))).result).toMatchObject({ result: "cheap", isError: false });
    const again = await reply(sessionId, spend);
    expect(again.result).toMatchObject({ isError: true, errorSubtype: "error_max_budget_usd" });
    expect((await reply(sessionId, say("cheap again"))).result).toMatchObject({ result: "cheap again" });
  });
});
