/**
 * Client that follows sessions over HTTP: polls, records the events, and polls again from its cursors. After a broken or
 * deliberately dropped connection, reconnects as a new client at equal cursors.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { connect, Refused } from "./clients.mjs";
import { isBroken } from "./counts.mjs";
import { digestOf } from "./log.mjs";

const WAIT_MS = 20_000;
/** Large enough that no answer is cut, bytes. */
const MAX_BYTES = 1_048_576;
/** Interval between reconnection attempts while the server is down, ms. */
const RETRY_MS = 100;

export class Watcher {
  /** Digest of the reported event, by session and event id. */
  seen = new Map();
  /** Number of events that were repeated, or had an id before the cursor. */
  twice = 0;
  #cursors;
  #habits;
  #door;
  #counts;
  #client;
  #leaving = false;

  /**
   * `door` and `kind` are as in `connect`; `sessions` are the ids to follow; `counts` is a `Counts`. `habits`: `vanishes()`
   * returns the time in ms after which this poll is dropped, or `undefined`; `rests()` returns the pause before the next poll
   * in ms; `readLate` and `patienceMs` are as in `connect`; `waitMs` is the length of a poll, `until` the event that ends a
   * poll early.
   */
  constructor({ counts, door, habits, kind, sessions }) {
    this.kind = kind;
    this.#door = door;
    this.#counts = counts;
    this.#habits = habits;
    this.#cursors = new Map(sessions.map((id) => [id, 1]));
    for (const id of sessions) this.seen.set(id, new Map());
  }

  /** Polls until `leave` is called and all remaining events are reported. */
  async follow() {
    while (!(await this.#looked())) await sleep(this.#habits.rests());
    await this.#client?.close();
  }

  /** Stops after the present end of the log. */
  leave() {
    this.#leaving = true;
  }

  /** Polls once, and notes errors in `Counts`. Resolves to true if no further events follow. */
  async #looked() {
    const leaves = this.#leaving ? undefined : this.#habits.vanishes();
    let isGone = false;
    let timer;
    try {
      this.#client ??= await connect(this.kind, this.#door, this.#habits);
      const client = this.#client;
      if (leaves !== undefined) {
        timer = setTimeout(() => {
          isGone = true;
          client.vanish();
        }, leaves);
      }
      const isLast = this.#leaving;
      const answer = await this.#poll(client, isLast ? 0 : (this.#habits.waitMs ?? WAIT_MS));
      return isLast && answer;
    } catch (error) {
      await this.#comeBack(error, isGone);
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Keeps the client after a broken connection (`isBroken`). Otherwise the next poll connects a new client. */
  async #comeBack(error, isGone) {
    if (isGone || !isBroken(error)) {
      this.#client?.vanish();
      this.#client = undefined;
    }
    if (isGone) {
      this.#counts.vanished += 1;
      return sleep(this.#habits.rests() + RETRY_MS);
    }
    this.#counts.note(error);
    return sleep(error instanceof Refused ? error.afterMs : RETRY_MS);
  }

  /** Resolves to true if all requested events were reported. */
  async #poll(client, waitMs) {
    const several = [...this.#cursors].map(([sessionId, cursor]) => ({ sessionId, cursor }));
    const which = several.length === 1 ? several[0] : { sessions: several };
    const { until = "event" } = this.#habits;
    const form = { responseMode: "full", until, maxBytes: MAX_BYTES, maxEvents: 1_000 };
    const sent = Date.now();
    const answer = await client.call("claude_code_check", { action: "poll", waitMs, ...form, ...which });
    const now = performance.timeOrigin + performance.now();
    this.#counts.calls += 1;
    const parts = answer.sessions ?? [answer];
    this.#noteWaking(answer, parts, { now, sent });
    for (const part of parts) this.#take(part);
    return parts.every(({ lastEventId, nextCursor }) => nextCursor > lastEventId);
  }

  /** Notes the latency of the event that ended the poll, if the event happened during the poll. */
  #noteWaking({ woke }, parts, { now, sent }) {
    if ((this.#habits.until ?? "event") !== "event") return;
    const [first] = (parts.find(({ sessionId }) => sessionId === woke) ?? parts[0]).events ?? [];
    const at = Date.parse(first?.timestamp);
    if (at > sent && this.#habits.readLate() === 0) this.#counts.waking.push(now - at);
  }

  #take({ cursorResetTo, events = [], nextCursor, sessionId }) {
    const cursor = this.#cursors.get(sessionId);
    const seen = this.seen.get(sessionId);
    if (cursorResetTo !== undefined) this.#counts.note(new Error(`the cursor of ${sessionId} was reset`));
    for (const event of events) {
      if (event.id < cursor || event.id >= nextCursor || seen.has(event.id)) this.twice += 1;
      seen.set(event.id, digestOf(event));
    }
    this.#counts.events += events.length;
    this.#cursors.set(sessionId, nextCursor);
  }
}
