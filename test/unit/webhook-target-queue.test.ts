import { expect, it } from "vitest";
import { TargetQueue } from "../../src/webhooks/target-queue.ts";

/** Slots for deliveries of the operator and of callers, whose receivers may be silent. */

/** A queue whose items end with `end`. */
function silentQueue() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const free: number[] = [];
  const onFree = () => void free.push(queue.free);
  const queue = new TargetQueue<string>(async (item) => {
    begun.push(item);
    return new Promise((resolve) => ends.set(item, resolve));
  }, onFree);
  const add = (owner: string | undefined, count: number) => {
    for (let n = 0; n < count; n += 1) {
      const target = `${owner ?? "operator"}-${String(n)}`;
      queue.add({ target, owner }, target);
    }
  };
  const countOf = (name: string) => begun.filter((item) => item.startsWith(name)).length;
  const end = async (item: string) => {
    ends.get(item)?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { add, countOf, end, free, queue };
}

it("the end of an item is reported once its slot is free", async () => {
  const { add, end, free } = silentQueue();
  add(undefined, 1);
  await end("operator-0");
  expect(free).toEqual([16]);
});

it("silent receivers of a caller take half of the slots, and those of all callers leave slots to the operator", async () => {
  const { add, countOf, end, queue } = silentQueue();
  add("eve", 100);
  expect([countOf("eve"), queue.free, queue.full]).toEqual([8, 8, { targets: [], owners: ["eve"], isOwned: false }]);
  add("mal", 100);
  expect([countOf("mal"), queue.free, queue.full.isOwned]).toEqual([4, 4, true]);
  add("ada", 1);
  add(undefined, 3);
  expect([countOf("ada"), countOf("operator"), queue.free]).toEqual([0, 3, 1]);
  await end("eve-0");
  // The oldest that waits and may begin.
  expect([countOf("eve"), queue.free]).toEqual([9, 1]);
});
