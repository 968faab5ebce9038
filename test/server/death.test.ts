import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { HOSTILE_CLAUDE } from "../support/attacks/hostile-claude.ts";
import { ALL_KINDS, leaveDaemons } from "../support/left-behind.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();

/** A session whose Bash runs for ever, seen running. */
async function withRunningShell(server: Server): Promise<{ sessionId: string; cwd: string }> {
  const cwd = world.folder();
  const command = `touch started && exec node -e 'setInterval(() => {}, 1000)' ${cwd}`;
  const script = [{ text: "I run it.", tools: [{ name: "Bash", input: { command } }] }, { text: "never" }];
  const { sessionId } = await server.call("claude_code", { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] });
  while (
    !world.processes().some((process) => process.command.includes(`setInterval`) && process.command.includes(cwd))
  ) {
    await sleep(20);
  }
  return { sessionId, cwd };
}

/** The children of a process that run the reaper program. */
function reapersOf(pid: number): number[] {
  const children = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, "utf8")
    .trim()
    .split(" ")
    .map(Number);
  return children.filter((child) => commandOf(child).includes("reaper-process.js"));
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

type Killing = (server: Server) => Promise<void> | void;

const KILLINGS: Record<string, Killing> = {
  SIGKILL: ({ pid }) => void process.kill(pid, "SIGKILL"),
  SIGTERM: ({ pid }) => void process.kill(pid, "SIGTERM"),
  SIGINT: ({ pid }) => void process.kill(pid, "SIGINT"),
  // The client closes our stdin and waits.
  "stdin end": async (server) => server.close(),
  "a real client's SIGINT, SIGTERM after 100 ms, SIGKILL after 400 ms more": async ({ pid }) => {
    process.kill(pid, "SIGINT");
    await sleep(100);
    process.kill(pid, "SIGTERM");
    await sleep(400);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It had ended by then.
    }
  },
};

describe.each([
  ["setpriv and the reaper", []],
  ["the reaper", ["--reaper", "always"]],
])("with %s, a server in the middle of a Bash leaves nothing behind 10 s after", (_, args) => {
  it.each(Object.keys(KILLINGS))("%s", async (name) => {
    const server = await world.server({ args });
    await withRunningShell(server);
    const reapers = reapersOf(server.pid);
    expect(reapers).toHaveLength(1);
    await KILLINGS[name]?.(server);
    await server.gone;
    await world.quiet(10_000);
    const deadline = Date.now() + 2000;
    while (reapers.some((pid) => commandOf(pid) !== "") && Date.now() < deadline) await sleep(50);
    expect(reapers.filter((pid) => commandOf(pid) !== "")).toEqual([]);
  });
});

describe("what Bash has left behind when its turn ends", () => {
  it("is background work: told of, ended one by one, and the rest of it with the session", async () => {
    const server = await world.server();
    const daemons = await leaveDaemons(server, { cwd: world.folder() });
    const { sessionId } = daemons;
    const { background } = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(background).toHaveLength(ALL_KINDS.length);
    const one = background.find(({ description }) => description.includes("daemon-4-of"));
    expect(one).toMatchObject({ type: "process" });
    await server.call("claude_code_session", { action: "stop_task", sessionId, taskId: one?.id });
    const others = ALL_KINDS.filter((kind) => kind !== "env -i setsid");
    await expect.poll(() => new Set(daemons.left().map(({ kind }) => kind))).toEqual(new Set(others));
    const after = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(after.background).toHaveLength(others.length);
    const refused = { action: "task_output", sessionId, taskId: after.background[0]?.id };
    expect((await server.refusal("claude_code_session", refused)).code).toBe("INVALID_ARGUMENT");
    await server.call("claude_code_session", { action: "close", sessionId });
    expect(await daemons.leftAfter(10_000)).toEqual([]);
    await server.close();
  });
});

describe("Claude Code killed in the middle of a turn", () => {
  it("is lost, said so, its shell is not left, and the next reply resumes with what was known", async () => {
    const server = await world.server();
    const { sessionId, cwd } = await withRunningShell(server);
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

  it("that writes without a line break is ended and said so, and the server goes on", async () => {
    const server = await world.server();
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

  it("never started: an executable that cannot run is a failed turn with the reason, not a hang", async () => {
    const server = await world.server();
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
