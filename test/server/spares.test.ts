import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

/** A session that begins in a process that was started ahead of it, and that nobody can tell from one that was not. */

const world = useWorld();
afterEach(async () => world.closeServers());

const ok = scriptTag([{ text: "ok" }]);
const BASH = { allowedTools: ["Bash"] };
const WITH_SPARES = ["--spares", "1"];

/** Claude Codes with the session that they were started for. */
function claudes(): { pid: number; sessionId: string; isSpare: boolean }[] {
  return world.processes().flatMap(({ command, pid }) => {
    const sessionId = /--session-id[= ](\S+)/.exec(command)?.[1];
    return sessionId === undefined ? [] : [{ pid, sessionId, isSpare: command.includes("--await-claim") }];
  });
}

function spares() {
  return claudes().filter(({ isSpare }) => isSpare);
}

/** One that has come up: it reads what comes next. */
async function parked(server: Server) {
  await expect.poll(() => server.stderr()).toContain("a spare waits");
  const [spare] = spares();
  if (!spare) throw new Error("there is none");
  return spare;
}

async function start(server: Server, prompt: string, args: object = {}) {
  return (await server.call("claude_code", { prompt, cwd: world.folder(), ...args })).sessionId;
}

/** A server that has had a session with these options, and the spare that it has kept since. */
async function warm(args: object = {}, more: { args?: string[]; env?: Record<string, string> } = {}) {
  const server = await world.server({ ...more, args: [...WITH_SPARES, ...(more.args ?? [])] });
  const first = await start(server, ok, args);
  await server.end(first);
  return { server, first, spare: await parked(server) };
}

/** The process that the session has. */
function pidOf(id: string): number | undefined {
  return claudes().find(({ sessionId }) => sessionId === id)?.pid;
}

describe("--spares", () => {
  it("has the next session begin in a process that was started before, in its own folder and mode", async () => {
    const { server, spare } = await warm();
    const cwd = world.folder();
    const file = join(cwd, "made.txt");
    const prompt = scriptTag([
      { tools: [{ name: "Write", input: { file_path: file, content: "x" } }] },
      { text: "ok" },
    ]);
    const sessionId = await start(server, prompt, {
      cwd,
      permissionMode: "acceptEdits",
      advanced: { title: "A title" },
    });
    expect(sessionId).toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", isError: false } });
    expect(existsSync(file)).toBe(true);
    expect(pidOf(sessionId)).toBe(spare.pid);
    const [record] = (await server.call("claude_code_session", { action: "get", sessionId })).sessions;
    expect(record).toMatchObject({ reported: { permissionMode: "acceptEdits" } });
    // It goes on, is asked, and outlives its process like any other.
    const ask = scriptTag([{ tools: [{ name: "Bash", input: { command: "touch asked" } }] }, { text: "done" }]);
    await server.call("claude_code_session", { action: "set_permission_mode", sessionId, permissionMode: "default" });
    const { nextCursor } = await server.call("claude_code_reply", { sessionId, prompt: ask });
    const asked = await server.news(sessionId, nextCursor);
    const answer = {
      sessionId,
      action: "respond_permission",
      requestId: asked.actions[0]?.requestId,
      decision: "allow",
    };
    const done = await server.call("claude_code_check", { ...answer, waitMs: 40_000, until: "end" });
    expect(done).toMatchObject({ result: { result: "done", sessionTotalTurns: 4 } });
    expect(existsSync(join(cwd, "asked"))).toBe(true);
    await server.close();
    const later = await world.server();
    const again = await later.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
    expect(again).toMatchObject({ result: { result: "ok", isError: false } });
  });

  it("is for sessions with the same options only; each has a spare of the last", async () => {
    const { server, spare } = await warm();
    const other = await start(server, ok, { model: "sonnet" });
    expect(other).not.toBe(spare.sessionId);
    expect(await server.end(other)).toMatchObject({ result: { result: "ok" } });
    await expect.poll(() => spares().filter(({ pid }) => pid !== spare.pid)).toHaveLength(1);
    expect(spares().map(({ pid }) => pid)).not.toContain(spare.pid);
  });

  it("fits the next session also where the operator's rules name one thing twice", async () => {
    const { server, spare } = await warm({}, { args: ["--deny-rules", "WebSearch,Bash(rm:*),WebSearch,Bash(rm:*)"] });
    const sessionId = await start(server, ok);
    expect(sessionId).toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok" } });
    expect(pidOf(sessionId)).toBe(spare.pid);
  });

  it("starts what it refuses in the ordinary way, under the same id", async () => {
    const cwd = world.folder();
    mkdirSync(join(cwd, ".claude"));
    // What a process reads while it starts, a spare can no longer take from a folder.
    writeFileSync(join(cwd, ".claude", "settings.json"), JSON.stringify({ env: { FROM_PROJECT: "yes" } }));
    const { server, spare } = await warm(BASH, { args: ["--trust-dir", dirname(cwd)] });
    const run = { tools: [{ name: "Bash", input: { command: "echo $FROM_PROJECT > env.txt" } }] };
    const sessionId = await start(server, scriptTag([run, { text: "ok" }]), { cwd, ...BASH });
    expect(sessionId).toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", isError: false, numTurns: 2 } });
    expect(readFileSync(join(cwd, "env.txt"), "utf8")).toBe("yes\n");
    expect(pidOf(sessionId)).not.toBe(spare.pid);
    const later = await server.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
    expect(later).toMatchObject({ result: { result: "ok", sessionTotalTurns: 3 } });
  });

  it("is replaced by an ordinary start when it has died", async () => {
    const { server, spare } = await warm();
    process.kill(spare.pid, "SIGKILL");
    await expect.poll(() => spares()).toHaveLength(0);
    const sessionId = await start(server, ok);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", isError: false } });
  });

  it("is replaced by an ordinary start when it does not answer, and the prompt is run once", async () => {
    const { server, spare } = await warm();
    process.kill(spare.pid, "SIGSTOP");
    const before = world.model.requests.length;
    const sessionId = await start(server, ok);
    expect(sessionId).toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok", numTurns: 1 } });
    expect(pidOf(sessionId)).not.toBe(spare.pid);
    expect(world.model.requests.slice(before)).toHaveLength(1);
  });

  it("can be given up while it is claimed", async () => {
    const { server, spare } = await warm();
    process.kill(spare.pid, "SIGSTOP");
    const sessionId = await start(server, ok);
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    expect(await server.end(sessionId)).toMatchObject({ status: "idle", result: { errorSubtype: "interrupted" } });
    expect(claudes().map(({ pid }) => pid)).not.toContain(spare.pid);
    const next = await server.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
    expect(next).toMatchObject({ result: { result: "ok", isError: false } });
  });

  it("ends with a session that is given up before it begins", async () => {
    const { server, spare } = await warm();
    // Its id is known beforehand: one of these comes when there is a turn, and no process for it yet.
    const { sessionId } = spare;
    const interrupt = async () => server.call("claude_code_session", { action: "interrupt", sessionId });
    const starting = start(server, ok).then(() => true);
    const tried = async () => interrupt().catch(() => undefined);
    while (!(await Promise.race([starting, tried().then(() => false)])));
    await interrupt();
    expect(await server.end(sessionId)).toMatchObject({ result: { errorSubtype: "interrupted" } });
    await expect.poll(() => claudes().map(({ pid }) => pid)).not.toContain(spare.pid);
  });

  it("is not used once your configuration has changed: no session runs with an old one", async () => {
    const { server, spare } = await warm(BASH);
    const file = join(world.configFolder, "settings.json");
    writeFileSync(file, JSON.stringify({ env: { LATE: "yes" } }));
    const cwd = world.folder();
    const run = { tools: [{ name: "Bash", input: { command: "echo $LATE > env.txt" } }] };
    const sessionId = await start(server, scriptTag([run, { text: "ok" }]), { cwd, ...BASH });
    expect(sessionId).not.toBe(spare.sessionId);
    expect(await server.end(sessionId)).toMatchObject({ result: { result: "ok" } });
    expect(readFileSync(join(cwd, "env.txt"), "utf8")).toBe("yes\n");
    rmSync(file);
  });

  it("ends with its server, however that ends, and leaves nothing behind", async () => {
    const { server } = await warm();
    process.kill(server.pid, "SIGKILL");
    await server.gone;
    await expect.poll(() => world.processes()).toHaveLength(0);
  });

  it("makes room for a session that waits for a place", async () => {
    const { server, spare } = await warm({}, { args: ["--max-live", "4"] });
    const gates = ["a", "b", "c", "d"].map((name) => `place ${name} ${String(Date.now())}`);
    const ids = await Promise.all(
      gates.map(async (gateBefore) => start(server, scriptTag([{ text: "ok", gateBefore }]), { model: "sonnet" })),
    );
    await expect.poll(() => spares()).toHaveLength(0);
    expect(ids).not.toContain(spare.sessionId);
    for (const gate of gates) world.model.release(gate);
    for (const id of ids) expect(await server.end(id)).toMatchObject({ result: { result: "ok" } });
  });

  it("ends when nobody has taken it for as long as a process may idle", async () => {
    const { spare } = await warm({}, { args: ["--idle-process-ms", "3000"] });
    await expect.poll(() => claudes().map(({ pid }) => pid)).not.toContain(spare.pid);
  });

  it("is none when --spares is 0", async () => {
    const server = await world.server({ args: ["--spares", "0"] });
    for (const _ of [1, 2]) await server.end(await start(server, ok));
    expect(spares()).toEqual([]);
  });
});
