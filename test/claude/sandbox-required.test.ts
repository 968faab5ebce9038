import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { play } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** test/attacks/sandbox.test.ts shows what the real bubblewrap confines; here stand-ins take its place. */

const world = useWorld();
let server: Server;
let PATH: string;
let log: string;
/** A session that may run one of its two commands. */
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
  // Outside the sandbox it is waited for; inside, a real proxy would end with the sandbox, which does not exist here.
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
  session = await play(server, [...script, ...ok], { cwd, allowedTools: ["Bash(touch *)"] });
});

function program(folder: string, name: string, lines: string[]): void {
  const file = join(folder, name);
  writeFileSync(file, ["#!/bin/sh", ...lines, ""].join("\n"));
  chmodSync(file, 0o755);
}

const ok = [{ text: "ok" }];

describe("a server with --sandbox required", () => {
  it("does not start where there is no sandbox, and says what to install", () => {
    const args = ["dist/cli/main.js", "serve", "--sandbox", "required"];
    const { status, stderr } = spawnSync(process.execPath, args, {
      env: { PATH: "/does/not/exist" },
      encoding: "utf8",
    });
    expect({ status, lines: stderr.trim().split("\n").length }).toEqual({ status: 2, lines: 1 });
    expect(stderr).toContain("--sandbox required: no sandbox is available. bwrap and socat cannot be found in PATH");
    expect(stderr).toContain("apt-get install bubblewrap socat");
  });

  it("puts into it what a session does for a prompt sent here, although the session runs at a server without it", async () => {
    const free = await world.server({ env: { PATH } });
    const begun = await play(free, ok, { cwd, allowedTools: ["Bash(touch *)"] });
    const reply = scriptTag([{ tools: [{ name: "Bash", input: { command: "touch by-reply" } }] }, ...ok]);
    await server.call("claude_code_reply", { sessionId: begun.sessionId, prompt: reply, waitMs: 40_000 });
    expect(existsSync(join(cwd, "by-reply"))).toBe(true);
    expect(readFileSync(log, "utf8")).toContain("touch by-reply");
  });

  it("says so in its log, and puts every command into the sandbox, however it was approved", async () => {
    await expect.poll(() => server.stderr()).toContain("every session runs in Claude Code's sandbox");
    expect(session.actions.map(({ input }) => input)).not.toContainEqual(expect.objectContaining({ command: ALLOWED }));
    expect(existsSync(join(cwd, "made"))).toBe(true);
    const wrapped = readFileSync(log, "utf8")
      .split("called ")
      .find((line) => line.includes(ALLOWED));
    expect(wrapped).toContain("--unshare-net");
    expect(wrapped).toContain("--unshare-pid");
  });

  it("does not take the sandbox for an approval: a command that nothing allows is asked", () => {
    expect(session.actions).toMatchObject([{ toolName: "Bash", input: { command: ASKED } }]);
  });

  it.each<[string, object]>([
    ["env", { env: { PATH: "/mine" } }],
    ["pathToClaudeCodeExecutable", { pathToClaudeCodeExecutable: process.execPath }],
    ["mcpServers", { mcpServers: { x: { type: "stdio", command: "touch", args: ["outside"] } } }],
    ["debug", { debug: true }],
    ["debugFile", { debugFile: "debug.log" }],
    ["sandbox.enabled", { sandbox: { enabled: false } }],
    ["sandbox.allowUnsandboxedCommands", { sandbox: { allowUnsandboxedCommands: true } }],
    ["sandbox.excludedCommands", { sandbox: { excludedCommands: ["touch *"] } }],
    ["sandbox.filesystem.allowWrite", { sandbox: { filesystem: { allowWrite: ["/"] } } }],
  ])("takes no `%s` that leads around it, from any caller", async (name, advanced) => {
    const refusal = await server.refusal("claude_code", { prompt: "x", cwd: world.folder(), advanced });
    expect(refusal.code).toBe("PERMISSION_DENIED");
    expect(refusal.text).toContain(`${name}: `);
    expect(refusal.text).toContain("--sandbox required");
  });

  it("starts no session whose user settings lead out of it", async () => {
    const settings = join(world.configFolder, "settings.json");
    writeFileSync(settings, JSON.stringify({ sandbox: { excludedCommands: ["git *"] } }));
    const { result } = await play(server, ok, { cwd: world.folder() });
    rmSync(settings);
    expect(result).toMatchObject({ isError: true, errorSubtype: "start_failed" });
    expect(result?.result).toContain("sandbox.excludedCommands");
  });
});
