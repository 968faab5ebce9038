import { isDeepStrictEqual } from "node:util";

import { expect } from "vitest";

import type { Answer, Connection } from "../clients/connection.ts";

/** `responseMode` in which an event has equal forms at any time. */
const responseMode = "delta_compact";

type Seen = Answer["events"][number];

/** A client that follows a session event by event and keeps all events in `seen`. */
export class Watcher {
  readonly seen = new Map<number, Seen>();
  readonly #server: Pick<Connection, "call">;

  constructor(server: Pick<Connection, "call">) {
    this.#server = server;
  }

  /** Follows until the turn ends or the server dies. */
  async follow(sessionId: string, from = 1): Promise<void> {
    for (let cursor = from; ;) {
      const args = { action: "poll", sessionId, cursor, waitMs: 20_000, until: "event", responseMode };
      const answer = await this.#server.call("claude_code_check", args).catch(() => undefined);
      if (!answer) return;
      for (const event of answer.events) this.seen.set(event.id, event);
      cursor = answer.nextCursor;
      if (answer.status !== "running") return;
    }
  }
}

/** Returns the number of `seen` events that are missing or changed. */
export async function countLost(
  server: Pick<Connection, "call">,
  sessionId: string,
  seen: ReadonlyMap<number, Seen>,
): Promise<number> {
  const now = new Map<number, Seen>();
  let cursor = 1;
  for (;;) {
    const answer = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      cursor,
      waitMs: 0,
      responseMode,
    });
    for (const event of answer.events) now.set(event.id, event);
    if (answer.nextCursor === cursor) break;
    cursor = answer.nextCursor;
  }
  return [...seen.values()].filter((event) => !isSame(event, now.get(event.id))).length;
}

/** True for equal events. Text already in `result` of the same answer is left out of the event: both forms count as equal. */
function isSame(before: Seen, after: Seen | undefined): boolean {
  if (!after || before.type !== after.type || before.timestamp !== after.timestamp) return false;
  const isBrief = [before, after].some(({ data }) => JSON.stringify(data).includes("(see result)"));
  return isBrief || isDeepStrictEqual(before.data, after.data);
}

/** Expects that a reply succeeds, and that session totals are the sums over all results. */
export async function expectUsable(
  server: Pick<Connection, "call" | "end">,
  sessionId: string,
  prompt: string,
): Promise<void> {
  const before = await server.call("claude_code_session", { action: "get", sessionId });
  const reply = await server.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
  expect(reply).toMatchObject({ status: "idle", result: { result: "Back.", isError: false, numTurns: 1 } });
  const turns = Number(before.sessions[0]?.["totalTurns"]);
  const cost = Number(before.sessions[0]?.["totalCostUsd"]);
  const { result } = await server.end(sessionId);
  expect(result?.sessionTotalTurns).toBe(turns + 1);
  expect(result?.sessionTotalCostUsd).toBeCloseTo(cost + (result?.totalCostUsd ?? 0), 8);
  // Cost that a killed Claude Code had not saved is counted again: the next turn can then seem to cost nothing.
  expect(result?.totalCostUsd).toBeGreaterThanOrEqual(0);
}
