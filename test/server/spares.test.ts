import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Sessions that begin in a process started in advance, indistinguishable from other sessions. */

const world = useWorld({ daemon: "never" });

const ok = scriptTag([{ text: "ok" }]);
const BASH = { allowedTools: ["Bash"] };
const echo = (name: string) => ({ tools: [{ name: "Bash", input: { command: `echo $${name} > env.txt` } }] });
const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] });

/** Claude Code processes, with `sessionId` of their start. `isSpare` stays true once a session has begun in a spare. */
function claudes(): { pid: number; sessionId: string; isSpare: boolean }[] {
  return world.processes().flatMap(({ command, pid }) => {
    const sessionId = /--session-id[= ](\S+)/.exec(command)?.[1];
    return sessionId === undefined ? [] : [{ pid, sessionId, isSpare: command.includes("--await-claim") }];
  });
}

/** Ids of all started sessions. A spare with an id in this set is in use. */
const startedSessions = new Set<string>();

function spares() {
  return claudes().filter(({ isSpare, sessionId }) => isSpare && !startedSessions.has(sessionId));
}

/** Session ids of the spares that are ready for input, from the log of `server`. */
function readySpares(server: Pick<Server, "stderr">): string[] {
  const lines = server
    .stderr()
    .split("\n")
    .filter((line) => line.includes("a spare is ready"));
  return lines.flatMap((line) => /"sessionId":"([^"]+)"/.exec(line)?.[1] ?? []);
}

/** Resolves with the spare of `server`, once ready. */
async function readySpare(server: Pick<Server, "stderr">) {
  const waiting = () => spares().filter(({ sessionId }) => readySpares(server).includes(sessionId));
  await expect.poll(waiting, { timeout: 30_000 }).toHaveLength(1);
  return waiting()[0]!;
}

/** Creates a folder with settings that a process reads at its start, so that a spare comes too late for them. */
function folderThatSparesRefuse(): string {
  const cwd = world.folder();
  mkdirSync(join(cwd, ".claude"));
  writeFileSync(join(cwd, ".claude", "settings.json"), JSON.stringify({ env: { FROM_PROJECT: "yes" } }));
  return cwd;
}

async function start(server: Server, prompt: string, args: object = {}) {
  const { sessionId } = await server.call("claude_code", { prompt, cwd: world.folder(), ...args });
  startedSessions.add(sessionId);
  return sessionId;
}

/** Starts a server and runs a session with `args`, for which the server then keeps a spare. */
async function startWarm(args: object = {}, flags: string[] = []) {
  const server = await world.server({ args: ["--spares", "1", ...flags] });
  await server.end(await start(server, ok, args));
  return server;
}

/** Links to the built program, which gives another command line. */
function linkToServer(): string {
  const path = join(world.folder(), "main.js");
  symlinkSync(join(import.meta.dirname, "../../dist/cli/main.js"), path);
  return path;
}

function pidOf(id: string): number | undefined {
  return claudes().find(({ sessionId }) => sessionId === id)?.pid;
}

/** Tests run in order: each leaves a spare for the next. */
describe("--spares", () => {
  let server: Server;
  /** Session that has begun in a spare. */
  let first: string;
  beforeAll(async () => {
    // Rules with a repeated entry must still match the spare.
    const rules = ["--deny-rules", "WebSearch,Bash(rm:*),WebSearch,Bash(rm:*)"];
    server = await startWarm(BASH, ["--max-live", "20", "--trust-dir", dirname(world.folder()), ...rules]);
  });
  // Closes sessions, because live processes use the capacity that a spare needs.
  afterEach(async () => {
    const done = claudes().filter(({ sessionId }) => startedSessions.has(sessionId) && sessionId !== first);
    for (const { sessionId } of done) await server.call("claude_code_session", { action: "close", sessionId });
  });

  it("a session begins in a spare in its own folder and mode, also if rules name an entry twice", async () => {
    const spare = await readySpare(server);
    const cwd = world.folder();
    const prompt = scriptTag([write(join(cwd, "made.txt")), { text: "ok" }]);
    const options = { cwd, permissionMode: "acceptEdits", advanced: { title: "A title" } };
    const sessionId = await start(server, prompt, { ...BASH, ...options });
    first = sessionId;
    expect(sessionId).toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", isError: false } });
    expect(existsSync(join(cwd, "made.txt"))).toBe(true);
    expect(pidOf(sessionId)).toBe(spare.pid);
    const [record] = (await server.call("claude_code_session", { action: "get", sessionId })).sessions;
    expect(record).toMatchObject({ reported: { permissionMode: "acceptEdits" } });
    // The session goes on and asks like any other session.
    const ask = scriptTag([write(join(cwd, "asked")), { text: "done" }]);
    await server.call("claude_code_session", { action: "set_permission_mode", sessionId, permissionMode: "default" });
    const { nextCursor } = await server.call("claude_code_reply", { sessionId, prompt: ask });
    const { actions } = await server.news(sessionId, nextCursor);
    const answer = { sessionId, action: "respond_permission", requestId: actions[0]?.requestId, decision: "allow" };
    const done = await server.call("claude_code_check", { ...answer, waitMs: 40_000, until: "end" });
    expect(done).toMatchObject({ result: { result: "done", sessionTotalTurns: 4 } });
    expect(existsSync(join(cwd, "asked"))).toBe(true);
  });

  it("a session that a spare refuses starts in the ordinary way, under the same id", async () => {
    const spare = await readySpare(server);
    const cwd = folderThatSparesRefuse();
    const sessionId = await start(server, scriptTag([echo("FROM_PROJECT"), { text: "ok" }]), { cwd, ...BASH });
    expect(sessionId).toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", isError: false, numTurns: 2 } });
    expect(readFileSync(join(cwd, "env.txt"), "utf8")).toBe("yes\n");
    expect(pidOf(sessionId)).not.toBe(spare.pid);
    const later = await server.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
    expect(later).toMatchObject({ result: { result: "ok", sessionTotalTurns: 3 } });
  });

  it("a dead spare is replaced by an ordinary start", async () => {
    const spare = await readySpare(server);
    process.kill(spare.pid, "SIGKILL");
    await expect.poll(() => spares()).toHaveLength(0);
    const sessionId = await start(server, ok, BASH);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", isError: false } });
  });

  it("a spare that does not answer is replaced by an ordinary start, and the prompt is run once", async () => {
    const spare = await readySpare(server);
    process.kill(spare.pid, "SIGSTOP");
    const before = world.model.requests.length;
    const sessionId = await start(server, ok, BASH);
    expect(sessionId).toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", numTurns: 1 } });
    expect(pidOf(sessionId)).not.toBe(spare.pid);
    expect(world.model.requests.slice(before)).toHaveLength(1);
  });

  it("a spare is given up while it is claimed, and the session can go on", async () => {
    const spare = await readySpare(server);
    process.kill(spare.pid, "SIGSTOP");
    const sessionId = await start(server, ok, BASH);
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
    expect(claudes().map(({ pid }) => pid)).not.toContain(spare.pid);
    const next = await server.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
    expect(next).toMatchObject({ result: { result: "ok", isError: false } });
  });

  it("a spare ends with its session if the session is given up before it begins", async () => {
    // The id is known in advance, so that an `interrupt` comes between the start of the turn and the start of its process.
    const { pid, sessionId } = await readySpare(server);
    const interrupt = async () => server.call("claude_code_session", { action: "interrupt", sessionId });
    const starting = start(server, ok, BASH).then(() => true);
    const tried = async () => interrupt().catch(() => undefined);
    while (!(await Promise.race([starting, tried().then(() => false)])));
    await interrupt();
    expect(await server.end(sessionId)).toMatchObject({ result: { errorSubtype: "interrupted" } });
    await expect.poll(() => claudes().map((each) => each.pid)).not.toContain(pid);
    const next = await server.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
    expect(next).toMatchObject({ result: { result: "ok", isError: false } });
  });

  it("a spare is not used after a change of your configuration: no session runs with an old one", async () => {
    const spare = await readySpare(server);
    const file = join(world.configFolder, "settings.json");
    writeFileSync(file, JSON.stringify({ env: { LATE: "yes" } }));
    const cwd = world.folder();
    const sessionId = await start(server, scriptTag([echo("LATE"), { text: "ok" }]), { cwd, ...BASH });
    expect(sessionId).not.toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok" } });
    expect(readFileSync(join(cwd, "env.txt"), "utf8")).toBe("yes\n");
    // Keeps the file: a spare begun with the file, in a quiet second of the turn, would not match the configuration without.
    await expect.poll(() => claudes().map(({ pid }) => pid)).not.toContain(spare.pid);
  });

  it("a spare serves only sessions with the same options, and outlives the start of a spare for others", async () => {
    const spare = await readySpare(server);
    const other = await start(server, ok, { model: "sonnet" });
    expect(other).not.toBe(spare.sessionId);
    expect(await server.end(other)).toMatchObject({ result: { result: "ok" } });
    await expect.poll(() => spares(), { timeout: 30_000 }).toHaveLength(2);
    const behind = await start(server, ok, BASH);
    expect(behind).toBe(spare.sessionId);
    expect(await server.end(behind)).toMatchObject({ result: { result: "ok" } });
    expect(pidOf(behind)).toBe(spare.pid);
  });

  it("spares end with their server, even if killed; a session goes on elsewhere, and --spares 0 keeps none", async () => {
    await expect.poll(() => spares(), { timeout: 30_000 }).toHaveLength(2);
    process.kill(server.pid, "SIGKILL");
    await server.gone;
    await expect.poll(() => world.processes()).toHaveLength(0);
    const none = await world.server({ args: ["--spares", "0"] });
    const again = await none.call("claude_code_reply", { sessionId: first, prompt: ok, waitMs: 40_000 });
    expect(again).toMatchObject({ result: { result: "ok", isError: false } });
    await none.end(await start(none, ok, BASH));
    expect(spares()).toEqual([]);
    await none.close();
  });
});

describe("a spare", () => {
  it("a spare is replaced when a client has a new command line; a shim forgets a spare that refuses its session", async () => {
    const daemon = await world.daemon({
      name: "behind",
      args: ["--spares", "1", "--trust-dir", dirname(world.folder())],
    });
    const client = await daemon.client();
    await client.end(await start(client, ok, BASH));
    const before = await readySpare(daemon);
    // Older spares do not know the command line of `other`, by which their sessions could start this server again.
    const other = await daemon.client({ main: linkToServer() });
    await other.call("claude_code_session", { action: "list" });
    await expect.poll(() => spares().map(({ pid }) => pid)).not.toContain(before.pid);
    const spare = await readySpare(daemon);
    const sessionId = await start(client, ok, { cwd: folderThatSparesRefuse(), ...BASH });
    expect(sessionId).toBe(spare.sessionId);
    expect(await client.end(sessionId)).toMatchObject({ result: { result: "ok", isError: false } });
    await client.close();
    await daemon.end("SIGTERM");
  });

  it("a spare makes room for a session that waits for a slot", async () => {
    const server = await startWarm({}, ["--max-live", "4"]);
    const spare = await readySpare(server);
    const gates = ["a", "b", "c"].map((name) => `place ${name} of ${world.configFolder}`);
    const ids = await Promise.all(
      gates.map(async (gateBefore) => start(server, scriptTag([{ text: "ok", gateBefore }]), { model: "sonnet" })),
    );
    await expect.poll(() => spares()).toHaveLength(0);
    expect(ids).not.toContain(spare.sessionId);
    for (const gate of gates) world.model.release(gate);
    for (const id of ids) expect(await server.end(id)).toMatchObject({ result: { result: "ok" } });
    await server.close();
  });

  it("an unused spare ends after --idle-process-ms", async () => {
    const server = await startWarm({}, ["--idle-process-ms", "3000"]);
    await expect.poll(() => spares()).toHaveLength(1);
    await expect.poll(() => spares()).toEqual([]);
    await server.close();
  });
});
