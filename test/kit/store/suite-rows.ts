import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { initialState, type SessionStatus } from "../../../src/domain/session.ts";
import { ConflictError, NoAnswerError, type SessionBackend, type SessionQuery } from "../../../src/engine/ports.ts";
import { claimLease, done, failed, iterator, never, notice, range, prompt, session, T0, take } from "./vocabulary.ts";
import { command, LONG, write, type World } from "./vocabulary.ts";

/** Modifies `value` and every object reachable from `value`. */
function spoil(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const inner of Object.values(value)) spoil(inner);
  Object.assign(value, { spoilt: true });
}

/** Tests of creating, changing, finding and deleting sessions. */
export function rowTests(world: () => World): void {
  it("the ports of a store can be spread, so that wrappers forward nothing by hand", async () => {
    const { a } = world();
    const ports = { rows: { ...a.rows }, log: { ...a.log }, leases: { ...a.leases }, inbox: { ...a.inbox } };
    const wrapped: SessionBackend = { ...a, ...ports, maintenance: { ...a.maintenance } };
    const { id } = (await wrapped.rows.create(session())).record;
    const lease = await claimLease(wrapped, id);
    await write(wrapped, lease, [notice("n")]);
    expect(await wrapped.log.read(id, 1, 9)).toHaveLength(1);
    expect(await take(1, wrapped.log.tail(id, 1, never))).toHaveLength(1);
    const sent = wrapped.inbox.send(id, command(), LONG);
    await (await take(1, wrapped.inbox.receive(lease, never)))[0]!.ack(done(1));
    expect(await sent).toEqual(done(1));
    expect(await wrapped.maintenance.count()).toEqual({ idle: 1 });
    await wrapped.close();
  });

  it("`raw` returns a session as stored, for rows that cannot be read otherwise", async () => {
    const { a, b } = world();
    const { id } = (await a.rows.create(session())).record;
    expect(await b.rows.raw(id)).toMatchObject({ id, state: expect.stringContaining('"lastEventId":0') as string });
    expect(await b.rows.raw("none")).toBeUndefined();
  });

  it("a session is created once and returned unchanged", async () => {
    const { a, b } = world();
    const made = session({ principal: "ann", spec: { cwd: "/x", tools: [] }, state: failed, at: T0 + 5 });
    const answers = await Promise.all([a, b, a].map((node) => node.rows.create(made)));
    expect(answers.filter(({ created }) => created)).toHaveLength(1);
    const { at, ...rest } = made;
    const record = { ...rest, title: undefined, createdAt: at, updatedAt: at, rev: 1, owner: undefined };
    expect(answers.map((answer) => answer.record)).toEqual([record, record, record]);
    expect(await b.rows.create({ ...made, spec: { cwd: "/y" }, at: T0 })).toEqual({ record, created: false });
    expect([await b.rows.get(made.id), await b.rows.get(randomUUID())]).toEqual([record, undefined]);
    expect([await b.rows.principalOf(made.id), await b.rows.principalOf(randomUUID())]).toEqual(["ann", undefined]);
  });

  it("a session is found by each of its transcripts, past and present, until it is deleted", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const [one, two] = [randomUUID(), randomUUID()];
    for (const transcriptId of [one, two, two]) {
      await a.log.append(lease, { events: [], at: T0, state: { ...initialState(T0), transcriptId } });
    }
    const holders = async () => Promise.all([id, one, two].map(async (each) => (await b.rows.holderOf(each))?.id));
    expect(await holders()).toEqual([id, id, id]);
    expect(await b.rows.holderOf(randomUUID())).toBeUndefined();
    await a.leases.release(lease);
    await b.maintenance.purge({ before: T0 + 1, statuses: ["idle"], limit: 9 });
    expect(await holders()).toEqual([undefined, undefined, undefined]);
  });

  it("idempotency keys are separate for each principal", async () => {
    const { a, b } = world();
    const asked = ["ann", "ann", "bob"].map((principal) => session({ principal, idempotencyKey: "k" }));
    const [one, two, bobs] = await Promise.all(asked.map((each, n) => (n === 1 ? b : a).rows.create(each)));
    expect(two).toEqual({ record: one!.record, created: !one!.created });
    expect(bobs).toMatchObject({ created: true, record: { id: asked[2]!.id } });
  });

  it("a store shares no object with its callers", async () => {
    const { a, b, createOwned: owned, readFromB: seen } = world();
    const made = session({ spec: { cwd: "/repo", mcpServers: {} } });
    const { id, lease } = await owned(made);
    const change = { events: [prompt("p")], at: T0, state: { ...initialState(T0), lastEventId: 1 } };
    await a.log.append(lease, change);
    const before = structuredClone(await seen(id));
    const listed = await b.rows.list({ principal: "local", limit: 1 });
    for (const each of [made, change, await seen(id), listed, await take(1, b.log.tail(id, 1, never))]) spoil(each);
    expect(await seen(id)).toEqual(before);
  });

  it("an update is a compare-and-set on a revision that counts every change", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const { rev, state } = (await a.rows.get(id))!;
    const race = await Promise.allSettled([a, b].map((node) => node.rows.update(id, rev, { title: "A" })));
    expect(race.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    let record = await b.rows.update(id, (await b.rows.get(id))!.rev, { spec: { cwd: "/new" } });
    const found = await b.rows.list({ principal: "local", cwd: "/new", limit: 9 });
    expect(found).toEqual([{ ...record, title: "A", spec: { cwd: "/new" }, state, updatedAt: T0 }]);
    for (const step of [() => write(a, lease, []), () => a.leases.release(lease), () => b.leases.claim(id)]) {
      await step();
      await expect(a.rows.update(id, record.rev, { title: "late" })).rejects.toThrow(ConflictError);
      record = (await a.rows.get(id))!;
    }
    await expect(a.rows.update(randomUUID(), 1, { title: "of no session" })).rejects.toThrow(ConflictError);
  });

  it("sessions are found by principal, status, folder, time and text", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned({ spec: { cwd: "/Src/ÄRGER" }, state: failed });
    const state = { ...initialState(T0), lastEventId: 3 };
    await a.log.append(lease, { events: [notice("noise"), prompt("Fix 100% of it"), prompt("second")], at: T0, state });
    await write(a, lease, [prompt("third")], T0 + 9);
    await a.rows.update(id, (await a.rows.get(id))!.rev, { title: "The Größe" });
    const { id: bad } = (await a.rows.create(session({ state: failed, at: T0 + 5 }))).record;
    await a.rows.create(session({ principal: "ann", spec: { cwd: "/Src/ÄRGER" }, state: failed, at: T0 + 9 }));
    const find = async (query: Partial<SessionQuery>): Promise<string[]> =>
      (await b.rows.list({ principal: "local", limit: 9, ...query })).map((found) => found.id);
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

  it("sessions are listed newest first, in pages that neither miss nor repeat any while more are added", async () => {
    const { a, b } = world();
    const made = range(1, 250).map((n) => session({ at: T0 + (n % 60) }));
    await Promise.all(made.map((each) => a.rows.create(each)));
    const pages: string[][] = [];
    let query: SessionQuery = { principal: "local", limit: 40 };
    for (let page = await b.rows.list(query); page.length > 0 && pages.length < 9; page = await b.rows.list(query)) {
      pages.push(page.map(({ id }) => id));
      query = { ...query, before: page.at(-1)! };
      await a.rows.create(session({ at: T0 + 1000 }));
    }
    const order = made.toSorted((x, y) => y.at - x.at || (x.id < y.id ? 1 : -1));
    expect(pages).toEqual(range(0, 6).map((n) => order.slice(n * 40, n * 40 + 40).map(({ id }) => id)));
  });

  it("a purge deletes sessions that ended long ago and have no living owner, oldest first", async () => {
    const { a, b, expireLeaseOfA: outlived, readFromB: seen } = world();
    const made = [5, 1, 2, 3, 4, 9].map((n) => session({ state: failed, at: T0 + n, idempotencyKey: String(n) }));
    for (const each of [...made, session()]) await a.rows.create(each);
    const [last, dead, living] = made.map(({ id }) => id) as [string, string, string];
    await write(a, await claimLease(a, dead), [notice("1")], T0 + 1);
    await outlived();
    await claimLease(b, living);
    const purge = (limit: number, ...statuses: SessionStatus[]) =>
      b.maintenance.purge({ before: T0 + 9, statuses, limit });
    expect([await purge(9), await purge(9, "closed"), await purge(2, "closed", "error")]).toEqual([0, 0, 2]);
    expect([await b.rows.get(last), await seen(dead)]).toMatchObject([{ id: last }, [undefined, []]]);
    expect([await purge(9, "error"), await purge(9, "error")]).toEqual([2, 0]);
    expect(await b.rows.list({ principal: "local", limit: 9 })).toMatchObject([
      { id: made[5]!.id },
      { id: living },
      {},
    ]);
    expect(await a.rows.create({ ...made[1]!, id: randomUUID() })).toMatchObject({ created: true });
  });

  it("a purge of given sessions deletes only ended ones, oldest first", async () => {
    const { a, b } = world();
    const made = [3, 1, 2, 4].map((n) => session({ state: failed, at: T0 + n }));
    for (const each of made) await a.rows.create(each);
    const [newest, oldest, middle, owned] = made.map(({ id }) => id) as [string, string, string, string];
    await claimLease(a, owned);
    const idle = (await a.rows.create(session())).record.id;
    const purge = (limit: number, ...ids: string[]) =>
      b.maintenance.purge({ before: T0 + 9, statuses: ["error"], ids, limit });
    expect(await purge(9)).toBe(0);
    expect(await purge(9, owned, idle, randomUUID(), "x','y\"]")).toBe(0);
    expect(await purge(1, newest, oldest, oldest)).toBe(1);
    expect((await b.rows.list({ principal: "local", limit: 9 })).map(({ id }) => id)).toEqual([
      owned,
      newest,
      middle,
      idle,
    ]);
    expect(await b.maintenance.purge({ before: T0 + 3, statuses: ["error"], ids: [newest, middle], limit: 9 })).toBe(1);
    expect(await b.rows.get(newest)).toMatchObject({ id: newest });
  });

  it("sessions at work without a living owner are abandoned, whichever node opened them", async () => {
    const { a, b, createOwned: owned, expireLeaseOfA: outlived } = world();
    const process = { phase: "live", id: "p", since: T0 } as const;
    const [mine, other] = [await owned({ state: { ...initialState(T0), process } }), await owned({ principal: "ann" })];
    const left = (await a.rows.create(session({ state: { ...initialState(T0), process } }))).record;
    const idle = (await a.rows.create(session())).record;
    await a.leases.claim(idle.id);
    expect(await b.leases.abandoned(9)).toEqual([left]);
    const atWork = async () => new Map((await b.leases.atWork()).map((each) => [each.id, each]));
    expect([...(await atWork()).keys()]).toEqual([mine.id]);
    await write(a, other.lease, [notice("1")]);
    const { state } = (await a.rows.get(other.id))!;
    await a.log.append(other.lease, { events: [], at: T0, state: { ...state, process } });
    expect(await atWork()).toEqual(new Map([mine, other].map(({ id }) => id).map((id) => [id, expect.anything()])));
    for (const at of [T0 + 1, T0 + 2]) {
      await write(a, other.lease, [notice("more")], at);
      for (const each of [mine, other]) expect((await atWork()).get(each.id)).toEqual(await b.rows.get(each.id));
    }
    await outlived();
    expect(await b.leases.atWork()).toEqual([]);
    const ids = (await b.leases.abandoned(9)).map(({ id }) => id);
    expect(ids.toSorted()).toEqual([mine.id, other.id, left.id].toSorted());
    expect(await b.leases.abandoned(2)).toHaveLength(2);
    for (const id of ids) await b.leases.claim(id);
    expect(await b.leases.abandoned(9)).toEqual([]);
  });

  it("sessions are counted by status and principals are listed, whichever node opened them", async () => {
    const { a, b, store } = world();
    expect(await a.maintenance.count()).toEqual({});
    await a.rows.create(session());
    for (const principal of ["local", "ann"]) await a.rows.create(session({ principal, state: failed }));
    expect(await b.maintenance.count()).toEqual({ idle: 1, error: 2 });
    expect((await b.maintenance.principals()).toSorted()).toEqual(["ann", "local"]);
    await store.advance(1);
    expect(await b.maintenance.purge({ before: T0 + 1, statuses: ["error"], limit: 1 })).toBe(1);
    expect(await a.maintenance.count()).toEqual({ idle: 1, error: 1 });
  });

  it("the size of a store grows with each event and shrinks after a purge", async () => {
    const { a, b, createOwned: owned } = world();
    const empty = await b.maintenance.size();
    const { id, lease } = await owned();
    await write(a, lease, [notice("x".repeat(100_000))]);
    const full = await b.maintenance.size();
    expect(full - empty).toBeGreaterThan(90_000);
    await a.leases.release(lease);
    expect(await b.maintenance.purge({ before: T0 + 1, statuses: ["idle"], limit: 1 })).toBe(1);
    expect([await a.rows.get(id), full - (await b.maintenance.size()) > 90_000]).toEqual([undefined, true]);
  });

  it("a purge of a session ends its tails, inboxes and sent commands", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const tail = iterator(b.log.tail(id, 1, never)).next();
    const inbox = iterator(a.inbox.receive(lease, never)).next();
    await a.leases.release(lease);
    const sent = Promise.allSettled([b.inbox.send(id, command(), LONG)]);
    expect(await b.maintenance.purge({ before: T0 + 1, statuses: ["idle"], limit: 1 })).toBe(1);
    const ended = { done: true, value: undefined };
    expect([await tail, await inbox]).toEqual([ended, ended]);
    expect(await sent).toMatchObject([{ reason: { name: "NoAnswerError" } }]);
    await expect(b.inbox.send(id, command(), LONG)).rejects.toThrow(NoAnswerError);
    expect(await iterator(b.log.tail(id, 1, never)).next()).toEqual(ended);
  });
}
