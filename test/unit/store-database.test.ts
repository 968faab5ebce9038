import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { asDatabaseError, troubleOf } from "../../src/store/postgres/connect/database-faults.ts";
import { clientConfig, loadPostgres, targetOf } from "../../src/store/postgres/connect/client-config.ts";
import { findPassword, readTarget } from "../../src/store/postgres/connect/target.ts";

/** Connections to PostgreSQL, as far as no server is needed. */

const read = (url: string) => readTarget(url, () => "me");

describe("the URL of a database", () => {
  it.each([
    ["postgres://db/agents", { host: "db", port: 5432, user: "me", database: "agents", tlsMode: "prefer" }],
    ["postgresql://ann@db:6000/a%20b", { port: 6000, user: "ann", database: "a b", name: "postgres://db:6000/a b" }],
    ["postgres://localhost/a", { tlsMode: "disable", schema: "claude_agents_mcp" }],
    ["postgres://[::1]:5433/a", { host: "::1", port: 5433, name: "postgres://[::1]:5433/a" }],
    ["postgres:///a?host=/run/postgresql&user=bob", { host: "/run/postgresql", user: "bob", tlsMode: "disable" }],
    ["postgres://%2Frun%2Fpg/a", { host: "/run/pg", tlsMode: "disable" }],
    ["postgres://db/a?search_path=mine&sslmode=verify-full", { schema: "mine", tlsMode: "verify-full" }],
    ["postgres://db/a?sslrootcert=/ca.pem&sslkey=/k.pem", { tlsFiles: { ca: "/ca.pem", key: "/k.pem" } }],
  ])("%s is read as libpq reads URLs", (url, target) => {
    expect(read(url)).toMatchObject(target);
  });

  it.each([
    ["postgres://zoe@db/a?sslmod=require", "the parameter sslmod is unknown"],
    ["postgres://zoe@db/a?sslmode=maybe", "sslmode: write one of"],
    ["postgres://zoe@db/a?search_path=a,b", "search_path: name one schema"],
  ])("%s is refused, without the user in the message", (url, reason) => {
    expect(() => targetOf({ url })).toThrow(reason);
    expect(() => targetOf({ url })).toThrow(/^(?!.*zoe)/);
  });
});

describe("the password of a database", () => {
  const folder = mkdtempSync(join(tmpdir(), "ccm-pgpass-"));
  const target = read("postgres://ann@db:6000/agents");
  const url = "postgres://ann@db:6000/agents";
  afterEach(() => vi.unstubAllEnvs());

  it("is the first line of --store-password-file, read anew for each connection", async () => {
    const passwordFile = join(folder, "secret");
    for (const password of ["one:\\", "two"]) {
      writeFileSync(passwordFile, `${password}\nrest\n`, { mode: 0o600 });
      expect(await findPassword(target, { url, passwordFile })).toBe(password);
    }
    chmodSync(passwordFile, 0o644);
    await expect(findPassword(target, { url, passwordFile })).rejects.toThrow("readable by other users");
  });

  it.each([
    ["*:*:*:*:any", "any"],
    ["# db:6000:agents:ann:no\nother:6000:agents:ann:no\ndb:*:agents:ann:a\\:b\\\\c\ndb:*:*:*:late", "a:b\\c"],
    ["db:6001:agents:ann:no", ""],
    ["db:6000:agents", ""],
    ["", ""],
  ])("is found in the user's password file as libpq does: %j", async (lines, password) => {
    vi.stubEnv("HOME", folder);
    vi.stubEnv("PGPASSFILE", join(folder, "none"));
    writeFileSync(join(folder, ".pgpass"), lines, { mode: 0o600 });
    expect(await findPassword(target, { url })).toBe(password);
    rmSync(join(folder, ".pgpass"));
    expect(await findPassword(target, { url })).toBe("");
  });

  it("and nothing else of a connection comes from variables of libpq", () => {
    const variables = [
      "HOST",
      "PORT",
      "USER",
      "PASSWORD",
      "DATABASE",
      "OPTIONS",
      "APPNAME",
      "SSLMODE",
      "CLIENT_ENCODING",
    ];
    for (const name of [...variables, "CONNECT_TIMEOUT", "REPLICATION"]) vi.stubEnv(`PG${name}`, "9");
    const { Client } = loadPostgres(target.name);
    const client: unknown = Reflect.get(new Client(clientConfig(target, { url }, "name")), "connectionParameters");
    expect(JSON.stringify(client)).not.toContain('9"');
    expect(client).toMatchObject({ host: "db", port: 6000, user: "ann", database: "agents", application_name: "name" });
  });
});

describe("an error of PostgreSQL", () => {
  const error = (code: string, message = "m") => Object.assign(new Error(message), { code });

  it.each([
    ["57P01", "down", true, false],
    ["08006", "down", true, false],
    ["ECONNRESET", "down", true, false],
    ["57P03", "down", true, true],
    ["53300", "crowded", true, true],
    ["25006", "readonly", true, true],
    ["40P01", "busy", true, true],
    ["57014", "busy", true, true],
    ["53100", "full", false, true],
    ["28P01", "denied", false, true],
    ["3D000", "missing", false, true],
    ["42501", "rights", false, true],
    ["XX001", "corrupt", false, true],
    ["CA002", "newer", false, true],
    ["SELF_SIGNED_CERT_IN_CHAIN", "tls", false, true],
    ["22P02", "failed", false, true],
  ])("with the code %s is the fault %s (transient: %s, certainly undone: %s)", (code, fault, isTransient, isUndone) => {
    expect(troubleOf(error(code))).toMatchObject({ fault, isTransient, isUndone });
    expect(asDatabaseError(error(code), "postgres://db:5432/a")).toMatchObject({ fault, isOutage: isTransient });
  });

  it("of another cause stays as it is", () => {
    const own = new TypeError("ours");
    expect([troubleOf(own), asDatabaseError(own, "p"), troubleOf(error("CA001"))]).toEqual([undefined, own, undefined]);
  });
});
