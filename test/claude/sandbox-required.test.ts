import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { runScript } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Uses stand-ins for bubblewrap; test/attacks/sandbox.test.ts tests the real one. */

const world = useWorld();
let server: Server;
let PATH: string;
let log: string;
/** Answer of a session that may run the first of two commands. */
let session: Answer;
let cwd: string;
const ALLOWED = "touch made";
const ASKED = "node -e 'console.log(6 * 7)'";
beforeAll(async () => {
  const folder = world.folder();
  log = join(folder, "bwrap.log");
  program(folder, "bwrap", [
    `echo "called $@" >> ${log}`,
    'while [ $# -gt 0 ] && [ "$1" != "--" ]; do shift; done',
    '[ $# -gt 0 ] && shift && exec "$@"',
  ]);
  // Claude Code waits for the socket outside the sandbox; inside, a real proxy would end with the sandbox, which is missing
  // here.
  program(folder, "socat", [
    'case "$1" in UNIX-LISTEN:*) socket=${1#UNIX-LISTEN:}; touch "${socket%%,*}"; exec tail -f /dev/null;; esac',
  ]);
  PATH = [folder, process.env["PATH"]].join(delimiter);
  server = await world.server({
    args: ["--sandbox", "required", "--allow-rules", "WebFetch(domain:a.example)"],
    env: { PATH },
  });
  cwd = world.folder();
  const script = [ALLOWED, ASKED].map((command) => ({ tools: [{ name: "Bash", input: { command } }] }));
  session = await runScript(server, [...script, ...OK], { cwd, allowedTools: ["Bash(touch *)"] });
});

function program(folder: string, name: string, lines: string[]): void {
  const file = join(folder, name);
  writeFileSync(file, ["#!/bin/sh", ...lines, ""].join("\n"));
  chmodSync(file, 0o755);
}

const OK = [{ text: "ok" }];

describe("a server with --sandbox required", () => {
  it("the server does not start without a sandbox, and says what to install", () => {
    const args = ["dist/cli/main.js", "serve", "--sandbox", "required"];
    const { status, stderr } = spawnSync(process.execPath, args, {
      env: { PATH: "/does/not/exist" },
      encoding: "utf8",
    });
    expect({ status, lines: stderr.trim().split("\n").length }).toEqual({ status: 2, lines: 1 });
    expect(stderr).toContain("--sandbox required: no sandbox is available. bwrap and socat cannot be found in PATH");
    expect(stderr).toContain("apt-get install bubblewrap socat");
  });

  it("a prompt sent to this server runs in the sandbox, even in a session of a server without one", async () => {
    const free = await world.server({ env: { PATH } });
    const begun = await runScript(free, OK, { cwd, allowedTools: ["Bash(touch *)"] });
    const reply = scriptTag([{ tools: [{ name: "Bash", input: { command: "touch by-reply" } }] }, ...OK]);
    await server.call("claude_code_reply", { sessionId: begun.sessionId, prompt: reply, waitMs: 40_000 });
    expect(existsSync(join(cwd, "by-reply"))).toBe(true);
    expect(readFileSync(log, "utf8")).toContain("touch by-reply");
  });

  it("the server logs the sandbox, and puts every command into it, however approved", async () => {
    await expect.poll(() => server.stderr()).toContain("every session runs in Claude Code's sandbox");
    expect(session.actions.map(({ input }) => input)).not.toContainEqual(expect.objectContaining({ command: ALLOWED }));
    expect(existsSync(join(cwd, "made"))).toBe(true);
    const wrapped = readFileSync(log, "utf8")
      .split("called ")
      .find((line) => line.includes(ALLOWED));
    expect(wrapped).toContain("--unshare-net");
    expect(wrapped).toContain("--unshare-pid");
  });

  it("the sandbox is not an approval: a command that no rule allows is asked", () => {
    expect(session.actions).toMatchObject([{ toolName: "Bash", input: { command: ASKED } }]);
  });

  it.each<[string, object]>([
    ["env", { env: { PATH: "/mine" } }],
    ["pathToClaudeCodeExecutable", { pathToClaudeCodeExecutable: process.execPath }],
    ["mcpServers", { mcpServers: { x: { type: "stdio", command: "touch", args: ["outside"] } } }],
    ["debug", { debug: true }],
    ["debugFile", { debugFile: "debug.log" }],
    ["verify", { verify: ["true"] }],
    ["sandbox.enabled", { sandbox: { enabled: false } }],
    ["sandbox.allowUnsandboxedCommands", { sandbox: { allowUnsandboxedCommands: true } }],
    ["sandbox.excludedCommands", { sandbox: { excludedCommands: ["touch *"] } }],
    ["sandbox.filesystem.allowWrite", { sandbox: { filesystem: { allowWrite: ["/"] } } }],
  ])("`%s` is refused for any caller if it would lead out of the sandbox", async (name, advanced) => {
    const refusal = await server.refusal("claude_code", { prompt: "x", cwd: world.folder(), advanced });
    expect(refusal.code).toBe("PERMISSION_DENIED");
    expect(refusal.text).toContain(`${name}: `);
    expect(refusal.text).toContain("--sandbox required");
  });

  it("a session whose user settings lead out of the sandbox does not start", async () => {
    const settings = join(world.configFolder, "settings.json");
    writeFileSync(settings, JSON.stringify({ sandbox: { excludedCommands: ["git *"] } }));
    const { result } = await runScript(server, OK, { cwd: world.folder() });
    rmSync(settings);
    expect(result).toMatchObject({ isError: true, errorSubtype: "start_failed" });
    expect(result?.result).toContain("sandbox.excludedCommands");
  });
});
