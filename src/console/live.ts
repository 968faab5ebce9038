import { setTimeout } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { CONSOLE } from "../domain/approvals/answer-source.ts";
import { AppError } from "../domain/error.ts";
import type { Caller } from "../domain/principal.ts";
import type { SessionQuery, SessionRecord } from "../engine/ports.ts";
import { shownEvent } from "./shown-event.ts";
import { readPending } from "./requests.ts";
import { buildDetail, buildRow } from "./rows.ts";
import type { Sources } from "./sources.ts";
import type { LiveEvents, PendingRequest, SessionDetail, SessionRow } from "./wire.ts";

/**
 * Streams changes to an open page: sessions of the caller's principal, open requests, and everything about one followed
 * session. Reads the store and the log only, so that any server may run the session.
 */

export interface LiveQuery {
  /** Id of the followed session; `from` is the first event id to send. */
  readonly session: string | undefined;
  readonly from: number;
}

/** Resolves when the data is written, so that a slow page slows the stream down. `id`: id of a logged event. */
export type Send = <K extends keyof LiveEvents>(kind: K, data: LiveEvents[K], id?: number) => Promise<void>;

/** Polling intervals, ms: sessions and requests (`POLL_MS`), unfinished text (`PARTIAL_MS`). */
const [POLL_MS, PARTIAL_MS] = [500, 150];
/** Overlap of successive reads of sessions, ms, because `updatedAt` is set shortly before a change becomes visible. */
const OVERLAP_MS = 5_000;
/** Number of changed sessions per query of `#changed`. */
const PAGE = 200;

/** Resolves when `signal` aborts; rejects if a read or a send fails. */
export async function streamLive(
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
    // Stops following after the deletion, because another session may get the id.
    const gone = new AbortController();
    const following = AbortSignal.any([both, gone.signal]);
    const one = stream.detail(session, following, () => gone.abort());
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
  /** Last row sent, by session id. */
  readonly #sent = new Map<string, SessionRow>();
  /**
   * `rev` of each session when its requests were last read. Compared because a deadline can change without an event in the log.
   */
  #lastRevs: ReadonlyMap<string, number> = new Map();
  #requests: readonly PendingRequest[] | undefined;

  constructor(sources: Sources, caller: Caller, send: Send) {
    this.#sources = sources;
    this.#caller = caller;
    this.#send = send;
  }

  async sessions(signal: AbortSignal): Promise<void> {
    let lookedAt = Date.now();
    await repeat(POLL_MS, signal, async () => {
      const { principal } = this.#caller;
      const since = lookedAt - OVERLAP_MS;
      lookedAt = Date.now();
      const records = await this.#changed({ principal, since, limit: PAGE });
      const rows = await Promise.all(records.map(async (record) => buildRow(this.#sources, record)));
      const changed = rows.filter((row) => !isDeepStrictEqual(this.#sent.get(row.id), row));
      for (const row of changed) this.#sent.set(row.id, row);
      if (changed.length > 0) await this.#send("sessions", changed);
      const isNew = records.some(({ id, rev }) => this.#lastRevs.get(id) !== rev);
      this.#lastRevs = new Map(records.map(({ id, rev }) => [id, rev]));
      if (isNew || !this.#requests) await this.#sendRequests();
    });
  }

  async #changed(query: SessionQuery): Promise<SessionRecord[]> {
    const page = await this.#sources.engine.list(query);
    const last = page.at(-1);
    if (!last || page.length < PAGE) return page;
    return [...page, ...(await this.#changed({ ...query, before: { updatedAt: last.updatedAt, id: last.id } }))];
  }

  async #sendRequests(): Promise<void> {
    const open = await readPending(this.#sources, this.#caller.principal);
    if (isDeepStrictEqual(open, this.#requests)) return;
    const before = new Set(this.#requests?.map(({ requestId }) => requestId));
    this.#requests = open;
    await this.#send("requests", open);
    if (this.#caller.scopes.includes("approve"))
      void this.#reportDelivered(open.filter(({ requestId }) => !before.has(requestId)));
  }

  /**
   * Reports `shown` as delivered to the console. Not awaited by `#sendRequests`, so that a server that does not respond cannot
   * block the page.
   */
  async #reportDelivered(shown: readonly PendingRequest[]): Promise<void> {
    const { engine } = this.#sources;
    const { principal } = this.#caller;
    await Promise.all(
      shown.map(async ({ requestId, sessionId }) =>
        engine.delivered(principal, sessionId, [{ requestId, whole: true, approver: CONSOLE }]).catch(ignore),
      ),
    );
  }

  /** Sends details of the session when they change. If the session no longer exists, sends `gone` and calls `onGone`. */
  async detail(sessionId: string, signal: AbortSignal, onGone: () => void): Promise<void> {
    let last: SessionDetail | undefined;
    await repeat(POLL_MS, signal, async () => {
      const record = await this.#find(sessionId);
      if (!record) {
        onGone();
        return this.#send("gone", { sessionId });
      }
      const detail = await buildDetail(this.#sources, record);
      if (isDeepStrictEqual(detail, last)) return;
      last = detail;
      await this.#send("session", detail);
    });
  }

  async log(sessionId: string, from: number, signal: AbortSignal): Promise<void> {
    // Checks that the caller may read the session. A missing session is reported by `detail`.
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

/**
 * Ignores a failed `delivered`: the request was answered meanwhile, or its server is stuck. If the store fails, the next read
 * fails too.
 */
function ignore(): void {}

async function repeat(everyMs: number, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  const ended = (): boolean => signal.aborted;
  while (!ended()) {
    await act();
    await setTimeout(everyMs, undefined, { signal }).catch(() => undefined);
  }
}
