import { describe, expect, it } from "vitest";
import { PROCESS_VARIABLE } from "../../src/domain/names.ts";
import { MARK_VARIABLE, markOf, MARKS, serverOfNumber, serverOfValue } from "../../src/claude/supervise/mark.ts";

const server = { store: "/home/ann/store.db", pid: 4_194_303, startedAt: "123456" };

describe("the mark of a process", () => {
  const mark = markOf(server, "a-session:1", 7);

  it("has store, server and process in the variable, in full", () => {
    const named = serverOfValue(mark.value, server.store);
    expect(named).toMatchObject({ pid: server.pid, isOfStore: true, name: "a-session:1" });
    expect([named?.began("123456"), named?.began("123457")]).toEqual([true, false]);
    expect(serverOfValue(mark.value, "/home/bob/store.db")?.isOfStore).toBe(false);
  });

  it("has the same variable name for its writer and its reader", () => {
    expect(MARK_VARIABLE).toBe(PROCESS_VARIABLE);
  });

  it("has store and server in the number", () => {
    const named = serverOfNumber(mark.number ?? "", server.store);
    expect(named).toMatchObject({ pid: server.pid, isOfStore: true });
    expect([named?.began("123456"), named?.began("123457")]).toEqual([true, false]);
    expect(serverOfNumber(mark.number ?? "", "/home/bob/store.db")?.isOfStore).toBe(false);
  });

  it("differs for all processes of a server, and is a limit that the kernel accepts", () => {
    const numbers = Array.from({ length: MARKS }, (_, count) => BigInt(markOf(server, "a:1", count).number ?? ""));
    expect(new Set(numbers).size).toBe(MARKS);
    expect(numbers.every((number) => number >= 2n ** 62n && number < 2n ** 63n)).toBe(true);
    const others = [
      { ...server, pid: 1 },
      { ...server, store: "b" },
      { ...server, startedAt: "1" },
    ];
    for (const other of others) expect(markOf(other, "a:1", 7)).not.toEqual(markOf(server, "a:1", 7));
  });

  it.each(["", "a-session:1", "000000000000/12/x", "000000000000/12-000000000000/"])("is not read from %o", (value) => {
    expect(serverOfValue(value, server.store)).toBeUndefined();
  });

  it.each(["0", "10240", String(2n ** 62n - 1n), String(2n ** 63n), String(2n ** 64n - 1n)])(
    "is not read from a limit of %s, which another program has set",
    (number) => {
      expect(serverOfNumber(number, server.store)).toBeUndefined();
    },
  );
});
