import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { inParts, PARTS } from "./burst.mjs";
import { daemonsIn, daemonStatus, withDaemons, withFreshState } from "./daemons.mjs";
import { processorTime, residentMb } from "./processes.mjs";
import { proxyProgram, startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
/** Sessions of one shim. Its memory is compared with the memory of a shim with one session. */
const SESSIONS = 7;
/** Pairs of turns for each kill. Single pairs differ by a quarter, and the bound is a twentieth. */
const TEXTS_PER_KILL = 4;
/** Kills per round of memory, which starts `SESSIONS` Claude Codes. */
const KILLS_PER_MEMORY = 10;

const OFF = "no shim";
const BARE = "node with net and child_process";

export const shim = {
  name: "shim",
  long: true,
  rounds: 50,
  about: "a daemon killed during a turn, text with and without a shim, memory of a shim",
  rows: [
    { row: "killed daemon: the client has the next event", of: "resumed", unit: "ms" },
    { row: "the same, the longest of all", of: "resumed, longest", unit: "ms" },
    { row: `turn with a text in ${String(PARTS)} parts`, of: "parts", base: `${OFF}: parts`, unit: "ms", atMost: 1.05 },
    {
      row: "the same: processor time of daemon and shim",
      of: "processor",
      base: `${OFF}: daemon`,
      unit: "ms",
      atMost: 1.5,
    },
    { row: "memory of a shim with a session", of: "memory", base: BARE, unit: "MB", atMost: 1.15 },
    { row: "the same, after texts in parts", of: "memory after texts", base: BARE, unit: "MB", atMost: 1.15 },
    { row: "memory of a shim, each further session", of: "growth", unit: "MB", atMostAlone: 1 },
  ],
  async run({ figures, progress, rounds, world }) {
    await withDaemons(world, async () => {
      const killed = await startKilled(world);
      for (let round = 1; round <= rounds; round++) {
        progress(`kill ${String(round)} of ${String(rounds)}`);
        await killed.kill(figures);
      }
      await killed.server.close();
    });
    figures.note("resumed, longest", Math.max(...figures.of("resumed")));
    await withFreshState(world, async (withShim) =>
      withFreshState(world, async (without) => compareTexts({ figures, progress, rounds }, withShim, without)),
    );
    const times = Math.ceil(rounds / KILLS_PER_MEMORY);
    for (let time = 1; time <= times; time++) {
      progress(`memory ${String(time)} of ${String(times)}`);
      await withFreshState(world, async (fresh) => measureMemory(fresh, figures), { maxLive: SESSIONS });
    }
  },
};

/** Starts a client with a session whose daemon is killed during turns. All turns run in one Claude Code. */
async function startKilled(world) {
  const cwd = world.folder();
  const file = join(cwd, "file.txt");
  writeFileSync(file, "one line\n");
  const server = await startServer(world, [], proxyProgram);
  const sessionId = await server.begin(ASK, { cwd });
  await server.end(sessionId);
  const claudes = world.claudes().length;
  return {
    server,
    /** Claude Code goes on at once, so that its next message waits for an owner. */
    async kill(figures) {
      const gate = randomUUID();
      const script = prompt({ tools: [{ name: "Read", input: { file_path: file } }] }, { gate, text: "on" });
      const { nextCursor } = await server.call("claude_code_reply", { sessionId, prompt: script });
      const cursor = await untilTold({ server, sessionId }, nextCursor, isToolResult);
      const [daemon] = await daemonsIn(world);
      const began = performance.now();
      process.kill(daemon, "SIGKILL");
      const opened = world.open({ entry: 1, gate, mark: gate });
      await untilTold({ server, sessionId }, cursor, isMessage);
      figures.note("resumed", performance.now() - began);
      await opened;
      await server.end(sessionId);
      if (world.claudes().length !== claudes) throw new Error("the turn did not end in the process in which it began");
    },
  };
}

/** Waits for a matching event, as a client does. Resolves to the cursor after the event. */
async function untilTold({ server, sessionId }, from, isMeant) {
  const wait = { action: "poll", sessionId, until: "event", responseMode: "full", maxBytes: 262_144, waitMs: 45_000 };
  for (let cursor = from; ;) {
    const answer = await server.call("claude_code_check", { ...wait, cursor }).catch(ifItsDaemonDied);
    if (!answer) continue;
    cursor = answer.nextCursor;
    if (answer.events.some(isMeant)) return cursor;
    if (answer.status !== "running") throw new Error(`the turn is over: ${JSON.stringify(answer).slice(0, 500)}`);
  }
}

function ifItsDaemonDied(error) {
  if (!String(error).includes("has ended")) throw error;
}

function isMessage({ data }) {
  return data.type === "assistant";
}

function isToolResult({ data }) {
  return data.type === "user" && JSON.stringify(data).includes('"tool_result"');
}

/** Measures both sides in turn, each in a session whose Claude Code lives. */
async function compareTexts({ figures, progress, rounds }, withShim, without) {
  const sides = [
    await startTexts(withShim, true, { time: "parts", processor: "processor" }),
    await startTexts(without, false, { time: `${OFF}: parts`, processor: `${OFF}: daemon` }),
  ];
  const turns = rounds * TEXTS_PER_KILL;
  for (let turn = 1; turn <= turns; turn++) {
    progress(`texts ${String(turn)} of ${String(turns)}`);
    for (const side of sides) await side.turn(figures);
  }
  for (const pid of sides[0].shims) figures.note("memory after texts", residentMb(pid));
  for (const { server } of sides) await server.close();
}

async function startTexts(world, hasShim, names) {
  const server = await startServer({ ...world, constants: { shim: hasShim } }, [], proxyProgram);
  const sessionId = await server.begin(ASK, { advanced: { includePartialMessages: true } });
  await server.end(sessionId);
  const [{ pid, shim: about }] = await daemonStatus(world);
  const shims = about.shims.map((each) => each.pid);
  if (shims.length !== (hasShim ? 1 : 0)) throw new Error(`shim ${String(hasShim)}: ${JSON.stringify(about)}`);
  return {
    server,
    shims,
    async turn(figures) {
      const before = processorMs([pid, ...shims]);
      await figures.timed(names.time, () => server.turn(sessionId, inParts()));
      const after = processorMs([pid, ...shims]);
      if (before !== undefined) figures.note(names.processor, after - before);
    },
  };
}

/** Returns the processor time of all processes, ms. `undefined` if the system does not report processor time. */
function processorMs(pids) {
  const times = pids.map((pid) => processorTime(pid)?.own);
  return times.includes(undefined) ? undefined : 1_000 * times.reduce((sum, seconds) => sum + seconds, 0);
}

async function measureMemory(world, figures) {
  const server = await startServer(world, [], proxyProgram);
  const begin = async () => server.end(await server.begin(ASK));
  await begin();
  const [{ shim: about }] = await daemonStatus(world);
  const [{ pid }] = about.shims;
  const one = residentMb(pid);
  figures.note("memory", one);
  figures.note(BARE, await memoryOfBareNode());
  for (let session = 1; session < SESSIONS; session++) await begin();
  if (one !== undefined) figures.note("growth", (residentMb(pid) - one) / (SESSIONS - 1));
  await server.close();
}

async function memoryOfBareNode() {
  const program = 'require("net"); require("child_process"); process.stdin.resume(); console.log("ready")';
  const child = spawn(process.execPath, ["-e", program], { env: {}, stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const memory = residentMb(child.pid);
  child.stdin.end();
  await once(child, "exit");
  return memory;
}
