import { expect, it } from "vitest";
import { HelloQueue } from "../../src/shim/hello-queue.ts";

it("at most eight connections without a hello are read at a time; the others follow in order of arrival", async () => {
  const queue = new HelloQueue();
  const read: number[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const all = Array.from({ length: 20 }, async (_, at) =>
    queue.run(async () => {
      read.push(at);
      await new Promise<void>((resolve, reject) => {
        ends[at] = (error) => (error ? reject(error) : resolve());
      });
      return at;
    }),
  );
  const settled = Promise.allSettled(all);
  expect(read).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  ends[3]?.();
  expect(await all[3]).toBe(3);
  await expect.poll(() => read.at(-1)).toBe(8);
  ends[0]?.(new Error("no hello"));
  await expect(all[0]).rejects.toThrow("no hello");
  await expect.poll(() => read.at(-1)).toBe(9);
  for (let at = 0; at < 20; at += 1) {
    await expect.poll(() => ends[at]).toBeDefined();
    ends[at]?.();
  }
  expect((await settled).filter(({ status }) => status === "fulfilled")).toHaveLength(19);
  expect(read).toEqual(Array.from({ length: 20 }, (_, at) => at));
  // All eight places are free again.
  const more = Array.from({ length: 9 }, async (_, at) =>
    queue.run(async () => (read.push(100 + at), new Promise(() => undefined))),
  );
  expect([more.length, read.at(-1)]).toEqual([9, 107]);
});
