import { expect, it } from "vitest";
import type { InboxItem } from "../../../src/engine/ports.ts";
import { command, done, iterator, LONG, never, notice, notices, session, SHORT, T0, write } from "./vocabulary.ts";
import type { World } from "./vocabulary.ts";

const ended = { done: true, value: undefined };

/** Tests of the ends of tails, inboxes and stores. */
export function endTests(world: () => World): void {
  it.each(["tail", "inbox"] as const)("a %s ends on abort, whether asleep or with items left", async (reader) => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    let end = new AbortController();
    const open = (): AsyncIterator<unknown> =>
      iterator<unknown>(reader === "tail" ? b.log.tail(id, 1, end.signal) : a.inbox.receive(lease, end.signal));
    const sleeping = open().next();
    end.abort();
    expect(await sleeping).toEqual(ended);
    expect(await open().next()).toEqual(ended);
    end = new AbortController();
    await write(a, lease, notices(1, 3));
    const sent = [command(), command()].map((each) => b.inbox.send(id, each, LONG));
    const settled = Promise.allSettled(sent);
    const busy = open();
    expect((await busy.next()).done).toBe(false);
    end.abort();
    expect(await busy.next()).toEqual(ended);
    await b.close();
    await settled;
  });

  it("a closed store refuses everything and ends its readers, but leaves other nodes alone", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const tail = iterator(a.log.tail(id, 1, never)).next();
    const inbox = iterator(a.inbox.receive(lease, never));
    const sent = Promise.allSettled([a.inbox.send(id, command(), LONG)]);
    const item = ((await inbox.next()) as IteratorYieldResult<InboxItem>).value;
    const more = inbox.next();
    await a.close();
    await a.close();
    expect([await tail, await more]).toEqual([ended, ended]);
    expect(await sent).toMatchObject([{ reason: { message: expect.stringContaining("closed") as string } }]);
    const calls = [
      async () => a.leases.heartbeat(1),
      async () => a.rows.create(session()),
      async () => a.rows.get(id),
      async () => a.rows.update(id, 1, {}),
      async () => a.rows.list({ principal: "local", limit: 1 }),
      async () => a.leases.claim(id),
      async () => a.leases.release(lease),
      async () => a.log.append(lease, { events: [], at: T0, state: session().state }),
      async () => a.log.read(id, 1, 1),
      async () => iterator(a.log.tail(id, 1, never)).next(),
      async () => a.inbox.send(id, command(), SHORT),
      async () => iterator(a.inbox.receive(lease, never)).next(),
      async () => a.maintenance.size(),
      async () => a.leases.abandoned(1),
      async () => a.maintenance.purge({ before: 1, statuses: ["idle"], limit: 1 }),
      async () => item.ack(done(1)),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow("closed");
    expect(await b.rows.get(id)).toMatchObject({ id, owner: { nodeId: "a", alive: true } });
  });

  it("a store completes writes that were requested before its close", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const { state } = (await a.rows.get(id))!;
    const written = [1, 2, 3].map(async (lastEventId) =>
      a.log.append(lease, { events: [notice("n")], at: T0, state: { ...state, lastEventId } }),
    );
    await a.close();
    await Promise.all(written);
    expect(await b.log.read(id, 1, 9)).toHaveLength(3);
  });
}
