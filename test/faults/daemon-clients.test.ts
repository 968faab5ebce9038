import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";

import { PROTOCOL } from "../../src/daemon/wire.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { isFull } from "../kit/faults/figures.ts";
import { useWorld } from "../kit/world.ts";

/** Clients that burden their daemon: a deaf client, and more clients than file descriptors. */

const world = useWorld({ agent: "stand-in" });
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");

function kilobytesOf(pid: number): number {
  const [, kilobytes = ""] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${String(pid)}/status`, "utf8")) ?? [];
  return Number(kilobytes);
}

const Status = z.object({ daemons: z.array(z.looseObject({ pid: z.int(), proxies: z.int(), socket: z.string() })) });

function onlyDaemon(home: string) {
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  const { stdout } = spawnSync(process.execPath, [MAIN, "daemon", "status", "--json"], { env, encoding: "utf8" });
  const [daemon] = Status.parse(JSON.parse(stdout)).daemons;
  if (!daemon) throw new Error("no daemon runs");
  return daemon;
}

/** Connects and says hello as a proxy does; resolves with the socket and the daemon's hello. */
async function greet(path: string): Promise<{ socket: Socket; hello: string }> {
  const socket = connect(path);
  socket.on("error", () => undefined);
  const own = { cwd: "/", argv: ["--toolsets", "all"], environment: world.environment, commandLine: [] };
  socket.write(`${JSON.stringify({ protocol: PROTOCOL, purpose: "mcp", ...own })}\n`);
  const [hello] = (await once(socket, "data")) as [Buffer];
  return { socket, hello: hello.toString("utf8") };
}

const message = (id: number, method: string, params: object) =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;

/** Time limit of the test, ms: the daemon writes 650 answers of 50 kB before it cuts the client off. */
const DEAF_MS = isFull ? 600_000 : 120_000;

it(
  "a daemon's memory stays bounded under a client that reads nothing, and other clients are served",
  { timeout: DEAF_MS },
  async () => {
    const home = world.folder();
    const other = await world.shared({ args: ["--toolsets", "all"], env: { HOME: home } });
    const prompt = scriptTag([{ text: "served" }]);
    const isServed = async () => {
      const answer = await other.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
      expect(answer).toMatchObject({ result: { result: "served" } });
    };
    // Loads all code of the daemon into memory before the measurement.
    await isServed();
    const { pid, socket: path } = onlyDaemon(home);
    const { socket } = await greet(path);
    socket.pause();
    const initialize = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "deaf", version: "1" } };
    socket.write(message(1, "initialize", initialize));
    const before = kilobytesOf(pid);
    let most = before;
    const gone = new Promise((resolve) => socket.once("close", resolve));
    // An answer has about 50 kB. The daemon buffers 32 MB for a client before it cuts the client off
    // (test/unit/daemon-listener.test.ts).
    const calls = isFull ? 20_000 : 300;
    for (let id = 2; id < calls && !socket.destroyed; id++) {
      const isTaken = socket.write(message(id, "tools/list", {}));
      if (!isTaken) await Promise.race([new Promise((resolve) => socket.once("drain", resolve)), gone]);
      if (id % 100 !== 0) continue;
      const { sessions } = await other.call("claude_code_session", { action: "list" });
      expect(sessions).toHaveLength(1);
      most = Math.max(most, kilobytesOf(pid));
    }
    await isServed();
    most = Math.max(most, kilobytesOf(pid));
    expect(most - before).toBeLessThan(isFull ? 120_000 : 60_000);
    expect(socket.destroyed).toBe(isFull);
    socket.destroy();
    await other.close();
  },
);

it("with a hundred clients at 256 file descriptors, excess clients are refused with a reason, and sessions continue", async () => {
  const home = world.folder();
  const program = join(world.folder(), "limited.mjs");
  const shell = `["-c", 'ulimit -n 256; exec "$0" "$@"', process.execPath, ${JSON.stringify(MAIN)}, ...process.argv.slice(2)]`;
  const start = `spawn("/bin/sh", ${shell}, { stdio: "inherit" }).on("exit", (code) => process.exit(code ?? 1));`;
  writeFileSync(program, `import { spawn } from "node:child_process";\n${start}\n`);
  const env = { HOME: home };
  const first = await world.shared({ client: "legacy", env, main: program });
  const prompt = scriptTag([{ text: "held", gateBefore: "all are there" }]);
  const { sessionId } = await first.call("claude_code", { prompt, cwd: world.folder() });
  const { pid, socket: path } = onlyDaemon(home);
  const crowd = await Promise.all(Array.from({ length: 100 }, async () => greet(path)));
  const refused = crowd.filter(({ hello }) => hello.includes("refused"));
  // Two descriptors are kept for each client, enough for 112 clients: only later clients are too many.
  expect(refused).toEqual([]);
  const more = await Promise.all(Array.from({ length: 20 }, async () => greet(path)));
  const told = more.filter(({ hello }) => hello.includes("as many as its file descriptors allow"));
  expect(told).toHaveLength(9);

  // A refused client has a server of its own, which reports the reason.
  const late = await world.shared({ client: "legacy", env, main: program });
  const own = { prompt: scriptTag([{ text: "here" }]), cwd: world.folder(), waitMs: 40_000 };
  expect(await late.call("claude_code", own)).toMatchObject({ result: { result: "here" } });
  expect(late.stderr()).toContain("as many as its file descriptors allow");
  world.model.release("all are there");
  expect(await first.end(sessionId)).toMatchObject({ result: { result: "held", isError: false } });
  expect(await first.call("claude_code", own)).toMatchObject({ result: { result: "here" } });
  for (const { socket } of [...crowd, ...more]) socket.destroy();
  await expect.poll(() => onlyDaemon(home)).toMatchObject({ pid, proxies: 1 });
  await Promise.all([first.close(), late.close()]);
});
