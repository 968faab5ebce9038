import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Command, CommandReply } from "../../src/domain/command.ts";
import type { SessionEvent } from "../../src/domain/event.ts";
import { initialState, type SessionState, type SessionStatus } from "../../src/domain/session.ts";
import { ConflictError, FencedError, NoAnswerError } from "../../src/engine/ports.ts";
import type { InboxItem, Lease, NewSession, SessionBackend, SessionQuery } from "../../src/engine/ports.ts";

export interface StoreUnderTest {
  connect(nodeId: string): Promise<SessionBackend> | SessionBackend;
  /** Lets `ms` pass on the clock of the leases. */
  advance(ms: number): Promise<void> | void;
  close(): Promise<void>;
}

const TTL = 30_000;
/** How long a command waits that must be answered, and one that must not. */
const [LONG, SHORT] = [60_000, 20];
const T0 = 1_800_000_000_000;
const never = new AbortController().signal;
const NASTY = `NUL \0 escaped \\u0000 lone \ud83d and \ude42\ud83d emoji 🙂 line \u2028 quotes "'\` wildcards %_\\`;
const failed: SessionState = { ...initialState(T0), lastOutcome: "lost" };

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n);
const notice = (message: string): SessionEvent => ({ type: "notice", data: { kind: "warning", message } });
const notices = (from: number, to: number): SessionEvent[] => numbers(from, to).map((n) => notice(String(n)));
const prompt = (text: string): SessionEvent => ({ type: "prompt.queued", data: { promptId: "p", text } });
const command = (by = "x"): Command => ({ id: randomUUID(), principal: "local", kind: "interrupt", data: { by } });
const done = (cursor: number): CommandReply => ({ ok: true, cursor });

function session(over: Partial<NewSession> = {}): NewSession {
  return { id: randomUUID(), principal: "local", spec: { cwd: "/repo" }, state: initialState(T0), at: T0, ...over };
}

/** Changes whatever can be reached from `value`. */
function spoil(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const inner of Object.values(value)) spoil(inner);
  Object.assign(value, { spoilt: true });
}

const claimed = async (node: SessionBackend, id: string): Promise<Lease> => (await node.claim(id))!;

/** Appends as an owner does: the state moves with the events. */
async function write(owner: SessionBackend, lease: Lease, events: SessionEvent[], at = T0): Promise<void> {
  const { state } = (await owner.get(lease.sessionId))!;
  await owner.append(lease, { events, at, state: { ...state, lastEventId: state.lastEventId + events.length } });
}

/** The first `n`; then the iterable is left. */
async function take<T>(n: number, items: AsyncIterable<T>): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) if (taken.push(item) === n) break;
  return taken;
}

/** What every engine of SessionBackend must do. No test sleeps: each waits for what must happen. */
export function storeSuite(name: string, make: () => Promise<StoreUnderTest>): void {
  describe(`store: ${name}`, () => {
    let [store, a, b] = [] as unknown as [StoreUnderTest, SessionBackend, SessionBackend];

    beforeEach(async () => {
      store = await make();
      [a, b] = [await store.connect("a"), await store.connect("b")];
      await Promise.all([a.heartbeat(TTL), b.heartbeat(TTL)]);
    });
    afterEach(() => store.close());

    /** A session that node a owns. */
    const owned = async (over: Partial<NewSession> = {}) => {
      const lease = await claimed(a, (await a.create(session(over))).record.id);
      return { id: lease.sessionId, lease };
    };
    /** All that others can see of a session. */
    const seen = async (id: string): Promise<unknown[]> => [await b.get(id), await b.read(id, 1, 1000)];
    const next = async (lease: Lease, node = a) => (await take(1, node.inbox(lease, never)))[0]!;

    it("creates a session once and hands it out as it was given", async () => {
      const made = session({ principal: "ann", spec: { cwd: "/x", tools: [] }, state: failed, at: T0 + 5 });
      const answers = await Promise.all([a, b, a].map((node) => node.create(made)));
      expect(answers.filter(({ created }) => created)).toHaveLength(1);
      const { at, ...rest } = made;
      const record = { ...rest, title: undefined, createdAt: at, updatedAt: at, rev: 1, owner: undefined };
      expect(answers.map((answer) => answer.record)).toEqual([record, record, record]);
      expect(await b.create({ ...made, spec: { cwd: "/y" }, at: T0 })).toEqual({ record, created: false });
      expect([await b.get(made.id), await b.get(randomUUID())]).toEqual([record, undefined]);
    });

    it("keeps idempotency keys per principal", async () => {
      const asked = ["ann", "ann", "bob"].map((principal) => session({ principal, idempotencyKey: "k" }));
      const [one, two, bobs] = await Promise.all(asked.map((each, n) => (n === 1 ? b : a).create(each)));
      expect(two).toEqual({ record: one!.record, created: !one!.created });
      expect(bobs).toMatchObject({ created: true, record: { id: asked[2]!.id } });
    });

    it("shares no object with anybody", async () => {
      const made = session({ spec: { cwd: "/repo", mcpServers: {} } });
      const { id, lease } = await owned(made);
      const change = { events: [prompt("p")], at: T0, state: { ...initialState(T0), lastEventId: 1 } };
      await a.append(lease, change);
      const before = structuredClone(await seen(id));
      const listed = await b.list({ principal: "local", limit: 1 });
      for (const each of [made, change, await seen(id), listed, await take(1, b.tail(id, 1, never))]) spoil(each);
      expect(await seen(id)).toEqual(before);
    });

    it("updates by compare and set, over a revision that counts every change", async () => {
      const { id, lease } = await owned();
      const { rev, state } = (await a.get(id))!;
      const race = await Promise.allSettled([a, b].map((node) => node.update(id, rev, { title: "A" })));
      expect(race.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      let record = await b.update(id, (await b.get(id))!.rev, { spec: { cwd: "/new" } });
      const found = await b.list({ principal: "local", cwd: "/new", limit: 9 });
      expect(found).toEqual([{ ...record, title: "A", spec: { cwd: "/new" }, state, updatedAt: T0 }]);
      for (const step of [() => write(a, lease, []), () => a.release(lease), () => b.claim(id)]) {
        await step();
        await expect(a.update(id, record.rev, { title: "late" })).rejects.toThrow(ConflictError);
        record = (await a.get(id))!;
      }
      await expect(a.update(randomUUID(), 1, { title: "of nobody" })).rejects.toThrow(ConflictError);
    });

    it("finds sessions by principal, status, folder, time and text", async () => {
      const { id, lease } = await owned({ spec: { cwd: "/Src/ÄRGER" }, state: failed });
      const state = { ...initialState(T0), lastEventId: 3 };
      await a.append(lease, { events: [notice("noise"), prompt("Fix 100% of it"), prompt("second")], at: T0, state });
      await write(a, lease, [prompt("third")], T0 + 9);
      await a.update(id, (await a.get(id))!.rev, { title: "The Größe" });
      const { id: bad } = (await a.create(session({ state: failed, at: T0 + 5 }))).record;
      await a.create(session({ principal: "ann", spec: { cwd: "/Src/ÄRGER" }, state: failed, at: T0 + 9 }));
      const find = async (query: Partial<SessionQuery>): Promise<string[]> =>
        (await b.list({ principal: "local", limit: 9, ...query })).map((found) => found.id);
      const all = [{}, { statuses: ["idle", "error"] as const }, { since: T0 + 5 }, { text: "R" }];
      const one: object[] = [{ cwd: "/Src/ÄRGER", statuses: ["idle"] }, { since: T0 + 6 }];
      for (const text of ["ärger", "GRÖßE", "00% OF"]) one.push({ text });
      const none: object[] = [{ cwd: "/Src" }, { statuses: [] }, { since: T0 + 10 }, { principal: "bob" }];
      for (const text of ["second", "third", "noise", "f_x", "f%x"]) none.push({ text });
      expect(await Promise.all(all.map(find))).toEqual(all.map(() => [id, bad]));
      expect(await Promise.all(one.map(find))).toEqual(one.map(() => [id]));
      expect(await Promise.all(none.map(find))).toEqual(none.map(() => []));
      expect(await find({ statuses: ["error"], cwd: "/repo", since: T0 + 5, text: "REPO" })).toEqual([bad]);
    });

    it("lists newest first, in pages that neither miss nor repeat while sessions are added", async () => {
      const made = numbers(1, 250).map((n) => session({ at: T0 + (n % 60) }));
      await Promise.all(made.map((each) => a.create(each)));
      const pages: string[][] = [];
      let query: SessionQuery = { principal: "local", limit: 40 };
      for (let page = await b.list(query); page.length > 0 && pages.length < 9; page = await b.list(query)) {
        pages.push(page.map(({ id }) => id));
        query = { ...query, before: page.at(-1)! };
        await a.create(session({ at: T0 + 1000 }));
      }
      const order = made.toSorted((x, y) => y.at - x.at || (x.id < y.id ? 1 : -1));
      expect(pages).toEqual(numbers(0, 6).map((n) => order.slice(n * 40, n * 40 + 40).map(({ id }) => id)));
    });

    it("gives a session to one of two claimers, until it is released", async () => {
      const { id } = (await a.create(session())).record;
      const claims = await Promise.all([a.claim(id), b.claim(id)]);
      const [owner, other] = claims[0] ? [a, b] : [b, a];
      const first = { sessionId: id, nodeId: owner.nodeId, epoch: 1, tookOver: false };
      expect(claims.filter((lease) => lease !== undefined)).toEqual([first]);
      expect((await other.get(id))!.owner).toEqual({ nodeId: owner.nodeId, alive: true });
      const again = await claimed(owner, id);
      expect(again).toEqual({ ...first, epoch: 2 });
      await other.release(first);
      expect(await other.claim(id)).toBeUndefined();
      await owner.release(again);
      for (const lease of [first, again]) await expect(write(owner, lease, [])).rejects.toThrow(FencedError);
      expect(await other.claim(id)).toMatchObject({ nodeId: other.nodeId, epoch: 3, tookOver: false });
    });

    it("lets an owner whose lease ran out write until another has claimed, and not after", async () => {
      const { id, lease } = await owned();
      await store.advance(TTL - 1000);
      await Promise.all([a.heartbeat(TTL), b.heartbeat(3 * TTL)]);
      await store.advance(TTL - 1000);
      expect(await b.claim(id)).toBeUndefined();
      await store.advance(1001);
      expect((await b.get(id))!.owner).toEqual({ nodeId: "a", alive: false });
      await write(a, lease, [notice("1")]);
      const taken = await claimed(b, id);
      expect(taken).toMatchObject({ nodeId: "b", tookOver: true });
      const before = await seen(id);
      await expect(write(a, lease, [notice("late")])).rejects.toThrow(FencedError);
      await a.release(lease);
      await a.heartbeat(TTL);
      expect([await a.claim(id), ...(await seen(id))]).toEqual([undefined, ...before]);
      await write(b, taken, [notice("2")]);
    });

    it("refuses a claim by a node that is not alive itself", async () => {
      const { id } = (await a.create(session())).record;
      expect(await (await store.connect("new")).claim(id)).toBeUndefined();
      await store.advance(TTL + 1);
      expect(await a.claim(id)).toBeUndefined();
      await a.heartbeat(TTL);
      expect([await a.claim(randomUUID()), await a.claim(id)]).toMatchObject([undefined, { nodeId: "a" }]);
    });

    it("appends state and events together or not at all", async () => {
      const { id, lease } = await owned();
      await write(a, lease, notices(1, 3), T0 + 1);
      const before = await seen(id);
      const state = { ...failed, lastEventId: 5 };
      const noJson = { type: "message", data: { message: { n: 1n } } } satisfies SessionEvent;
      const noState = { ...state, reportedCostUsd: 1n } as unknown as SessionState;
      const good = { events: notices(4, 5), at: T0 + 2, state };
      for (const bad of [{ events: [notice("4"), noJson] }, { events: notices(4, 6) }, { state: noState }])
        await expect(a.append(lease, { ...good, ...bad })).rejects.toBeInstanceOf(Error);
      expect(await seen(id)).toEqual(before);
      await a.append(lease, good);
      const log = notices(1, 5).map((event, n) => ({ ...event, id: n + 1, at: n < 3 ? T0 + 1 : T0 + 2 }));
      expect(await seen(id)).toMatchObject([{ state, createdAt: T0, updatedAt: T0 + 2 }, log]);
    });

    it("keeps every text as it is: NUL, lone surrogates, 200 KB", async () => {
      const [text, spec] = [NASTY.repeat(2500), { cwd: "/repo", systemPrompt: NASTY }];
      const { id, lease } = await owned({ spec });
      await a.update(id, (await a.get(id))!.rev, { title: NASTY });
      const events: SessionEvent[] = [prompt(text), { type: "message", data: { message: { [NASTY]: [text] } } }];
      const state = { ...initialState(T0), lastEventId: 2, reported: { model: NASTY } };
      await a.append(lease, { events, at: T0, state });
      expect(await seen(id)).toMatchObject([{ spec, title: NASTY, state }, events]);
      const [asked, refusal] = [command(text), { ok: false, refusal: { code: "INTERNAL", message: text } } as const];
      const sent = b.send(id, asked, LONG);
      const item = await next(lease);
      expect(item.command).toEqual(asked);
      await item.ack(refusal);
      expect(await sent).toEqual(refusal);
    });

    it("reads in pages and tails from any id: what is there, then what comes, each once", async () => {
      const { id, lease } = await owned();
      await write(a, lease, notices(1, 150));
      const starts = [1, 100, 151, 333];
      const readers = starts.map((from) => take(501 - from, b.tail(id, from, never)));
      for (const burst of numbers(15, 49)) await write(a, lease, notices(burst * 10 + 1, burst * 10 + 10));
      const pages = await Promise.all([0, 1, 201, 401, 501].map((from) => b.read(id, from, 200)));
      expect(pages.map((page) => page.length)).toEqual([200, 200, 200, 100, 0]);
      const log = notices(1, 500).map((event, n) => ({ ...event, id: n + 1, at: T0 }));
      expect(pages.slice(1).flat()).toEqual(log);
      expect(await Promise.all(readers)).toEqual(starts.map((from) => log.slice(from - 1)));
    });

    it("brings a command to the owner from every node, once, and its answer to all who sent it", async () => {
      const { id, lease } = await owned();
      const asked = numbers(1, 3).map(() => command());
      const inbox = take(3, a.inbox(lease, never));
      const sent = [a, b, a, b, b].map((node, n) => node.send(id, asked[n % 3]!, LONG));
      const items = await inbox;
      for (const item of items) await item.ack(done(asked.findIndex((each) => each.id === item.command.id)));
      await items[0]!.ack(done(9));
      const again = asked.map((each) => b.send(id, each, SHORT));
      expect(await Promise.all([...sent, ...again])).toEqual([0, 1, 2, 0, 1, 0, 1, 2].map(done));
    });

    it("keeps a command for an owner to come, as long as its sender waits", async () => {
      const { id } = (await a.create(session())).record;
      await expect(b.send(id, command("gave up"), SHORT)).rejects.toThrow(NoAnswerError);
      const sent = b.send(id, command("waits"), LONG);
      const item = await next(await claimed(a, id));
      expect(item.command).toMatchObject({ data: { by: "waits" } });
      await item.ack(done(7));
      expect(await sent).toEqual(done(7));
    });

    it("brings an unanswered command to the next owner and drops the answer of the last", async () => {
      const { id, lease } = await owned();
      const sent = b.send(id, command(), LONG);
      const old = a.inbox(lease, never)[Symbol.asyncIterator]();
      const late = ((await old.next()) as IteratorYieldResult<InboxItem>).value;
      const over = old.next();
      await store.advance(TTL + 1);
      await b.heartbeat(TTL);
      const item = await next(await claimed(b, id), b);
      expect(late.command).toEqual(item.command);
      await late.ack(done(1));
      await item.ack(done(2));
      expect([await sent, await over]).toEqual([done(2), { done: true, value: undefined }]);
    });

    it("purges what ended long ago and nobody alive owns, oldest first", async () => {
      const made = [5, 1, 2, 3, 4, 9].map((n) => session({ state: failed, at: T0 + n, idempotencyKey: String(n) }));
      for (const each of [...made, session()]) await a.create(each);
      const [last, dead, living] = made.map(({ id }) => id) as [string, string, string];
      await write(a, await claimed(a, dead), [notice("1")], T0 + 1);
      await store.advance(TTL + 1);
      await b.heartbeat(TTL);
      await claimed(b, living);
      const purge = (limit: number, ...statuses: SessionStatus[]) => b.purge({ before: T0 + 9, statuses, limit });
      expect([await purge(9), await purge(9, "closed"), await purge(2, "closed", "error")]).toEqual([0, 0, 2]);
      expect([await b.get(last), await seen(dead)]).toMatchObject([{ id: last }, [undefined, []]]);
      expect([await purge(9, "error"), await purge(9, "error")]).toEqual([2, 0]);
      expect(await b.list({ principal: "local", limit: 9 })).toMatchObject([{ id: made[5]!.id }, { id: living }, {}]);
      expect(await a.create({ ...made[1]!, id: randomUUID() })).toMatchObject({ created: true });
    });
  });
}
