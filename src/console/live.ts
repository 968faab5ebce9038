import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { CONSOLE } from "../domain/approvals/answer-source.ts";
import { AppError } from "../domain/error.ts";
import type { Caller } from "../domain/principal.ts";
import type { SessionQuery, SessionRecord } from "../engine/ports.ts";
import { shownEvent } from "./events.ts";
import { pendingOf } from "./pending.ts";
import { detailOf, rowOf } from "./rows.ts";
import type { Sources } from "./sources.ts";
import type { LiveEvents, PendingRequest, SessionDetail, SessionRow } from "./wire.ts";

/**
 * What an open page is told: all of its principal's sessions that change, what waits for people, and of one session
 * everything. Read from the store and the log alone, so that it makes no difference which server runs a session.
 */

export interface LiveQuery {
  /** The session that is followed, if any, and where in its log to begin. */
  readonly session: string | undefined;
  readonly from: number;
}

/** Resolves when it is on its way; a slow page is waited for. `id` is that of an event of the log. */
export type Send = <K extends keyof LiveEvents>(kind: K, data: LiveEvents[K], id?: number) => Promise<void>;

/** How often sessions are looked at, and the text that is being written, ms. */
const [LOOK_MS, PARTIAL_MS] = [500, 150];
/** A change is stamped a little before it can be seen: what is so much older is looked at again, ms. */
const OVERLAP_MS = 5_000;
/** Number of changed sessions that are read concurrently. */
const PAGE = 200;

/** Resolves when `signal` aborts; rejects when something cannot be read or sent. */
export async function tellLive(
  sources: Sources,
  { caller, query }: { caller: Caller; query: LiveQuery },
  send: Send,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const both = AbortSignal.any([signal, ended.signal]);
  const { from, session } = query;
  const stream = new LiveStream(sources, caller, send);
  const parts = [stream.sessions(both)];
  if (session !== undefined) {
    // Another session may get this id once it is deleted.
    const gone = new AbortController();
    const following = AbortSignal.any([both, gone.signal]);
    const one = stream.one(session, following, () => gone.abort());
    parts.push(one, stream.log(session, from, following), stream.partial(session, following));
  }
  try {
    await Promise.all(parts);
  } finally {
    ended.abort();
  }
}

class LiveStream {
  readonly #sources: Sources;
  readonly #caller: Caller;
  readonly #send: Send;
  /** By session the row as it was told. */
  readonly #sent = new Map<string, SessionRow>();
  /** By session how it was when its requests were looked at: when they end can change without a word in the log. */
  #looked: ReadonlyMap<string, number> = new Map();
  #requests: readonly PendingRequest[] | undefined;

  constructor(sources: Sources, caller: Caller, send: Send) {
    this.#sources = sources;
    this.#caller = caller;
    this.#send = send;
  }

  async sessions(signal: AbortSignal): Promise<void> {
    let lookedAt = Date.now();
    await repeat(LOOK_MS, signal, async () => {
      const { principal } = this.#caller;
      const since = lookedAt - OVERLAP_MS;
      lookedAt = Date.now();
      const records = await this.#changed({ principal, since, limit: PAGE });
      const rows = await Promise.all(records.map(async (record) => rowOf(this.#sources, record)));
      const changed = rows.filter((row) => !isDeepStrictEqual(this.#sent.get(row.id), row));
      for (const row of changed) this.#sent.set(row.id, row);
      if (changed.length > 0) await this.#send("sessions", changed);
      const isNew = records.some(({ id, rev }) => this.#looked.get(id) !== rev);
      this.#looked = new Map(records.map(({ id, rev }) => [id, rev]));
      if (isNew || !this.#requests) await this.#tellRequests();
    });
  }

  async #changed(query: SessionQuery): Promise<SessionRecord[]> {
    const page = await this.#sources.engine.list(query);
    const last = page.at(-1);
    if (!last || page.length < PAGE) return page;
    return [...page, ...(await this.#changed({ ...query, before: { updatedAt: last.updatedAt, id: last.id } }))];
  }

  async #tellRequests(): Promise<void> {
    const open = await pendingOf(this.#sources, this.#caller.principal);
    if (isDeepStrictEqual(open, this.#requests)) return;
    const before = new Set(this.#requests?.map(({ requestId }) => requestId));
    this.#requests = open;
    await this.#send("requests", open);
    if (this.#caller.scopes.includes("approve"))
      void this.#delivered(open.filter(({ requestId }) => !before.has(requestId)));
  }

  /** Who may answer has seen all of it now. A server that does not hear of it must not keep the page from all else. */
  async #delivered(shown: readonly PendingRequest[]): Promise<void> {
    const { engine } = this.#sources;
    const { principal } = this.#caller;
    await Promise.all(
      shown.map(async ({ requestId, sessionId }) =>
        engine.delivered(principal, sessionId, [{ requestId, whole: true, approver: CONSOLE }]).catch(ignore),
      ),
    );
  }

  /** Says when the session is not there any more. */
  async one(sessionId: string, signal: AbortSignal, onGone: () => void): Promise<void> {
    let last: SessionDetail | undefined;
    await repeat(LOOK_MS, signal, async () => {
      const record = await this.#find(sessionId);
      if (!record) {
        onGone();
        return this.#send("gone", { sessionId });
      }
      const detail = await detailOf(this.#sources, record);
      if (isDeepStrictEqual(detail, last)) return;
      last = detail;
      await this.#send("session", detail);
    });
  }

  async log(sessionId: string, from: number, signal: AbortSignal): Promise<void> {
    // Whose it is decides; that it is not there is told by `one`.
    if (!(await this.#find(sessionId))) return;
    const events = this.#sources.store.log.tail(sessionId, from, signal);
    for await (const event of events) await this.#send("log", shownEvent(event), event.id);
  }

  async partial(sessionId: string, signal: AbortSignal): Promise<void> {
    if (!(await this.#find(sessionId))) return;
    let last = "";
    await repeat(PARTIAL_MS, signal, async () => {
      const text = await this.#sources.engine.partial(sessionId);
      if (text === last) return;
      last = text;
      await this.#send("partial", { text });
    });
  }

  async #find(sessionId: string): Promise<SessionRecord | undefined> {
    try {
      return await this.#sources.engine.get(this.#caller.principal, sessionId);
    } catch (error) {
      if (error instanceof AppError && error.code === "SESSION_NOT_FOUND") return undefined;
      throw error;
    }
  }
}

/** It was answered meanwhile, or its server is stuck; if the store fails, the next read fails too. */
function ignore(): void {}

async function repeat(everyMs: number, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  const ended = (): boolean => signal.aborted;
  while (!ended()) {
    await act();
    await setTimeout(everyMs, undefined, { signal }).catch(() => undefined);
  }
}
