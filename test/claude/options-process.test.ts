import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { bundledClaude } from "../../src/claude/binary.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { play, requestsOf } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server({ env: { FROM_THE_SERVER: "server", BOTH: "server" } });
});

const ok = [{ text: "ok" }];
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });

/** An executable file. */
function program(folder: string, name: string, lines: string[]): string {
  const file = join(folder, name);
  writeFileSync(file, ["#!/bin/sh", ...lines, ""].join("\n"));
  chmodSync(file, 0o755);
  return file;
}

describe("an option of `claude_code` about the process", () => {
  it("adds to the environment of the server: `env`", async () => {
    const cwd = world.folder();
    const script = [bash('echo "$FROM_THE_SERVER $ADDED $BOTH" > seen.txt'), ...ok];
    await play(server, script, { cwd, allowedTools: ["Bash"], advanced: { env: { ADDED: "added", BOTH: "call" } } });
    expect(readFileSync(join(cwd, "seen.txt"), "utf8")).toBe("server added call\n");
  });

  it("leaves alone by `env` what the server keeps hold of the session by", async () => {
    const advanced = { env: { CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "0" } };
    const refused = await server.refusal("claude_code", { prompt: "x", cwd: world.folder(), advanced });
    expect(refused).toMatchObject({
      code: "INVALID_ARGUMENT",
      text: expect.stringContaining("env.CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: is set by the server"),
    });
  });

  it("runs another Claude Code: `pathToClaudeCodeExecutable`", async () => {
    const folder = world.folder();
    const trace = join(folder, "was-run");
    const own = program(folder, "my-claude", [`echo run > ${trace}`, `exec ${bundledClaude() ?? ""} "$@"`]);
    const { result } = await play(server, ok, { cwd: world.folder(), advanced: { pathToClaudeCodeExecutable: own } });
    expect(result?.result).toBe("ok");
    expect(readFileSync(trace, "utf8")).toBe("run\n");
  });

  it("bounds its start: `sessionInitTimeoutMs`", async () => {
    // It takes its input and says nothing, until it is ended.
    const silent = program(world.folder(), "silent-claude", ["exec cat > /dev/null"]);
    const { result } = await play(server, ok, {
      cwd: world.folder(),
      advanced: { pathToClaudeCodeExecutable: silent, sessionInitTimeoutMs: 500 },
    });
    expect(result).toMatchObject({ isError: true, code: "TIMEOUT" });
    expect(result?.durationMs).toBeGreaterThanOrEqual(450);
    expect(result?.durationMs).toBeLessThan(9000);
  });

  it("says what becomes of a turn whose process dies: `onLost`", async () => {
    const lose = async (options: object) => {
      const gate = world.folder();
      const script = [{ gateBefore: gate, text: "late" }];
      const { sessionId } = await server.call("claude_code", {
        prompt: scriptTag(script),
        cwd: world.folder(),
        ...options,
      });
      await world.model.waitForRequest((request) => request.sessionId === sessionId);
      const victim = world.processes().find(({ command }) => command.includes(`--session-id=${sessionId}`));
      process.kill(victim?.pid ?? 0, "SIGKILL");
      world.model.release(gate);
      const { result, status } = await server.end(sessionId);
      return {
        status,
        subtype: result?.errorSubtype,
        result: result?.result,
        asked: requestsOf(world, sessionId).length,
      };
    };
    expect(await lose({})).toMatchObject({ status: "error", subtype: "lost", asked: 1 });
    expect(await lose({ advanced: { onLost: "resume" } })).toMatchObject({ status: "idle", result: "late", asked: 2 });
  });
});

describe("the `sandbox` of `claude_code`", () => {
  // Stand-ins for bubblewrap and socat show what Claude Code would have them do; whether that confines a command is
  // theirs to show. They are found first in PATH, so that it makes no difference whether the machine has the real ones.
  function standIns() {
    const folder = world.folder();
    const log = join(folder, "bwrap.log");
    program(folder, "bwrap", [
      `echo "$@" >> ${log}`,
      'while [ $# -gt 0 ] && [ "$1" != "--" ]; do shift; done',
      '[ $# -gt 0 ] && shift && exec "$@"',
      "exit 0",
    ]);
    // Outside the sandbox it is waited for; inside, a real one would end with the sandbox, which this one does not have.
    program(folder, "socat", [
      'case "$1" in UNIX-LISTEN:*) socket=${1#UNIX-LISTEN:}; touch "${socket%%,*}"; exec tail -f /dev/null;; esac',
    ]);
    return { log, env: { PATH: `${folder}:${process.env["PATH"] ?? ""}` } };
  }

  it("wraps commands, which then run unasked where the caller says so", async () => {
    const { log, env } = standIns();
    const [cwd, closed] = [world.folder(), world.folder()];
    const sandbox = { enabled: true, autoAllowBashIfSandboxed: true, filesystem: { denyRead: [closed] } };
    const done = await play(server, [bash("node -e 'console.log(6 * 7)'"), ...ok], { cwd, advanced: { sandbox, env } });
    expect(done).toMatchObject({ actions: [], result: { result: "ok" } });
    const { events } = done;
    expect(events.map(({ data }) => data["output"])).toContain("42");
    const wrapped = readFileSync(log, "utf8");
    expect(wrapped).toContain("--unshare-net");
    expect(wrapped).toContain(`--tmpfs ${closed}`);
    expect(wrapped).toContain("console.log(6 * 7)");
  });

  it("that cannot be set up lets no session start, and says what is missing", async () => {
    const sandbox = { enabled: true };
    const env = { PATH: "/does/not/exist" };
    const { result } = await play(server, ok, { cwd: world.folder(), advanced: { sandbox, env } });
    expect(result).toMatchObject({ isError: true, errorSubtype: "start_failed" });
    expect(result?.result).toContain("bubblewrap (bwrap) not installed");
  });

  it("that is misspelt is refused: Claude Code would drop it without a word", async () => {
    const refusal = await server.refusal("claude_code", {
      prompt: "x",
      advanced: { sandbox: { enabled: true, filesystem: { denyReads: ["/etc"] } } },
    });
    expect(refusal.code).toBe("INVALID_ARGUMENT");
    expect(refusal.text).toContain("advanced.sandbox.filesystem.denyReads");
    expect(refusal.text).toContain("Did you mean denyRead?");
  });
});

describe("a call of `claude_code`", () => {
  it("waits as long as it is told: `waitMs`; once is enough: `idempotencyKey`", async () => {
    const cwd = world.folder();
    const call = { prompt: scriptTag([{ gateBefore: cwd, text: "late" }]), cwd, idempotencyKey: cwd };
    const first = await server.call("claude_code", call);
    expect(first.status).toBe("running");
    const again = await server.call("claude_code", { ...call, waitMs: 100 });
    expect(again).toMatchObject({ sessionId: first.sessionId, status: "running" });
    world.model.release(cwd);
    const waited = await server.call("claude_code", { ...call, waitMs: 40_000 });
    expect(waited).toMatchObject({ sessionId: first.sessionId, status: "idle", result: { result: "late" } });
    expect(requestsOf(world, first.sessionId)).toHaveLength(1);
    const other = await server.call("claude_code", { ...call, idempotencyKey: `${cwd}/other`, waitMs: 40_000 });
    expect(other.sessionId).not.toBe(first.sessionId);
  });
});
