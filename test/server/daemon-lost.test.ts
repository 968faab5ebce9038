import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { commandOf, daemonStatus } from "../kit/faults/shims.ts";
import { useWorld } from "../kit/world.ts";

/** Tests living daemons that cannot be asked: frozen, or without a socket. */

const world = useWorld({ agent: "stand-in" });
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");
const ARGS = ["--drain-ms", "0"];

/** Runs `daemon VERB`; resolves to the exit code and the output. */
async function command(home: string, ...words: string[]) {
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  const child = spawn(process.execPath, [MAIN, "daemon", ...words], { env, stdio: ["ignore", "pipe", "pipe"] });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk.toString()));
  const [status] = (await once(child, "close")) as [number];
  return { status, stdout: out.join(""), stderr: err.join("") };
}

const socketOf = (home: string, name: string) =>
  daemonStatus(home).find(({ socket }) => socket.endsWith(`/${name}.sock`))?.socket ?? "";

it("daemons frozen or without socket are listed by pid and ended by `stop --all`; other servers are named", async () => {
  const HOME = world.folder();
  const start = async (name: string) => world.daemon({ name, env: { HOME }, args: ARGS });
  const [frozen, removed, answering] = [await start("frozen"), await start("removed"), await start("answering")];
  const http = await world.http({ env: { HOME } });
  rmSync(socketOf(HOME, "removed"));
  const second = await start("removed");
  const refused = await command(HOME, "stop", "--all");
  expect(refused.status).toBe(2);
  expect(refused.stderr).toContain("1 daemon cannot be asked for running turns");
  frozen.signal("SIGSTOP");

  const { status, stdout } = await command(HOME, "status");
  expect(status).toBe(0);
  expect(stdout).toContain(`frozen  does not answer, pid ${String(frozen.pid)}\n`);
  expect(stdout).toContain(`removed  has no socket, pid ${String(removed.pid)}\n`);
  expect(stdout).not.toContain("has died");

  const stopped = await command(HOME, "stop", "--all", "--yes");
  expect(stopped.stdout).toBe(
    `4 daemons stopped.\nOther servers use the store, and run on: pid ${String(http.pid)} (${new URL(http.url).origin}).\n`,
  );
  for (const { pid } of [frozen, removed, second, answering]) expect(commandOf(pid)).toBe("");
  expect(await command(HOME, "stop", "--all", "--json")).toMatchObject({ status: 1 });
  await http.close();
});

it.each([
  ["another start time (the daemon has ended)", "another", "No daemon runs.\n", ""],
  [
    "no start time (it may be another process)",
    "unknown",
    "No daemon was stopped.\n",
    "is still that daemon, end it with kill -9",
  ],
])("a process with the pid of a record is not signalled if the record has %s", async (_, startedAt, told, warned) => {
  const HOME = world.folder();
  const logs = join(HOME, ".local/state/claude-agents-mcp/logs");
  const stranger = spawn("sleep", ["60"], { stdio: "ignore" });
  const { pid } = stranger;
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  writeFileSync(join(logs, `daemon-gone.running.${String(pid)}`), JSON.stringify({ pid, startedAt }));
  const { stderr, stdout, status } = await command(HOME, "stop", "--all", "--yes");
  expect([status, stdout]).toEqual([1, told]);
  expect(stderr).toContain(warned);
  expect(stranger.signalCode).toBeNull();
  expect(commandOf(pid ?? 0)).toContain("sleep");
  stranger.kill();
});

it("a daemon that freezes while it drains is woken by the command that stops it", async () => {
  const HOME = world.folder();
  const daemon = await world.daemon({ name: "drains", env: { HOME }, args: ["--drain-ms", "60000"] });
  const client = await daemon.client();
  const gate = world.folder();
  const held = { prompt: scriptTag([{ gateBefore: gate, text: "held" }]), cwd: world.folder() };
  const { sessionId } = await client.call("claude_code", held);
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  const socket = socketOf(HOME, "drains");
  const stopping = command(HOME, "stop", "drains", "--yes");
  await expect.poll(() => existsSync(socket)).toBe(false);
  daemon.signal("SIGSTOP");
  world.model.release(gate);
  expect(await stopping).toMatchObject({ status: 0, stdout: "1 daemon stopped.\n" });
  expect(commandOf(daemon.pid)).toBe("");
  await client.close();
});
