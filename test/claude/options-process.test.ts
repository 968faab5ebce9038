import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { runScript, requestsOf } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
let server: Server;
/** `ran`: session with an environment, a Claude Code and a sandbox of its own. `traces`: files that it has left. */
let ran: Answer;
let traces: { seen: string; started: string; wrapped: string; closed: string };
beforeAll(async () => {
  server = await world.server({ env: { FROM_THE_SERVER: "server", BOTH: "server" } });
  const [cwd, closed, folder] = [world.folder(), world.folder(), world.folder()];
  const started = join(folder, "was-run");
  const own = program(folder, "my-claude", [`echo run > ${started}`, `exec ${bundledClaudes()[0] ?? ""} "$@"`]);
  const { log, env } = standIns();
  const script = [bash("node -e 'console.log(6 * 7)'"), bash('echo "$FROM_THE_SERVER $ADDED $BOTH" > seen.txt'), ...ok];
  ran = await runScript(server, script, {
    cwd,
    advanced: {
      env: { ...env, ADDED: "added", BOTH: "call" },
      pathToClaudeCodeExecutable: own,
      sandbox: { enabled: true, autoAllowBashIfSandboxed: true, filesystem: { denyRead: [closed] } },
    },
  });
  const [seen = "", start = "", wrapped = ""] = [join(cwd, "seen.txt"), started, log].map((file) =>
    readFileSync(file, "utf8"),
  );
  traces = { seen, started: start, wrapped, closed };
});

const ok = [{ text: "ok" }];
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });

/** Creates an executable shell script. */
function program(folder: string, name: string, lines: string[]): string {
  const file = join(folder, name);
  writeFileSync(file, ["#!/bin/sh", ...lines, ""].join("\n"));
  chmodSync(file, 0o755);
  return file;
}

// Stand-ins for bubblewrap and socat record their arguments; test/attacks tests real confinement. First in PATH, so that real
// ones are not used.
function standIns() {
  const folder = world.folder();
  const log = join(folder, "bwrap.log");
  program(folder, "bwrap", [
    `echo "$@" >> ${log}`,
    'while [ $# -gt 0 ] && [ "$1" != "--" ]; do shift; done',
    '[ $# -gt 0 ] && shift && exec "$@"',
    "exit 0",
  ]);
  // Claude Code waits for the socket outside the sandbox; inside, a real proxy would end with the sandbox, which is missing
  // here.
  program(folder, "socat", [
    'case "$1" in UNIX-LISTEN:*) socket=${1#UNIX-LISTEN:}; touch "${socket%%,*}"; exec tail -f /dev/null;; esac',
  ]);
  return { log, env: { PATH: `${folder}:${process.env["PATH"] ?? ""}` } };
}

describe("an option of `claude_code` about the process", () => {
  it("`env` adds to the environment of the server", () => {
    expect(traces.seen).toBe("server added call\n");
  });

  it("`env` cannot change variables by which the server finds its processes", async () => {
    const advanced = { env: { CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "0" } };
    const refused = await server.refusal("claude_code", { prompt: "x", cwd: world.folder(), advanced });
    expect(refused).toMatchObject({
      code: "INVALID_ARGUMENT",
      text: expect.stringContaining("env.CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: is set by the server"),
    });
  });

  it("`pathToClaudeCodeExecutable` runs another Claude Code", () => {
    expect(ran.result?.result).toBe("ok");
    expect(traces.started).toBe("run\n");
  });

  it("`sessionInitTimeoutMs` bounds the start of Claude Code", async () => {
    // The program reads stdin and writes nothing until killed.
    const silent = program(world.folder(), "silent-claude", ["exec cat > /dev/null"]);
    const { result } = await runScript(server, ok, {
      cwd: world.folder(),
      advanced: { pathToClaudeCodeExecutable: silent, sessionInitTimeoutMs: 500 },
    });
    expect(result).toMatchObject({ isError: true, code: "TIMEOUT" });
    expect(result?.durationMs).toBeGreaterThanOrEqual(450);
    expect(result?.durationMs).toBeLessThan(9000);
  });

  it("`onLost` decides whether a turn is repeated after its process dies", async () => {
    const lose = async (tool: string, args: object) => {
      const gate = world.folder();
      const before = world.model.requests.at(-1)?.seq ?? 0;
      const prompt = scriptTag([{ gateBefore: gate, text: "late" }]);
      const { sessionId } = await server.call(tool, { prompt, ...args });
      await world.model.waitForRequest((request) => request.sessionId === sessionId && request.seq > before);
      const victim = world.processes().find(({ command }) => command.includes(`--session-id=${sessionId}`));
      process.kill(victim?.pid ?? Number.NaN, "SIGKILL");
      world.model.release(gate);
      const { result, status } = await server.end(sessionId);
      const asked = requestsOf(world, sessionId).filter(({ seq }) => seq > before).length;
      return { status, subtype: result?.errorSubtype, result: result?.result, asked };
    };
    const byDefault = await lose("claude_code_reply", { sessionId: ran.sessionId });
    expect(byDefault).toMatchObject({ status: "error", subtype: "lost", asked: 1 });
    const resumed = await lose("claude_code", { cwd: world.folder(), advanced: { onLost: "resume" } });
    expect(resumed).toMatchObject({ status: "idle", result: "late", asked: 2 });
  });
});

describe("the `sandbox` of `claude_code`", () => {
  it("the sandbox wraps commands, which run unasked if the caller says so", () => {
    expect(ran).toMatchObject({ actions: [], result: { result: "ok" } });
    expect(ran.events.map(({ data }) => data["output"])).toContain("42");
    expect(traces.wrapped).toContain("--unshare-net");
    expect(traces.wrapped).toContain(`--tmpfs ${traces.closed}`);
    expect(traces.wrapped).toContain("console.log(6 * 7)");
  });

  it("a sandbox that cannot be set up lets no session start, and the error says what is missing", async () => {
    const sandbox = { enabled: true };
    const env = { PATH: "/does/not/exist" };
    const { result } = await runScript(server, ok, { cwd: world.folder(), advanced: { sandbox, env } });
    expect(result).toMatchObject({ isError: true, errorSubtype: "start_failed" });
    expect(result?.result).toContain("bubblewrap (bwrap) not installed");
  });

  it("a misspelt field of the sandbox is refused, because Claude Code would drop it silently", async () => {
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
  it("a call waits up to `waitMs` and starts one session per `idempotencyKey`", async () => {
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
