import { describe, expect, it } from "vitest";
import { PROCESS_VARIABLE } from "../../src/domain/names.ts";
import {
  TAG_VARIABLE,
  createProcessTag,
  TAG_COUNT,
  parseTagNumber,
  parseTagValue,
} from "../../src/claude/supervise/process-tag.ts";

const server = { store: "/home/ann/store.db", pid: 4_194_303, startedAt: "123456" };

describe("the tag of a process", () => {
  const tag = createProcessTag(server, "a-session:1", 7);

  it("the value of the variable names store, server and process", () => {
    const named = parseTagValue(tag.value, server.store);
    expect(named).toMatchObject({ pid: server.pid, isOfStore: true, name: "a-session:1" });
    expect([named?.began("123456"), named?.began("123457")]).toEqual([true, false]);
    expect(parseTagValue(tag.value, "/home/bob/store.db")?.isOfStore).toBe(false);
  });

  it("the tag is in the same variable for every reader", () => {
    expect(TAG_VARIABLE).toBe(PROCESS_VARIABLE);
  });

  it("the number names store and server", () => {
    const named = parseTagNumber(tag.number ?? "", server.store);
    expect(named).toMatchObject({ pid: server.pid, isOfStore: true });
    expect([named?.began("123456"), named?.began("123457")]).toEqual([true, false]);
    expect(parseTagNumber(tag.number ?? "", "/home/bob/store.db")?.isOfStore).toBe(false);
  });

  it("the number differs for all processes of a server, and is a limit that the kernel accepts", () => {
    const numbers = Array.from({ length: TAG_COUNT }, (_, count) =>
      BigInt(createProcessTag(server, "a:1", count).number ?? ""),
    );
    expect(new Set(numbers).size).toBe(TAG_COUNT);
    expect(numbers.every((number) => number >= 2n ** 62n && number < 2n ** 63n)).toBe(true);
    const others = [
      { ...server, pid: 1 },
      { ...server, store: "b" },
      { ...server, startedAt: "1" },
    ];
    for (const other of others)
      expect(createProcessTag(other, "a:1", 7)).not.toEqual(createProcessTag(server, "a:1", 7));
  });

  it.each(["", "a-session:1", "000000000000/12/x", "000000000000/12-000000000000/"])(
    "a tag is not read from %o",
    (value) => {
      expect(parseTagValue(value, server.store)).toBeUndefined();
    },
  );

  it.each(["0", "10240", String(2n ** 62n - 1n), String(2n ** 63n), String(2n ** 64n - 1n)])(
    "a tag is not read from the limit %s of another program",
    (number) => {
      expect(parseTagNumber(number, server.store)).toBeUndefined();
    },
  );
});
