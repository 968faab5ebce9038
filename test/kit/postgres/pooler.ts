import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pgbouncer } from "../../../scripts/install-postgres.mjs";
import { freePort } from "../../../scripts/postgres-cluster.mjs";
import type { Database } from "./database.ts";
import { startGuarded } from "./guarded.ts";

/** Starts pgbouncer in front of the server of `database`. It shares connections by session or by transaction. */
export async function startPooler(database: Database, mode: "session" | "transaction") {
  const folder = mkdtempSync(join(tmpdir(), "ccm-pooler-"));
  const port = await freePort();
  const { password, port: target, user } = database.login;
  const settings = {
    listen_addr: "127.0.0.1",
    listen_port: String(port),
    unix_socket_dir: "",
    auth_type: "scram-sha-256",
    auth_file: join(folder, "users"),
    pool_mode: mode,
    ignore_startup_parameters: "options,extra_float_digits",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const config = join(folder, "pgbouncer.ini");
  writeFileSync(join(folder, "users"), `"${user}" "${password}"\n`);
  writeFileSync(config, `[databases]\n* = host=127.0.0.1 port=${String(target)}\n[pgbouncer]\n${lines.join("\n")}\n`);
  // Readable for the user as whom pgbouncer runs.
  chmodSync(folder, 0o755);
  const asUser = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  const pooler = await startGuarded([pgbouncer(), "-q", ...asUser, config], port);
  return {
    port,
    async stop(): Promise<void> {
      await pooler.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
