import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { RawLive } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

export const PARTS = 2_000;
const READS = 60;

export const burst = {
  name: "burst",
  about: "many messages at once: a text in small parts (includePartialMessages), and many tool calls in one answer",
  rows: [
    { row: `turn with a text in ${String(PARTS)} parts`, of: "parts", base: "raw live process: parts", unit: "ms" },
    { row: "the same: parts", of: "parts/s", base: "raw: parts/s", unit: "per s" },
    {
      row: `turn with ${String(READS)} tool calls in one answer`,
      of: "calls",
      base: "raw live process: calls",
      unit: "ms",
    },
    {
      row: "the same: events reported by waiting checks (until: event)",
      of: "events/s",
      base: "raw: messages/s",
      unit: "per s",
    },
  ],
  async run({ figures, progress, rounds, world }) {
    const cwd = world.folder();
    writeFileSync(join(cwd, "file.txt"), "one line\n");
    const server = await startServer(world);
    const sessions = {
      parts: await server.begin(prompt({ text: "hi" }), { advanced: { includePartialMessages: true } }),
    };
    sessions.calls = await server.begin(prompt({ text: "hi" }), { cwd });
    for (const id of Object.values(sessions)) await server.end(id);
    const live = { parts: new RawLive(world, { includePartialMessages: true }), calls: new RawLive(world, { cwd }) };
    for (const each of Object.values(live)) await each.turn(prompt({ text: "hi" }));
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      await rawTurn(live.parts, inParts(), figures, ["raw live process: parts", "raw: parts/s"]);
      await ourParts(server, sessions.parts, figures);
      await rawTurn(live.calls, inCalls(cwd), figures, ["raw live process: calls", "raw: messages/s"]);
      await ourCalls(server, sessions.calls, inCalls(cwd), figures);
    }
    for (const each of Object.values(live)) await each.close();
    await server.close();
  },
};

/** Returns a prompt whose answer is a text in `PARTS` parts. */
export function inParts() {
  return prompt({ text: Array.from({ length: PARTS }, (_, part) => `word ${String(part)} `) });
}

function inCalls(cwd) {
  const read = { name: "Read", input: { file_path: join(cwd, "file.txt") } };
  return prompt({ tools: Array.from({ length: READS }, () => read) }, { text: "done" });
}

async function rawTurn(live, script, figures, [time, rate]) {
  const began = performance.now();
  const messages = await live.turn(script);
  const ms = performance.now() - began;
  figures.note(time, ms);
  const isPart = ({ event, type }) => type === "stream_event" && event.type === "content_block_delta";
  const parts = messages.filter(isPart).length;
  figures.note(rate, (1000 * (parts > 0 ? parts : messages.length)) / ms);
}

async function ourParts(server, sessionId, figures) {
  const began = performance.now();
  await server.turn(sessionId, inParts());
  const ms = performance.now() - began;
  figures.note("parts", ms);
  figures.note("parts/s", (1000 * PARTS) / ms);
}

/** Polls the turn as often as a caller can. */
async function ourCalls(server, sessionId, script, figures) {
  const began = performance.now();
  const wait = { action: "poll", sessionId, until: "event", responseMode: "full", maxBytes: 262_144, waitMs: 45_000 };
  let { nextCursor: cursor } = await server.call("claude_code_reply", { sessionId, prompt: script });
  let events = 0;
  for (let status = "running"; status === "running";) {
    const answer = await server.call("claude_code_check", { ...wait, cursor });
    events += answer.events.length;
    ({ nextCursor: cursor, status } = answer);
  }
  const ms = performance.now() - began;
  figures.note("calls", ms);
  figures.note("events/s", (1000 * events) / ms);
}
