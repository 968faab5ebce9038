import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { feedEventId } from "../../src/domain/feed.ts";
import { EventsClient } from "../kit/clients/events-client.ts";
import { randoms, report } from "../kit/faults/figures.ts";
import { homeOf, killDaemons, persistently, wholeLog } from "../kit/faults/shims.ts";
import { constants } from "../kit/servers/constants.ts";
import { amount } from "../kit/runner/amount.ts";
import { useWorld } from "../kit/world.ts";

/** Kills daemons at random moments while turns run: no event is missed by any mode, and none has two ids. */

const world = useWorld({ agent: "stand-in" });
const seed = Number(process.env["FAULTS_SEED"] ?? Date.now() % 1_000_000);
const KILLS = amount(3, 50);
const NAMES = ["turn.ended", "answer.needed"] as const;
/** Types of events in the log, by name in the feed. */
const LOGGED = { "turn.ended": "turn.ended", "answer.needed": "permission.asked" };
/** Ends the shims of killed daemons before the search for processes that are left over, which takes 15 s. */
const SHORT_KEPT = constants({ keepMs: 10_000 });
/** Maximum time between two kills, ms: the next daemon takes the turn over, and a few more turns run. */
const MAX_PAUSE_MS = 8_000;

it(`after ${String(KILLS)} kills, streams and polls have had each event of the log under one id`, async () => {
  const random = randoms(seed);
  const [follower, worker, poller] = await Promise.all(
    ["a", "b", "c"].map(async () => world.shared({ env: SHORT_KEPT })),
  );
  const streaming = new EventsClient(follower!);
  const polling = new EventsClient(poller!);
  const streams = await Promise.all(NAMES.map(async (name) => streaming.stream({ name })));
  const begun = await Promise.all(NAMES.map(async (name) => polling.poll({ name })));
  const [over, settled] = [new AbortController(), new AbortController()];
  const isOver = () => over.signal.aborted;
  const polled = NAMES.map(async (name, at) => {
    const ids: string[] = [];
    for (let { cursor } = begun[at]!; ;) {
      const isLast = settled.signal.aborted;
      const answer = await persistently(async () => polling.poll({ name, cursor, timeoutMs: isLast ? 0 : 500 }));
      expect(answer.truncated).toBe(false);
      ids.push(...answer.events.map(({ eventId }) => eventId));
      ({ cursor } = answer);
      if (isLast && !answer.hasMore) return ids;
    }
  });
  const sessions: string[] = [];
  const working = (async () => {
    while (!isOver()) {
      const idempotencyKey = `run-${String(sessions.length)}`;
      const asks = { tools: [{ name: "Bash", input: { command: "true" } }] };
      const prompt = scriptTag([asks, { text: "done" }]);
      const start = { prompt, cwd: world.folder(), idempotencyKey };
      const { sessionId } = await persistently(async () => worker!.call("claude_code", start));
      sessions.push(sessionId);
      for (;;) {
        const { actions, status } = await persistently(async () => worker!.news(sessionId));
        if (status !== "running" && actions.length === 0) break;
        for (const { requestId } of actions) {
          const answer = { action: "respond_permission", sessionId, requestId, decision: "allow" };
          await worker!.call("claude_code_check", answer).catch(() => undefined);
        }
      }
    }
  })();
  for (let kill = 0; kill < KILLS; kill += 1) {
    await sleep(random() * MAX_PAUSE_MS);
    await killDaemons(world);
  }
  over.abort();
  await working;
  settled.abort();
  const logs = await Promise.all(
    sessions.map(async (sessionId) => ({ sessionId, log: await wholeLog(homeOf(world), sessionId) })),
  );
  for (const [at, name] of NAMES.entries()) {
    const expected = logs.flatMap(({ log, sessionId }) =>
      log.filter(({ type }) => type === LOGGED[name]).map(({ id }) => feedEventId(sessionId, id)),
    );
    const streamed = () => streams[at]!.events().map(({ eventId }) => eventId);
    await streams[at]!.until(() => new Set(streamed()).size >= expected.length);
    expect({ seed, ids: streamed().toSorted() }).toEqual({ seed, ids: expected.toSorted() });
    expect({ seed, ids: (await polled[at]!).toSorted() }).toEqual({ seed, ids: expected.toSorted() });
    expect(streams[at]!.heard.filter(({ kind }) => kind === "active")).toHaveLength(1);
  }
  report({
    fault: "daemon killed under streams of events",
    runs: KILLS,
    lost: 0,
    leftOver: 0,
    note: `${String(sessions.length)} sessions, seed ${String(seed)}`,
  });
}, 1_200_000);
