import { chmod, writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { createMachine } from "../../src/doctor/machine.ts";
import { checkStore } from "../../src/doctor/store.ts";
import { Database, describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { startPooler } from "../kit/postgres/pooler.ts";
import { openPostgres } from "../kit/postgres/store.ts";
import { session, TTL } from "../kit/store/vocabulary.ts";

/** A database that cannot be used is refused with the reason and the remedy, without secrets. */

describePostgres("a database is refused", () => {
  const database = useDatabase();

  /** Returns the message of the first call, which `doctor` finds, too. */
  async function messageOf(url: string, passwordFile = database().passwordFile): Promise<string> {
    const found = await checkStore(createMachine(["--store", url, "--store-password-file", passwordFile], {}));
    const opened = Promise.resolve().then(() => openPostgres({ kind: "postgres", url, passwordFile }, "n"));
    const message = await opened
      .then(async (store) => store.maintenance.count())
      .then(
        () => "opened",
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
    await opened.then(async (store) => store.close()).catch(() => undefined);
    const [{ level, text } = { level: "none", text: "" }] = found;
    const isSame = message === "opened" ? level === "ok" : level === "error" && message.startsWith(text);
    expect(isSame, `doctor: ${text}`).toBe(true);
    return message;
  }

  it("but not if it can be used: `doctor` counts its sessions and servers, and creates nothing", async () => {
    const machine = createMachine(database().flags(), {});
    const [before] = await checkStore(machine);
    expect(before?.text).toMatch(/There are no sessions in .* yet; .* PostgreSQL \d+\.\d+.*, \d+ of 100 connections/);
    expect(await database().query("SELECT count(*) FROM pg_namespace WHERE nspname = 'claude_agents_mcp'")).toBe("0");
    const store = openPostgres({ kind: "postgres", ...locationOf() }, "n");
    await store.leases.heartbeat(TTL);
    await store.rows.create(session());
    expect((await checkStore(machine))[0]?.text).toContain(": 1 session, format 1, 1 running server, PostgreSQL");
    await store.close();
  });

  const locationOf = () => ({ url: database().url(), passwordFile: database().passwordFile });

  it("with a wrong password", async () => {
    const wrong = `${database().passwordFile}-wrong`;
    await writeFile(wrong, "s3cret", { mode: 0o600 });
    const message = await messageOf(database().url(), wrong);
    expect(message).toContain("Check the user in the URL, and the password in --store-password-file");
    expect(message).not.toContain("s3cret");
  });

  it("with a password file that others can read, or without a password", async () => {
    const open = `${database().passwordFile}-open`;
    await writeFile(open, "s3cret");
    await chmod(open, 0o644);
    expect(await messageOf(database().url(), open)).toContain("readable by other users");
    await chmod(open, 0o600);
    await writeFile(open, "\ns3cret");
    expect(await messageOf(database().url(), open)).toContain("has no password in its first line");
  });

  it("that does not exist, or does not answer", async () => {
    expect(await messageOf(`${database().url()}x`)).toContain("Create it, or name another one with --store.");
    expect(await messageOf("postgres://agents@127.0.0.1:1/d")).toContain("Check that PostgreSQL runs");
  });

  it("that cannot hold every text", async () => {
    const latin = await Database.create(undefined, "template0 ENCODING 'LATIN1' LOCALE 'C'");
    expect(await messageOf(latin.url(), latin.passwordFile)).toContain("ENCODING 'UTF8'");
    await latin.drop();
  });

  it("in which the user may create nothing", async () => {
    await database().manage(`ALTER DATABASE ${database().name} OWNER TO postgres`);
    expect(await messageOf(`${database().url()}?search_path=new`)).toContain("grant CREATE on it");
    await database().manage(`ALTER DATABASE ${database().name} OWNER TO agents`);
  });

  it("with a parameter that is unknown, in a TLS mode that it lacks, and after a newer version", async () => {
    expect(await messageOf(`${database().url()}?sslmod=require`)).toContain("sslmod");
    expect(await messageOf(`${database().url()}?sslmode=require`)).toContain("sslmode");
    const newer = `${database().url()}?search_path=newer`;
    expect(await messageOf(newer)).toBe("opened");
    await database().query("UPDATE newer.meta SET value = '1000' WHERE key = 'readable_by'");
    expect(await messageOf(newer)).toContain("Update claude-agents-mcp.");
  });

  it("behind a pooler in transaction mode", async () => {
    const pooler = await startPooler(database(), "transaction");
    expect(await messageOf(database().url(pooler.port))).toContain("pooler in session mode");
    await pooler.stop();
  });

  it("but not behind a pooler in session mode", async () => {
    const pooler = await startPooler(database(), "session");
    expect(await messageOf(database().url(pooler.port))).toBe("opened");
    await pooler.stop();
  });
});
