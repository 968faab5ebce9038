import { join } from "node:path";

import { observe, sharedNow } from "./observer.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

/** Delay of the model before each answer, ms: time for a waiting check to settle down. */
const PAUSE_MS = 150;
const STEPS = 6;

const BASE = "a check that does not wait";
const KINDS = [
  ["message", "Claude Code says something (until: event)"],
  ["ended", "the turn ends (until: event)"],
  ["asked", "a permission is requested (until: news)"],
];

export const waiting = {
  name: "waiting",
  about: "from an event to the answer of the waiting check, in the owner's server and in another server",
  rows: KINDS.flatMap(([kind, title]) =>
    ["own", "foreign"].flatMap((whose) => {
      const row = `${whose} session: ${title}`;
      // Without a bound, because the time includes the commit.
      const decided = { row: `${row}, since it was decided`, of: `${whose} ${kind}, decided`, unit: "ms" };
      return [{ row, of: `${whose} ${kind}`, base: BASE, unit: "ms", atMostAlone: 5 }, decided];
    }),
  ),
  async run({ figures, progress, rounds, world }) {
    const store = join(world.home, "store.db");
    const owner = await startServer(world, ["--store", store]);
    const other = await startServer(world, ["--store", store]);
    const talk = await owner.begin(prompt({ text: "hi" }));
    const ask = await owner.begin(prompt({ text: "hi" }));
    for (const id of [talk, ask]) await owner.end(id);
    const observer = await observe(store);
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      for (const [whose, watcher] of Object.entries({ own: owner, foreign: other })) {
        const note = async (kind, { at, decidedMs, event, sessionId }) => {
          const durable = await observer.durableSince(sessionId, event.id);
          figures.note(`${whose} ${kind}`, at - durable);
          figures.note(`${whose} ${kind}, decided`, decidedMs);
        };
        await hear(owner, watcher, talk, note);
        await beAsked(owner, watcher, ask, note);
        await figures.timed(BASE, () =>
          watcher.call("claude_code_check", { action: "poll", sessionId: talk, cursor: 1, maxEvents: 1, waitMs: 0 }),
        );
      }
    }
    await observer.close();
    await other.close();
    await owner.close();
  },
};

/** Starts a turn of `STEPS` steps, each of which runs the command. */
async function begin(owner, sessionId, command) {
  const step = { delayMs: PAUSE_MS, tools: [{ name: "Bash", input: { command, description: "Next to nothing" } }] };
  const script = prompt(...Array.from({ length: STEPS }, () => step), { delayMs: PAUSE_MS, text: "done" });
  return (await owner.call("claude_code_reply", { sessionId, prompt: script })).nextCursor;
}

async function hear(owner, watcher, sessionId, note) {
  let cursor = await begin(owner, sessionId, "true");
  for (let status = "running"; status === "running";) {
    const answer = await waitFor(watcher, { sessionId, cursor, until: "event" }, (woken) =>
      note(woken.event.type === "result" ? "ended" : "message", woken),
    );
    ({ nextCursor: cursor, status } = answer);
  }
}

async function beAsked(owner, watcher, sessionId, note) {
  let cursor = await begin(owner, sessionId, "touch file");
  for (;;) {
    const answer = await waitFor(watcher, { sessionId, cursor, until: "news" }, async (woken) => {
      if (woken.event.type === "permission_request") await note("asked", woken);
    });
    const [action] = answer.actions ?? [];
    if (!action) return;
    const { requestId } = action;
    const decision = { action: "respond_permission", sessionId, requestId, decision: "allow", waitMs: 0 };
    ({ nextCursor: cursor } = await watcher.call("claude_code_check", { ...decision, cursor: answer.nextCursor }));
  }
}

/** Response mode with the time of each event. */
const SHOWN = { responseMode: "delta_compact" };

/** Passes `tell` the event that woke the call, but no event that existed before. */
async function waitFor(watcher, request, tell) {
  const sent = Date.now();
  const answer = await watcher.call("claude_code_check", { action: "poll", waitMs: 45_000, ...SHOWN, ...request });
  const at = sharedNow();
  const now = performance.timeOrigin + performance.now();
  const event = answer.events.at(request.until === "event" ? 0 : -1);
  const decided = Date.parse(event?.timestamp);
  if (decided > sent) await tell({ at, decidedMs: now - decided, event, sessionId: request.sessionId });
  return answer;
}
