import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";

import { AppError } from "../../src/domain/error.ts";
import { ClientCleanup } from "../../src/tools/client-cleanup.ts";

function leaving() {
  const warned: unknown[] = [];
  const ended: string[] = [];
  const own = new ClientCleanup({ warn: (_, fields) => void warned.push(fields) });
  const add = (id: string, error?: Error) =>
    own.add(id, async () => {
      ended.push(id);
      return error ? Promise.reject(error) : Promise.resolve();
    });
  return { add, ended, end: () => own.end(), warned };
}

it("`ClientCleanup` ends an entry once with its client, and at once if the client is gone already", () => {
  const { add, end, ended } = leaving();
  add("a");
  add("a");
  expect(ended).toEqual([]);
  end();
  end();
  add("b");
  expect(ended).toEqual(["a", "b"]);
});

it("`ClientCleanup` forgets the first of more than 10,000 entries", () => {
  const { add, end, ended } = leaving();
  for (let at = 0; at <= 10_000; at += 1) add(String(at));
  end();
  expect(ended).toHaveLength(10_000);
  expect(ended[0]).toBe("1");
});

it("an entry that could not be ended is logged, unless its session does not exist", async () => {
  const { add, end, warned } = leaving();
  add("gone", new AppError("SESSION_NOT_FOUND", "There is no session."));
  add("stuck", new Error("the disk is full"));
  end();
  await nextTurn();
  expect(warned).toEqual([{ id: "stuck", error: "Error: the disk is full" }]);
});
