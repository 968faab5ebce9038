import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";

import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { environmentOf, useWorld } from "../kit/world.ts";

/** A session that comes while its spare still starts gets the process of the spare, and no second process starts. */

const world = useWorld({ daemon: "never" });

const ok = scriptTag([{ text: "ok" }]);
/** Path of a FIFO: each line written to `gate` lets a spare go on with its start. */
let gate: string;
let args: string[];
let server: Server;

beforeAll(async () => {
  const folder = world.folder();
  gate = join(folder, "gate");
  execFileSync("mkfifo", [gate]);
  const claude = environmentOf("real")["CLAUDE_CODE_MCP_CLAUDE_PATH"] ?? bundledClaudes()[0];
  const path = join(folder, "claude");
  const wait = `case "$*" in *--await-claim*) read -r _ < '${gate}' ;; esac`;
  writeFileSync(path, `#!/bin/sh\n${wait}\nexec '${String(claude)}' "$@"\n`, { mode: 0o755 });
  args = ["--spares", "1", "--max-live", "20", "--claude-path", path];
  server = await world.server({ args });
  await server.end(await start(server));
});

async function start(client: Server): Promise<string> {
  return (await client.call("claude_code", { prompt: ok, cwd: world.folder() })).sessionId;
}

/** Claude Code processes, with `sessionId` of their start. */
function claudes() {
  return world.processes().flatMap(({ command, pid }) => {
    const sessionId = /--session-id[= ](\S+)/.exec(command)?.[1];
    return sessionId === undefined ? [] : [{ pid, sessionId, isStarting: command.startsWith("/bin/sh") }];
  });
}

/** Resolves with the spare that waits at `gate`. */
async function spareAtGate() {
  const found = () => claudes().filter(({ isStarting }) => isStarting);
  await expect.poll(found, { timeout: 30_000 }).toHaveLength(1);
  return found()[0]!;
}

const pidsOf = (id: string) => claudes().flatMap(({ pid, sessionId }) => (sessionId === id ? [pid] : []));

it("a starting spare becomes the process of the session that comes first, and of no other", async () => {
  const spare = await spareAtGate();
  const ids = await Promise.all([start(server), start(server)]);
  expect(ids.filter((id) => id === spare.sessionId)).toHaveLength(1);
  await writeFile(gate, "\n");
  for (const id of ids) {
    expect(await server.end(id)).toMatchObject({ result: { result: "ok", isError: false, numTurns: 1 } });
    expect(pidsOf(id)).toHaveLength(1);
  }
  expect(pidsOf(spare.sessionId)).toEqual([spare.pid]);
});

it("a starting spare ends with a session that is given up, and the session can go on", async () => {
  const { pid, sessionId } = await spareAtGate();
  expect(await start(server)).toBe(sessionId);
  await server.call("claude_code_session", { action: "interrupt", sessionId });
  expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
  await expect.poll(() => claudes().map((each) => each.pid)).not.toContain(pid);
  const next = await server.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
  expect(next).toMatchObject({ result: { result: "ok", isError: false } });
});

it("a starting spare that dies is replaced by an ordinary start, and the prompt is run once", async () => {
  const spare = await spareAtGate();
  const before = world.model.requests.length;
  const sessionId = await start(server);
  expect(sessionId).toBe(spare.sessionId);
  process.kill(spare.pid, "SIGKILL");
  expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", numTurns: 1 } });
  expect(pidsOf(sessionId)).toHaveLength(1);
  expect(pidsOf(sessionId)).not.toContain(spare.pid);
  expect(world.model.requests.slice(before)).toHaveLength(1);
});

it("a starting spare ends with its daemon, also if the daemon is killed, and the waiting session can go on", async () => {
  const daemon = await world.daemon({ name: "killed", args });
  const client = await daemon.client();
  await server.close();
  await client.end(await start(client));
  const { pid, sessionId } = await spareAtGate();
  expect(await start(client)).toBe(sessionId);
  await daemon.end("SIGKILL");
  const next = await world.daemon({ name: "killed", args });
  await expect.poll(() => claudes().map((each) => each.pid), { timeout: 20_000 }).not.toContain(pid);
  const again = await next.client();
  await again.end(sessionId);
  const later = await again.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
  expect(later).toMatchObject({ result: { result: "ok", isError: false } });
  expect(pidsOf(sessionId)).toHaveLength(1);
});
