import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { half } from "../kit/runner/amount.ts";
import { homeOf, killDaemons, persistently, wholeLog } from "../kit/faults/shims.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { preloading } from "../kit/servers/preload.ts";
import { useWorld, type World } from "../kit/world.ts";

/**
 * Kills the daemon before Claude Code runs: while a session waits for a slot, and at exact points of the start of a new and of
 * a resumed session. Each turn must run once. Resumed conversations need the real Claude Code.
 */

const standIn = useWorld({ agent: "stand-in" });
const real = useWorld();
// Closed after each test, because every daemon on a store is woken by writes of the others.
afterEach(async () => Promise.all([standIn, real].map(async (each) => each.closeServers())));
const KILLER = join(import.meta.dirname, "../kit/faults/kill-daemon.mjs");

/** Returns a prompt whose turn appends `name` to `file`. */
const appending = (name: string, file: string) =>
  scriptTag([
    { tools: [{ name: "Bash", input: { command: `echo ${name} >> ${file}` } }] },
    { text: `${name} is done` },
  ]);

const read = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : []);

/** Expects that each prompt has run once, in order, in `processes` processes. */
async function expectWhole(sessionId: string, { file, names, processes, world = standIn }: Expected): Promise<void> {
  expect(read(file)).toEqual(names);
  const log = await wholeLog(homeOf(world), sessionId);
  const count = (name: string) => log.filter(({ type }) => type === name).length;
  const counts = ["turn.started", "turn.ended", "process.started"].map((name) => count(name));
  expect(counts).toEqual([names.length, names.length, processes]);
  const ends = log.filter(({ type }) => type === "turn.ended").map(({ event }) => event);
  expect(ends.filter((event) => !event.includes('"outcome":"done"'))).toEqual([]);
}

interface Expected {
  readonly file: string;
  readonly names: readonly string[];
  readonly processes: number;
  readonly world?: World;
}

it(
  "sessions waiting for a slot keep waiting, with their queued prompts, at the next daemon",
  { timeout: 60_000 },
  async () => {
    const client = await standIn.shared({ settings: { maxLive: 1 } });
    const folder = standIn.folder();
    const [gate, file] = [join(folder, "gate"), join(folder, "ran.txt")];
    const command = `echo held >> ${file}; until [ -e ${gate} ]; do sleep 0.05; done`;
    const holding = scriptTag([{ tools: [{ name: "Bash", input: { command } }] }, { text: "let go" }]);
    const start = async (prompt: string) =>
      (await client.call("claude_code", { prompt, cwd: folder, allowedTools: ["Bash"] })).sessionId;
    const holder = await start(holding);
    await expect.poll(() => read(file), { timeout: 20_000 }).toEqual(["held"]);
    const files = ["one", "two"].map((name) => join(folder, name));
    const waiting = await Promise.all(files.map(async (each) => start(appending("first", each))));
    for (const [at, sessionId] of waiting.entries()) {
      const prompt = appending("second", files[at]!);
      await client.call("claude_code_reply", { sessionId, prompt, whenBusy: "queue", waitMs: 0 });
      await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 10_000, until: "event" });
    }
    for (let n = 0; n < 2; n += 1) {
      await killDaemons(standIn);
      await persistently(async () => client.call("claude_code_session", { action: "list" }));
    }
    const { sessions } = await client.call("claude_code_session", { action: "list" });
    const shown = waiting.map((id) => sessions.find(({ sessionId }) => sessionId === id));
    expect(shown).toMatchObject(waiting.map(() => ({ status: "running", waiting: { kind: "slot" } })));
    writeFileSync(gate, "");
    for (const sessionId of [holder, ...waiting]) await waitForRest(client, sessionId);
    await expectWhole(holder, { file, names: ["held"], processes: 1 });
    for (const [at, sessionId] of waiting.entries()) {
      await expectWhole(sessionId, { file: files[at]!, names: ["first", "second"], processes: 1 });
    }
    await client.close();
  },
);

it(
  "a turn waiting for a slot is lost without a client of its payer, and the queue runs once such a client releases it",
  { timeout: 60_000 },
  async () => {
    const settings = { maxLive: 1 };
    const client = await standIn.shared({ settings });
    const folder = standIn.folder();
    const [gate, held, file] = ["gate", "held", "ran.txt"].map((name) => join(folder, name));
    const loop = { command: `touch ${held!}; until [ -e ${gate!} ]; do sleep 0.05; done` };
    const start = async (prompt: string) =>
      (await client.call("claude_code", { prompt, cwd: folder, allowedTools: ["Bash"] })).sessionId;
    await start(scriptTag([{ tools: [{ name: "Bash", input: loop }] }, { text: "let go" }]));
    await expect.poll(() => existsSync(held!), { timeout: 20_000 }).toBe(true);
    const sessionId = await start(appending("first", file!));
    await client.call("claude_code_reply", {
      sessionId,
      prompt: appending("second", file!),
      whenBusy: "queue",
      waitMs: 0,
    });
    await client.close();
    await killDaemons(standIn);
    const other = await standIn.shared({ settings, env: { ANTHROPIC_AUTH_TOKEN: "another way to pay" } });
    const lost = await other.end(sessionId);
    expect(JSON.stringify(lost)).toContain("The environment of its client is gone. Reply to the session to go on.");
    const release = { action: "release_queue", sessionId };
    expect(await other.refusal("claude_code_session", release)).toMatchObject({ code: "PERMISSION_DENIED" });
    writeFileSync(gate!, "");
    const again = await standIn.shared({ settings });
    await again.call("claude_code_session", release);
    await again.end(sessionId);
    expect(read(file!)).toEqual(["second"]);
  },
);

it(
  "a daemon that gets SIGTERM during a takeover ends its sessions, and is not started again",
  { timeout: 60_000 },
  async () => {
    const cwd = standIn.folder();
    const [file, mark] = [join(cwd, "ran.txt"), join(cwd, "asked")];
    const points = { KILL_MARK: mark, KILL_POINTS: "before attach", KILL_WAY: "SIGTERM" };
    const settings = { drainMs: 0 };
    const client = await standIn.shared({ settings, node: [preloading(KILLER, points)] });
    const command = `echo held >> ${file}; until [ -e ${join(cwd, "never")} ]; do sleep 0.05; done`;
    const prompt = scriptTag([{ tools: [{ name: "Bash", input: { command } }] }]);
    const { sessionId } = await client.call("claude_code", { prompt, cwd, allowedTools: ["Bash"] });
    await expect.poll(() => read(file), { timeout: 20_000 }).toEqual(["held"]);
    await client.close();
    await killDaemons(standIn);
    // The shim has started the next daemon, which gets the signal.
    await expect.poll(() => read(mark), { timeout: 20_000 }).toEqual(["x"]);
    await expect.poll(() => [...standIn.processes(), ...standIn.daemons()], { timeout: 20_000 }).toEqual([]);
    const log = await wholeLog(homeOf(standIn), sessionId);
    const ends = log.filter(({ type }) => type === "turn.ended").map(({ event }) => event);
    expect(ends).toEqual([expect.stringContaining('"outcome":"interrupted"')]);
  },
);

/** Waits until nothing of the session runs or is queued. */
async function waitForRest(client: Server, sessionId: string): Promise<void> {
  const poll = { action: "poll", sessionId, waitMs: 10_000, until: "end" };
  while ((await persistently(async () => client.call("claude_code_check", poll))).status === "running");
}

/**
 * Starts a session at a daemon that dies at the first of `points`; the next daemon dies at the second (`kill-daemon.mjs`).
 * Returns the session as found afterwards.
 */
async function startAtKill(world: World, points: string, more: Readonly<Record<string, string>> = {}) {
  const cwd = world.folder();
  const [file, mark] = [join(cwd, "ran.txt"), join(cwd, "killed")];
  const node = [preloading(KILLER, { KILL_MARK: mark, KILL_POINTS: points, ...more })];
  const client = await world.shared({ node, args: ["--idle-process-ms", "1000"] });
  const first = { prompt: appending("first", file), cwd, allowedTools: ["Bash"] };
  const begun = await client.call("claude_code", first).catch((error: unknown) => {
    if (!String(error).includes("has ended")) throw error;
  });
  const { sessions } = await persistently(async () => client.call("claude_code_session", { action: "list" }));
  const { sessionId } = begun ?? sessions[0]!;
  const reply = async (name: string) =>
    persistently(async () =>
      client.call("claude_code_reply", {
        sessionId,
        prompt: appending(name, file),
        whenBusy: "queue",
        idempotencyKey: name,
        waitMs: 0,
      }),
    );
  return { client, file, mark, reply, sessionId };
}

const POINTS = ["before start", "after start", "before record", "before prompt"];

it.each(half(POINTS))(
  "a queued prompt runs after the first when two daemons are killed during the first: %s",
  { timeout: 60_000 },
  async (point) => {
    const { client, file, mark, reply, sessionId } = await startAtKill(standIn, `${point},${point}`);
    await reply("second");
    await waitForRest(client, sessionId);
    expect(readFileSync(mark, "utf8")).toMatch(/^xx?$/);
    await expectWhole(sessionId, { file, names: ["first", "second"], processes: 1 });
    await client.close();
  },
);

it.each(half(POINTS.toReversed()))(
  "a session resumes in a new process when the daemon is killed during its start: %s",
  { timeout: 60_000 },
  async (point) => {
    const { client, file, mark, reply, sessionId } = await startAtKill(real, point, { KILL_SKIP: "1" });
    await waitForRest(client, sessionId);
    const itsProcesses = () => real.processes().filter(({ command }) => command.includes(sessionId));
    await expect.poll(itsProcesses, { timeout: 20_000 }).toEqual([]);
    expect(existsSync(mark)).toBe(false);
    await reply("second");
    await waitForRest(client, sessionId);
    expect(readFileSync(mark, "utf8")).toBe("x");
    await expectWhole(sessionId, { file, names: ["first", "second"], processes: 2, world: real });
    // The new process has resumed the conversation.
    expect(real.transcript(sessionId)).toContain("first is done");
    await client.close();
  },
);
