import { expect, it } from "vitest";
import { isStorePath, storeKindOf } from "../../src/config/store-spelling.ts";
import { StoreSetting } from "../../src/config/store.ts";

/** Spellings of `--store`. For default paths see `test/unit/store-sqlite.test.ts`. */

it.each(["store.db", "/srv/s.db", "~/s.db", "C:\\s.db", "c://s.db", "a/file:x", "MEMORY:"])("%s is a path", (text) => {
  expect(isStorePath(text)).toBe(true);
  expect(StoreSetting.parse(text)).toEqual({ kind: "sqlite", file: text });
});

it("memory: is not taken for a path", () => {
  expect(isStorePath("memory:")).toBe(false);
  expect(StoreSetting.parse("memory:")).toEqual({ kind: "memory" });
});

it.each(["postgres://host/db", " S3+https://bucket", ":memory:", "file:s.db"])(
  "%s is not taken for a path, and the schema refuses it",
  (text) => {
    expect([isStorePath(text), storeKindOf(text)]).toEqual([false, undefined]);
    expect(StoreSetting.safeParse(text).error?.message).toContain("write a path without file: or another scheme");
  },
);
