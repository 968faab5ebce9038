import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import type { SessionEvent } from "../../../src/domain/event.ts";
import { initialState, type SessionState } from "../../../src/domain/session.ts";
import { command, failed, iterator, LONG, NASTY, never, notice, notices, range, prompt } from "./vocabulary.ts";
import { session, T0, take, write, type World } from "./vocabulary.ts";

/** Tests of writing and reading the log. */
export function logTests(world: () => World): void {
  it("state and events are appended together or not at all", async () => {
    const { a, createOwned: owned, readFromB: seen } = world();
    const { id, lease } = await owned();
    await write(a, lease, notices(1, 3), T0 + 1);
    const before = await seen(id);
    const state = { ...failed, lastEventId: 5 };
    const noJson = { type: "message", data: { message: { n: 1n } } } satisfies SessionEvent;
    const noState = { ...state, reportedCostUsd: 1n } as unknown as SessionState;
    const good = { events: notices(4, 5), at: T0 + 2, state };
    for (const bad of [{ events: [notice("4"), noJson] }, { events: notices(4, 6) }, { state: noState }])
      await expect(a.log.append(lease, { ...good, ...bad })).rejects.toBeInstanceOf(Error);
    expect(await seen(id)).toEqual(before);
    await a.log.append(lease, good);
    const log = notices(1, 5).map((event, n) => ({ ...event, id: n + 1, at: n < 3 ? T0 + 1 : T0 + 2 }));
    expect(await seen(id)).toMatchObject([{ state, createdAt: T0, updatedAt: T0 + 2 }, log]);
  });

  it("every text is stored unchanged: NUL, lone surrogates, 200 KB", async () => {
    const { a, b, createOwned: owned, readFromB: seen, next } = world();
    const [text, spec] = [NASTY.repeat(2500), { cwd: "/repo", systemPrompt: NASTY }];
    const { id, lease } = await owned({ spec });
    await a.rows.update(id, (await a.rows.get(id))!.rev, { title: NASTY });
    const events: SessionEvent[] = [prompt(text), { type: "message", data: { message: { [NASTY]: [text] } } }];
    const state = { ...initialState(T0), lastEventId: 2, reported: { model: NASTY } };
    await a.log.append(lease, { events, at: T0, state });
    expect(await seen(id)).toMatchObject([{ spec, title: NASTY, state }, events]);
    const [asked, refusal] = [command(text), { ok: false, refusal: { code: "INTERNAL", message: text } } as const];
    const sent = b.inbox.send(id, asked, LONG);
    const item = await next(lease);
    expect(item.command).toEqual(asked);
    await item.ack(refusal);
    expect(await sent).toEqual(refusal);
  });

  it("pages and tails from any id return stored and later events, each once", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    await write(a, lease, notices(1, 150));
    const starts = [1, 100, 151, 333];
    const readers = starts.map((from) => take(501 - from, b.log.tail(id, from, never)));
    for (const burst of range(15, 49)) await write(a, lease, notices(burst * 10 + 1, burst * 10 + 10));
    const pages = await Promise.all([0, 1, 201, 401, 501].map((from) => b.log.read(id, from, 200)));
    expect(pages.map((page) => page.length)).toEqual([200, 200, 200, 100, 0]);
    const log = notices(1, 500).map((event, n) => ({ ...event, id: n + 1, at: T0 }));
    expect(pages.slice(1).flat()).toEqual(log);
    expect(await Promise.all(readers)).toEqual(starts.map((from) => log.slice(from - 1)));
  });

  it("events of given types are read in pages, skipping all others", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    await write(a, lease, [prompt("1"), ...notices(2, 4), prompt("5"), notice("6"), prompt("7")]);
    const ids = async (...asked: Parameters<typeof b.log.read>) =>
      (await b.log.read(...asked)).map((event) => event.id);
    expect(await ids(id, 1, 2, ["prompt.queued"])).toEqual([1, 5]);
    expect(await ids(id, 6, 2, ["prompt.queued"])).toEqual([7]);
    expect(await ids(id, 0, 9, ["prompt.queued", "notice"])).toEqual(range(1, 7));
    expect(await ids(id, 1, 9, ["message"])).toEqual([]);
    expect(await ids(id, 1, 9, [])).toEqual([]);
  });

  it("a write whose state and log disagree about the last event throws and changes nothing", async () => {
    const { a, createOwned: owned, readFromB: seen } = world();
    const { id, lease } = await owned();
    const before = await seen(id);
    const [state, wrong] = [{ ...initialState(T0), lastEventId: 2 }, session()];
    await expect(a.log.append(lease, { events: [], at: T0 + 1, state })).rejects.toThrow("state and log disagree");
    await expect(a.rows.create({ ...wrong, state })).rejects.toThrow("state and log disagree");
    expect([await a.rows.get(wrong.id), await seen(id)]).toEqual([undefined, before]);
  });

  it("a tail of any length listens to its signal once, and no longer after it is left", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const { signal } = new AbortController();
    const listening = (): number => getEventListeners(signal, "abort").length;
    const tail = iterator(b.log.tail(id, 1, signal));
    for (const n of range(1, 20)) {
      const next = tail.next();
      await write(a, lease, [notice(String(n))]);
      expect((await next).value).toMatchObject({ id: n });
    }
    expect(listening()).toBe(1);
    await tail.return?.();
    expect(listening()).toBe(0);
  });

  it("an append wakes a thousand tails of a session", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const tails = range(1, 1000).map((n) => iterator((n % 2 ? a : b).log.tail(id, 1, new AbortController().signal)));
    const first = Promise.all(tails.map((tail) => tail.next()));
    await write(a, lease, notices(1, 2));
    expect((await first).every(({ value }) => (value as { id: number }).id === 1)).toBe(true);
  });
}
