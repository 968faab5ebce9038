import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer, Server } from "./server.ts";
import { createWorld, type World } from "./world.ts";

let world: World;
let server: Server;
beforeAll(async () => {
  world = await createWorld();
  server = await world.server();
});
afterAll(async () => world.close());

/** Polls on until `enough` holds, collecting what is told. */
async function watch(sessionId: string, enough: (told: Answer["events"]) => boolean): Promise<Answer["events"]> {
  const told: Answer["events"] = [];
  let cursor = 1;
  for (let polls = 0; polls < 100; polls++) {
    const answer = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor,
      waitMs: 20_000,
      until: "event",
    });
    told.push(...answer.events);
    cursor = answer.nextCursor;
    if (enough(told)) return told;
  }
  throw new Error(`never told: ${JSON.stringify(told)}`);
}

const ends = (told: Answer["events"]) => told.filter(({ type }) => type === "result" || type === "error");

describe("work that goes on behind the first result", () => {
  it("of a subagent that asks a permission: the turn ends only when Claude Code is idle", async () => {
    const cwd = world.folder();
    const file = join(cwd, "by-subagent.txt");
    const subagent = scriptTag([
      { tools: [{ name: "Write", input: { file_path: file, content: "x" } }] },
      { text: "The subagent is done." },
    ]);
    const input = { description: "write", subagent_type: "general-purpose", prompt: `Do it. ${subagent}` };
    const script = [
      { tools: [{ name: "Agent", input }] },
      { text: "Launched, waiting." },
      { text: "Everything is finished." },
    ];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });

    const asked = await server.news(sessionId);
    expect(asked.actions).toMatchObject([{ toolName: "Write", input: { file_path: file } }]);
    expect(asked.actions[0]?.agentID).toMatch(/\w+/);
    expect(asked.background).toMatchObject([{ type: "local_agent", description: "write" }]);
    // The first result is there by now; the turn has not ended with it.
    const told = await watch(sessionId, (events) => JSON.stringify(events).includes("Launched, waiting."));
    expect(ends(told)).toEqual([]);
    const done = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      cursor: asked.nextCursor,
      requestId: asked.actions[0]?.requestId,
      decision: "allow",
      until: "end",
    });
    expect(done).toMatchObject({ status: "idle", result: { result: "Everything is finished.", isError: false } });
    expect(done).not.toHaveProperty("background.0");
    expect(existsSync(file)).toBe(true);
    const all = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(ends(all.events)).toHaveLength(1);
  });

  it("of a shell: the turn ends at once, and a turn of its own follows when the shell ends", async () => {
    const cwd = world.folder();
    const input = { command: `while [ ! -e ${cwd}/go ]; do sleep 0.05; done; echo finished`, run_in_background: true };
    const script = [{ tools: [{ name: "Bash", input }] }, { text: "It runs." }, { text: "The shell has ended." }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] });
    const first = await server.end(sessionId);
    expect(first).toMatchObject({ status: "idle", result: { result: "It runs." } });
    expect(first.background).toEqual([{ id: expect.any(String), type: "local_bash", description: input.command }]);

    writeFileSync(join(cwd, "go"), "");
    const told = await watch(sessionId, (events) => ends(events).length === 2);
    expect(ends(told).map(({ type }) => type)).toEqual(["result", "result"]);
    expect(await server.end(sessionId)).toMatchObject({
      status: "idle",
      background: [],
      result: { result: "The shell has ended.", isError: false },
    });
  });
});

describe("one prompt at a time", () => {
  it("a second prompt while a turn runs is SESSION_BUSY, and the turn is not harmed", async () => {
    const cwd = world.folder();
    const gate = `busy-${cwd}`;
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ gateBefore: gate, text: "first" }]),
      cwd,
    });
    const refused = await server.refusal("claude_code_reply", { sessionId, prompt: "second" });
    expect(refused.code).toBe("SESSION_BUSY");
    expect(refused.text).toMatch(/^Error \[SESSION_BUSY\]: .*claude_code_check/);
    world.model.release(gate);
    expect((await server.end(sessionId)).result?.result).toBe("first");
  });

  it("a retry with the same idempotencyKey is harmless, on start and on reply", async () => {
    const cwd = world.folder();
    const start = { prompt: scriptTag([{ text: "once" }]), cwd, idempotencyKey: `key-${cwd}` };
    const [one, two] = await Promise.all([server.call("claude_code", start), server.call("claude_code", start)]);
    expect(one.sessionId).toBe(two.sessionId);
    expect((await server.end(one.sessionId)).result?.sessionTotalTurns).toBe(1);
    const reply = {
      sessionId: one.sessionId,
      prompt: scriptTag([{ text: "twice" }]),
      idempotencyKey: "r",
      waitMs: 20_000,
    };
    await server.call("claude_code_reply", reply);
    const again = await server.call("claude_code_reply", reply);
    expect(again.result).toMatchObject({ result: "twice", sessionTotalTurns: 2 });
  });
});

describe("cancel", () => {
  it("while a permission is asked: final, the tool does not run, nothing is left, the session takes no more", async () => {
    const cwd = world.folder();
    const file = join(cwd, "never.txt");
    const script = [{ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] }, { text: "no" }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });
    const asked = await server.news(sessionId);
    expect(asked.actions).toHaveLength(1);
    const cancelled = await server.call("claude_code_session", { action: "cancel", sessionId });
    expect(cancelled.sessions).toMatchObject([{ sessionId, status: "cancelled" }]);

    const after = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor: asked.nextCursor,
      waitMs: 20_000,
    });
    expect(after).toMatchObject({
      status: "cancelled",
      actions: [],
      result: { isError: true },
      cancelledSource: "caller",
    });
    expect(after["cancelledAt"]).toEqual(expect.any(String));
    const answers = after.events.filter(({ type }) => type === "permission_result");
    expect(answers).toMatchObject([{ data: { decision: "deny", by: "cancel" } }]);

    const late = { action: "respond_permission", sessionId, requestId: asked.actions[0]?.requestId, decision: "allow" };
    expect((await server.refusal("claude_code_check", late)).code).toBe("PERMISSION_REQUEST_NOT_FOUND");
    expect((await server.refusal("claude_code_reply", { sessionId, prompt: "more" })).code).toBe("CANCELLED");
    await world.quiet(10_000).catch(() => undefined);
    expect(existsSync(file)).toBe(false);
  });
});
