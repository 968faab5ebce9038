import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { HOSTILE_CLAUDE } from "../kit/attacks/hostile-claude.ts";
import { ALL_KINDS, leaveDaemons } from "../kit/sessions/background-commands.ts";
import { ENDS_SHOWN, expectNothingLeft, withRunningShell } from "../kit/servers/server-ends.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ daemon: "never" });
const standIn = useWorld({ agent: "stand-in", daemon: "never" });

// The remaining combinations, with the real Claude Code: `test/matrices/death.test.ts`.
describe("a server that ends in the middle of a Bash", () => {
  it.each(ENDS_SHOWN)("nothing is left 10 s after the server ends by %s, with %s", async (name, means) =>
    expectNothingLeft(world, means, name),
  );

  it("nothing of a stand-in is left 10 s after the server ends by stdin end, with setpriv and the reaper", async () =>
    expectNothingLeft(standIn, "setpriv and the reaper", "stdin end"));
});

/** Started on demand, because the tests above must have the only server. */
let shared: Server | undefined;
const started = async (): Promise<Server> => (shared ??= await world.server());

describe("a process that Bash leaves behind when its turn ends", () => {
  it("a process left by Bash is reported as background work, and ends alone or with the session", async () => {
    const server = await started();
    const daemons = await leaveDaemons(server, { cwd: world.folder() });
    const { sessionId } = daemons;
    const { background } = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(background).toHaveLength(ALL_KINDS.length);
    const one = background.find(({ description }) => description.includes("daemon-4-of"));
    expect(one).toMatchObject({ type: "process" });
    await server.call("claude_code_session", { action: "stop_task", sessionId, taskId: one?.id });
    const others = ALL_KINDS.filter((kind) => kind !== "env -i setsid");
    await expect.poll(() => new Set(daemons.left().map(({ kind }) => kind))).toEqual(new Set(others));
    const running = async () =>
      (await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 })).background;
    // The server scans processes at intervals.
    await expect.poll(running).toHaveLength(others.length);
    const [other] = await running();
    const refused = { action: "task_output", sessionId, taskId: other?.id };
    expect((await server.refusal("claude_code_session", refused)).code).toBe("INVALID_ARGUMENT");
    await server.call("claude_code_session", { action: "close", sessionId });
    expect(await daemons.leftAfter(10_000)).toEqual([]);
  });
});

describe("a Claude Code that fails", () => {
  it("a Claude Code killed in a turn is reported as lost, leaves no shell and is resumed by the next reply", async () => {
    const server = await started();
    const { sessionId, cwd } = await withRunningShell(world, server);
    const claude = world.processes().find(({ command }) => command.includes(sessionId));
    if (!claude) throw new Error("Claude Code is not running");
    process.kill(claude.pid, "SIGKILL");

    const lost = await server.end(sessionId);
    expect(lost).toMatchObject({ status: "error", result: { isError: true, errorSubtype: "lost" } });
    expect(lost.result?.result).toContain("SIGKILL");
    await world.quiet(10_000);

    const file = join(cwd, "after.txt");
    const script = [{ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] }, { text: "Back again." }];
    const resumed = await server.call("claude_code_reply", { sessionId, prompt: scriptTag(script), waitMs: 40_000 });
    expect(resumed.status).toBe("waiting_permission");
    const asked = await server.news(sessionId, resumed.nextCursor);
    const done = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      cursor: asked.nextCursor,
      requestId: asked.actions[0]?.requestId,
      decision: "allow",
    });
    expect(done).toMatchObject({ status: "idle", result: { result: "Back again.", isError: false } });
    const { sessions } = await server.call("claude_code_session", { action: "get", sessionId });
    expect(sessions).toMatchObject([{ processStarts: 2 }]);
    const inTranscript = world.transcript(sessionId);
    expect(inTranscript).toContain("I run it.");
    expect(inTranscript).toContain("Back again.");
  });

  it("a Claude Code that writes more than 64 MiB without a line break is ended and reported", async () => {
    const server = await started();
    const { sessionId } = await server.call("claude_code", {
      prompt: JSON.stringify({ megabytes: 560 }),
      cwd: world.folder(),
      advanced: { pathToClaudeCodeExecutable: HOSTILE_CLAUDE },
    });
    const lost = await server.end(sessionId);
    expect(lost).toMatchObject({ status: "error", result: { isError: true, errorSubtype: "lost" } });
    expect(lost.result?.result).toContain("more than 67108864 bytes without a line break");
    const hostile = () => world.processes().filter(({ command }) => command.includes("hostile-claude"));
    await expect.poll(hostile).toEqual([]);
  });

  it("an executable that cannot run causes a failed turn with the reason, not a hang", async () => {
    const server = await started();
    const { sessionId } = await server.call("claude_code", {
      prompt: "hello",
      cwd: world.folder(),
      advanced: { pathToClaudeCodeExecutable: "/bin/false" },
    });
    const failed = await server.end(sessionId);
    expect(failed).toMatchObject({ status: "error", result: { isError: true, errorSubtype: "start_failed" } });
    expect(failed.result?.result).toMatch(/did not start/);
  });
});
