import { expect, it } from "vitest";
import { type InboxItem, NoAnswerError } from "../../../src/engine/ports.ts";
import { claimLease, command, done, iterator, LONG, never, range, session, SHORT, take } from "./vocabulary.ts";
import { type World } from "./vocabulary.ts";

async function nextItem(items: AsyncIterator<InboxItem>): Promise<InboxItem> {
  const { done: over, value } = await items.next();
  if (over) throw new Error("the inbox has ended");
  return value;
}

/** Tests of commands to the owner. */
export function inboxTests(world: () => World): void {
  it("a command from any node reaches the owner once, and its answer reaches all senders", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const asked = range(1, 3).map(() => command());
    const inbox = take(3, a.inbox.receive(lease, never));
    const sent = [a, b, a, b, b].map((node, n) => node.inbox.send(id, asked[n % 3]!, LONG));
    const items = await inbox;
    for (const item of items) await item.ack(done(asked.findIndex((each) => each.id === item.command.id)));
    await items[0]!.ack(done(9));
    const again = asked.map((each) => b.inbox.send(id, each, SHORT));
    expect(await Promise.all([...sent, ...again])).toEqual([0, 1, 2, 0, 1, 0, 1, 2].map(done));
  });

  it("a command waits for a future owner as long as its sender waits", async () => {
    const { a, b, next } = world();
    const { id } = (await a.rows.create(session())).record;
    await expect(b.inbox.send(id, command("gave up"), SHORT)).rejects.toThrow(NoAnswerError);
    const sent = b.inbox.send(id, command("waits"), LONG);
    const item = await next(await claimLease(a, id));
    expect(item.command).toMatchObject({ data: { by: "waits" } });
    await item.ack(done(7));
    expect(await sent).toEqual(done(7));
  });

  it("an unanswered command goes to the next owner, and the former owner's answer is dropped", async () => {
    const { a, b, expireLeaseOfA: outlived, createOwned: owned, next } = world();
    const { id, lease } = await owned();
    const sent = b.inbox.send(id, command(), LONG);
    const old = a.inbox.receive(lease, never)[Symbol.asyncIterator]();
    const late = ((await old.next()) as IteratorYieldResult<InboxItem>).value;
    const over = old.next();
    await outlived();
    const item = await next(await claimLease(b, id), b);
    expect(late.command).toEqual(item.command);
    await late.ack(done(1));
    await item.ack(done(2));
    expect([await sent, await over]).toEqual([done(2), { done: true, value: undefined }]);
  });

  it("a command in hand is not delivered to its owner twice, and its late answer is kept", async () => {
    const { a, b, createOwned: owned } = world();
    const { id, lease } = await owned();
    const [one, two] = [command(), command()];
    const items = iterator(a.inbox.receive(lease, never));
    const gaveUp = b.inbox.send(id, one, 10 * SHORT);
    gaveUp.catch(() => undefined);
    const item = await nextItem(items);
    await expect(gaveUp).rejects.toThrow(NoAnswerError);
    const again = [b.inbox.send(id, one, LONG), b.inbox.send(id, two, LONG)];
    const other = await nextItem(items);
    expect(other.command.id).toBe(two.id);
    await other.ack(done(2));
    await item.ack(done(1));
    expect(await Promise.all(again)).toEqual([done(1), done(2)]);
    await expect(b.inbox.send(id, command(), SHORT)).rejects.toThrow(NoAnswerError);
  });

  it("a session keeps its last thousand answers", async () => {
    const { a, createOwned: owned } = world();
    const { id, lease } = await owned();
    const items = iterator(a.inbox.receive(lease, never));
    const asked = range(0, 1000).map(() => command());
    for (const [n, each] of asked.entries()) {
      const sent = a.inbox.send(id, each, LONG);
      await (await nextItem(items)).ack(done(n));
      await sent;
    }
    expect(await a.inbox.send(id, asked[1]!, SHORT)).toEqual(done(1));
    await expect(a.inbox.send(id, asked[0]!, SHORT)).rejects.toThrow(NoAnswerError);
  });
}
