import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { ClientKind } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld, type World } from "../kit/world.ts";

/** Main job of users, through the daemon that a client starts. Runs once with the real Claude Code. */
const real = useWorld({ daemon: "auto" });
const world = useWorld({ agent: "stand-in", daemon: "auto" });

const write = (file: string) => [
  { text: "I write.", tools: [{ name: "Write", input: { file_path: file, content: "hello" } }] },
  { text: "That is all." },
];

describe.each<[ClientKind, World]>([
  ["modern", real],
  ["legacy", world],
  ["v1", world],
])("the main job, with the %s client", (client, its) => {
  it("a session starts, has its write approved, goes on in the same process, and has the next file denied", async () => {
    const server = await its.shared({ client });
    const cwd = its.folder();
    const file = join(cwd, "a.txt");

    const started = await server.call("claude_code", { prompt: `Write it. ${scriptTag(write(file))}`, cwd });
    expect(started).toMatchObject({ status: "running", nextCursor: 1 });
    const { sessionId } = started;

    const asked = await server.news(sessionId, started.nextCursor);
    expect(asked.status).toBe("waiting_permission");
    const [action] = asked.actions;
    expect(action).toMatchObject({
      type: "permission",
      toolName: "Write",
      input: { file_path: file, content: "hello" },
    });
    expect(action?.remainingMs).toBeGreaterThan(50_000);
    expect(action?.remainingMs).toBeLessThanOrEqual(60_000);
    expect(existsSync(file)).toBe(false);

    const done = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      cursor: asked.nextCursor,
      requestId: action?.requestId,
      decision: "allow",
      responseMode: "delta_compact",
    });
    expect(done).toMatchObject({ status: "idle", actions: [] });
    expect(done.result).toMatchObject({ sessionId, result: "That is all.", isError: false, numTurns: 2 });
    expect(readFileSync(file, "utf8")).toBe("hello");

    const ids = [...asked.events, ...done.events].map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    const kinds = [...asked.events, ...done.events].map(({ type }) => type);
    expect(kinds).toEqual(
      expect.arrayContaining(["output", "permission_request", "permission_result", "progress", "result"]),
    );
    expect(kinds.at(-1)).toBe("result");

    const second = await server.call("claude_code_reply", {
      sessionId,
      prompt: `Again. ${scriptTag([{ text: "Second." }])}`,
      waitMs: 30_000,
    });
    expect(second).toMatchObject({
      sessionId,
      status: "idle",
      result: { result: "Second.", numTurns: 1, sessionTotalTurns: 3 },
    });
    const first = done.result?.totalCostUsd ?? 0;
    const totals = (await server.end(sessionId)).result;
    expect(totals?.sessionTotalCostUsd).toBeCloseTo(first + (second.result?.usage?.costUsd ?? 0), 10);

    const other = join(cwd, "b.txt");
    const third = await server.call("claude_code_reply", {
      sessionId,
      prompt: scriptTag(write(other)),
      waitMs: 30_000,
    });
    expect(third.status).toBe("waiting_permission");
    const open = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor: third.nextCursor,
      waitMs: 0,
    });
    const denied = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      cursor: open.nextCursor,
      requestId: open.actions[0]?.requestId,
      decision: "deny",
      denyMessage: "Not this file.",
    });
    expect(denied).toMatchObject({ status: "idle", result: { isError: false } });
    expect(JSON.stringify(denied.events)).toContain("Not this file.");
    expect(existsSync(other)).toBe(false);

    const { sessions } = await server.call("claude_code_session", { action: "get", sessionId });
    expect(sessions).toMatchObject([{ sessionId, status: "idle", processStarts: 1, totalTurns: 5 }]);
  });
});

let server: Server;
beforeAll(async () => {
  server = await world.server();
});

describe("waiting with `claude_code_check`", () => {
  it("a poll wakes on the permission request, not before; a poll at 0 ms returns at once", async () => {
    const cwd = world.folder();
    const gate = `asked-${cwd}`;
    const script = [{ gateBefore: gate, tools: [{ name: "Bash", input: { command: "touch x" } }] }, { text: "ok" }];
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd });
    const now = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(now).toMatchObject({ status: "running", actions: [] });

    const waiting = server.news(sessionId, now.nextCursor);
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    world.model.release(gate);
    expect((await waiting).actions).toHaveLength(1);
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a wait ends at `waitMs` while the turn goes on, whatever event `until` names", async () => {
    const cwd = world.folder();
    const gate = `slow-${cwd}`;
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ gateBefore: gate, text: "late" }]),
      cwd,
    });
    const early = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 300, until: "end" });
    expect(early.status).toBe("running");
    world.model.release(gate);
    expect((await server.end(sessionId)).result?.result).toBe("late");
  });

  it("a wait is ended by cancelling the call, and the turn goes on", async () => {
    const cwd = world.folder();
    const gate = `gone-${cwd}`;
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ gateBefore: gate, text: "still here" }]),
      cwd,
    });
    const cancel = new AbortController();
    const waiting = server.call(
      "claude_code_check",
      { action: "poll", sessionId, waitMs: 40_000, until: "end" },
      { signal: cancel.signal },
    );
    await world.model.waitForRequest((request) => request.sessionId === sessionId);
    cancel.abort();
    await expect(waiting).rejects.toThrow(/abort/i);
    world.model.release(gate);
    expect((await server.end(sessionId)).result?.result).toBe("still here");
  });
});

describe("several sessions", () => {
  it("sessions that run at once do not mix", async () => {
    const folders = [world.folder(), world.folder()];
    const started = await Promise.all(
      folders.map(async (cwd) => server.call("claude_code", { prompt: scriptTag(write(join(cwd, "own.txt"))), cwd })),
    );
    const ended = await Promise.all(
      started.map(async ({ sessionId }) => {
        const asked = await server.news(sessionId);
        const { requestId } = asked.actions[0] ?? {};
        return server.call("claude_code_check", {
          action: "respond_permission",
          sessionId,
          cursor: asked.nextCursor,
          requestId,
          decision: "allow",
        });
      }),
    );
    expect(ended.map(({ status }) => status)).toEqual(["idle", "idle"]);
    for (const cwd of folders) expect(readFileSync(join(cwd, "own.txt"), "utf8")).toBe("hello");
    const [first, second] = started;
    const events = await server.call("claude_code_check", { action: "poll", sessionId: first?.sessionId, waitMs: 0 });
    expect(JSON.stringify(events)).not.toContain(folders[1]);
    expect(first?.sessionId).not.toBe(second?.sessionId);
  });
});
