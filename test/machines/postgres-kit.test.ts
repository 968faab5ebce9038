import { execFile } from "node:child_process";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { once } from "node:events";
import { expect, inject, it } from "vitest";
import { TcpProxy } from "../kit/faults/tcp-proxy.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { startPooler } from "../kit/postgres/pooler.ts";

/** The faults that test/machines causes are real: the database or the network behaves as described. */

describePostgres("the database of the tests", () => {
  const database = useDatabase();

  it("syncs its commits, and asks for a password", async () => {
    expect(await database().query("SHOW fsync")).toBe("on");
    expect(await database().manage("SELECT DISTINCT auth_method FROM pg_hba_file_rules")).toBe("scram-sha-256");
  });

  it("refuses writes and connections when told to", async () => {
    await database().query("CREATE TABLE t (n int)");
    await database().setReadOnly(true);
    await expect(database().query("INSERT INTO t VALUES (1)")).rejects.toThrow("read-only transaction");
    await database().setReadOnly(false);
    await database().limitConnections(0);
    await expect(database().query("SELECT 1")).rejects.toThrow("too many connections");
    await database().limitConnections(-1);
    expect(await database().query("INSERT INTO t VALUES (1) RETURNING n")).toBe("1");
  });

  it("is behind a proxy that freezes, continues and cuts its connections", async () => {
    const proxy = await TcpProxy.open(inject("postgres")!.port);
    const socket = connect(proxy.port, "127.0.0.1");
    // SSLRequest, answered with N (or S) by any PostgreSQL.
    const request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
    const answered = once(socket, "data");
    await once(socket, "connect");
    proxy.freeze();
    socket.write(request);
    const late = connect(proxy.port, "127.0.0.1");
    await once(late, "connect");
    late.write(request);
    expect([socket.bytesRead, late.bytesRead]).toEqual([0, 0]);
    const lateAnswered = once(late, "data");
    proxy.continue();
    expect(String(await answered)).toMatch(/[NS]/);
    await lateAnswered;
    socket.on("error", () => undefined);
    const ended = new Promise((resolve) => socket.once("close", resolve));
    late.on("error", () => undefined);
    proxy.cut();
    await ended;
    await proxy.close();
  });

  it("is behind a pooler that gives each transaction any connection", async () => {
    const pooler = await startPooler(database(), "transaction");
    const place = ["-h", "127.0.0.1", "-p", String(pooler.port), "-U", "agents", "-d", database().name];
    const { bin, password } = inject("postgres")!;
    const { stdout } = await promisify(execFile)(join(bin, "psql"), ["-XAtc", "SELECT 41 + 1", ...place], {
      env: { PGPASSWORD: password },
    });
    expect(stdout).toBe("42\n");
    await pooler.stop();
  });
});
