import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { isStorePath, storeKindOf } from "../../src/config/store-spelling.ts";
import { storePasswordFile, StoreSetting, storeTraits } from "../../src/config/store.ts";

/** Spellings of `--store`. For default paths see `test/unit/store-sqlite.test.ts`. */

it.each(["store.db", "/srv/s.db", "~/s.db", "C:\\s.db", "c://s.db", "a/file:x", "MEMORY:"])("%s is a path", (text) => {
  expect(isStorePath(text)).toBe(true);
  expect(StoreSetting.parse(text)).toEqual({ kind: "sqlite", file: text });
});

it("memory: is not taken for a path", () => {
  expect(isStorePath("memory:")).toBe(false);
  expect(StoreSetting.parse("memory:")).toEqual({ kind: "memory" });
});

it.each(["mysql://host/db", " S3+https://bucket", ":memory:", "file:s.db", "postgres:/ann:pw@h/d"])(
  "%s is not taken for a path, and the schema refuses it",
  (text) => {
    expect([isStorePath(text), storeKindOf(text)]).toEqual([false, undefined]);
    expect(StoreSetting.safeParse(text).error?.message).toContain("write a path without file: or another scheme");
  },
);

describe("a PostgreSQL URL", () => {
  it.each([
    ["postgres://ann@db.example/agents", "postgres://db.example:5432/agents"],
    ["postgresql://db.example:6000/agents?sslmode=verify-full", "postgres://db.example:6000/agents"],
    ["postgres:///agents?host=/run/postgresql", "postgres:///run/postgresql:5432/agents"],
    ["postgres://[::1]/agents", "postgres://[::1]:5432/agents"],
    ["postgres://h/agents?search_path=team", "postgres://h:5432/agents/team"],
  ])("%s is a database, the same for each user and each parameter", (url, identity) => {
    expect(isStorePath(url)).toBe(false);
    const location = StoreSetting.parse(url);
    expect(location).toEqual({ kind: "postgres", url });
    expect(storeTraits(location)).toEqual({ text: url, identity, isShared: true });
  });

  it.each([
    ["postgres://ann:s3cret@h/d", "has a password"],
    ["postgres://h/d?password=s3cret", "has a password"],
    ["postgres://h/d?sslpassword=s3cret", "has a password"],
    ["postgres://h/d?PASSWORD=s3cret", "has a password"],
    ["postgres://h", "names no database"],
    ["postgres://h/d/s3cret", "names no database"],
    ["postgres://ann:s3cret@h:port/d", "cannot be read"],
  ])("%s is refused, and the message keeps its secret", (url, why) => {
    const message = StoreSetting.safeParse(url).error?.message ?? "";
    expect(message).toContain(why);
    expect(message).not.toContain("s3cret");
  });

  it("the password file belongs to the location, and is closed to sessions, as is the user's own", () => {
    const flags = ["--store", "postgres://h/d", "--store-password-file", "/etc/secret"];
    const { store } = loadConfig({ argv: flags, env: {} });
    expect(store).toEqual({ kind: "postgres", url: "postgres://h/d", passwordFile: "/etc/secret" });
    expect(storePasswordFile(store!, { HOME: "/home/ann" })).toBe("/etc/secret");
    const { store: without } = loadConfig({ argv: flags.slice(0, 2), env: {} });
    expect(storePasswordFile(without!, { HOME: "/home/ann" })).toBe("/home/ann/.pgpass");
    expect(storePasswordFile(without!, { HOME: "/home/ann", PGPASSFILE: "/p" })).toBe("/p");
    expect(storePasswordFile({ kind: "memory" }, { HOME: "/home/ann" })).toBeUndefined();
  });

  it("a password file without a database is refused, and has no effect with another store", () => {
    const password = ["--store-password-file", "/etc/secret"];
    expect(() => loadConfig({ argv: password, env: {} })).toThrow("Add --store postgres://USER@HOST/DATABASE.");
    expect(loadConfig({ argv: [...password, "--store", "memory:"], env: {} }).store).toEqual({ kind: "memory" });
  });
});
