import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { rolldown } from "rolldown";

import { lightValidator } from "../scripts/light-validator.mjs";
import { withDaemons, withFreshState } from "./daemons.mjs";
import { sharedNow } from "./observer.mjs";
import { residentMb } from "./processes.mjs";
import { rawInFreshNode, rawQuery } from "./raw.mjs";
import { clientOf, proxyProgram, serverProgram, startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
/**
 * Time for a spare process to come up, ms: the quiet second before its start, and about as long as any start of Claude Code.
 */
const SPARE_MS = 3_000;
/** Later turns in a round, and texts of one turn. */
const [TURNS, TEXTS] = [8, 8];

/** Flags of servers with live sessions. */
const TALKING = ["--toolsets", "agent,chat"];

const SMALLEST = "the smallest server of the MCP SDK";
const RAW = "raw: node, import of the SDK, query() to result";
const OFF = "--daemon off";

export const daemon = {
  name: "daemon",
  rounds: 15,
  about: "a client of a running daemon, and a client that starts a daemon, against raw query() and --daemon off",
  rows: [
    row("initialize, with a daemon", "initialize", `${SMALLEST}: initialize`, 0.55),
    row("initialize, no daemon yet", "none: initialize", `${SMALLEST}: initialize`, 0.55),
    { ...row("memory of the proxy", "memory", `${SMALLEST}: memory`, 0.8), unit: "MB" },
    row("first call of a new client, spare parked", "warm: result", RAW, 0.55),
    row("first call of a new client, no spare", "cold: result", RAW, 1.1),
    row("no daemon yet: first result", "none: result", `${OFF}: first result`, 1.25),
    row("later turn", "turn", `${OFF}: later turn`, 1.1),
    { row: "a text of Claude reaches the client", of: "text", base: `${OFF}: text`, unit: "ms", atMostMore: 3 },
  ],
  async run({ figures, progress, rounds, world }) {
    // Warms up: the first start after an installation reads the program from the disk.
    await rawQuery(world, ASK);
    const smallest = await bundledSmallestServer(world);
    const inDaemons = async (withSpare) => {
      const sides = [await startTalking(world, proxyProgram, ""), await startTalking(world, serverProgram, `${OFF}: `)];
      // Starts the daemon that has a spare.
      await callFirst(withSpare, proxyProgram(withSpare));
      for (let round = 1; round <= rounds; round++) {
        progress(`round ${String(round)} of ${String(rounds)}`);
        await sleep(SPARE_MS);
        await initialize(clientOf(process.execPath, [smallest], world.environment), figures, `${SMALLEST}: `);
        await initialize(proxyProgram(withSpare), figures, "");
        figures.note("warm: result", (await callFirst(withSpare, proxyProgram(withSpare))).resultMs);
        await sleep(SPARE_MS);
        const { resultMs, startMs } = await rawInFreshNode(world, ASK);
        figures.note(RAW, startMs + resultMs);
        figures.note("cold: result", (await callFirst(world, proxyProgram(world, TALKING))).resultMs);
        // Waits for the processes of the call above to end, so that the machine is as quiet as for the smallest server.
        await sleep(SPARE_MS);
        await callWithoutDaemon(world, figures);
        for (let turn = 0; turn < TURNS; turn++) for (const side of sides) await side.turn(figures);
        for (const side of sides) await side.hearTexts(figures);
      }
      for (const { server } of sides) await server.close();
    };
    await withDaemons(world, async () => withFreshState(world, inDaemons, { spares: 1 }));
  },
};

function row(name, of, base, atMost) {
  return { row: name, of, base, unit: "ms", atMost };
}

/** Bundles the smallest server into one file, as the build bundles the real server. Returns the path. */
async function bundledSmallestServer(world) {
  const file = join(world.home, "smallest.mjs");
  const input = fileURLToPath(new URL("./smallest-server.mjs", import.meta.url));
  const bundle = await rolldown({ input, platform: "node", plugins: [lightValidator] });
  await bundle.write({ file, comments: { legal: true, annotation: false, jsdoc: false } });
  await bundle.close();
  return file;
}

async function initialize(program, figures, prefix) {
  await figures.timed(`${prefix}initialize`, program.connect);
  figures.note(`${prefix}memory`, residentMb(program.pid()));
  await program.client.close();
}

/**
 * Runs a client from its start to its end. Returns the times from the start to the answer of `initialize` and to the result of
 * the first call, ms.
 */
async function callFirst(world, program) {
  const cwd = world.folder();
  const began = performance.now();
  await program.connect();
  const initializeMs = performance.now() - began;
  const answer = await program.call("claude_code", { prompt: ASK, cwd, waitMs: 45_000 });
  const resultMs = performance.now() - began;
  const { result, sessionId } = answer.structuredContent;
  if (result?.isError !== false) throw new Error(`no result: ${JSON.stringify(answer.structuredContent)}`);
  // `cancel` ends the process, so that no other Claude Code uses the processor during the next start.
  await program.call("claude_code_session", { action: "cancel", sessionId });
  await program.client.close();
  return { initializeMs, resultMs };
}

/** Runs each client in a state folder of its own. The client without a daemon (`--daemon off`) also creates a store. */
async function callWithoutDaemon(world, figures) {
  const first = (programOf) => withFreshState(world, async (fresh) => callFirst(fresh, programOf(fresh)));
  const none = await first(proxyProgram);
  figures.note("none: initialize", none.initializeMs);
  figures.note("none: result", none.resultMs);
  const off = await first(serverProgram);
  figures.note(`${OFF}: first result`, off.resultMs);
}

/** Starts a client with a session and a conversation whose processes live. */
async function startTalking(world, programOf, prefix) {
  const server = await startServer(world, TALKING, programOf);
  const sessionId = await server.begin(ASK);
  await server.end(sessionId);
  const cwd = world.folder();
  writeFileSync(join(cwd, "file.txt"), "one line\n");
  const { sessionId: chat } = await server.call("claude_session_create", { cwd });
  // oxlint-disable-next-line typescript/no-deprecated -- how a client of an earlier revision asks for logs
  await server.client.setLoggingLevel("info");
  return {
    server,
    turn: (figures) => figures.timed(prefix === "" ? "turn" : `${prefix}later turn`, () => server.turn(sessionId, ASK)),
    async hearTexts(figures) {
      for (const ms of await delaysOfTexts(world, server, { chat, cwd })) figures.note(`${prefix}text`, ms);
    },
  };
}

/** Returns the delay of each text of a turn, from the start of sending by the model until receipt by the client, ms. */
async function delaysOfTexts(world, server, { chat, cwd }) {
  const mark = randomUUID();
  const texts = Array.from({ length: TEXTS }, (_, entry) => `${mark}-${String(entry)}`);
  let hear = () => undefined;
  server.client.setNotificationHandler("notifications/message", ({ params }) => hear(params.data, sharedNow()));
  const heard = (text) => new Promise((resolve) => (hear = (data, at) => data === text && resolve(at)));
  const tools = [{ name: "Read", input: { file_path: join(cwd, "file.txt") } }];
  const script = prompt(...texts.map((text) => ({ gate: text, text, tools })), { text: "done" });
  const reply = server.call("claude_chat_query", { sessionId: chat, prompt: `${mark} ${script}` });
  const delays = [];
  for (const [entry, text] of texts.entries()) {
    const heardAt = heard(text);
    const sentAt = await world.open({ entry, gate: text, mark });
    delays.push((await heardAt) - sentAt);
  }
  await reply;
  return delays;
}
