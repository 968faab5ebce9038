import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pgbouncer } from "../../../scripts/install-postgres.mjs";
import { freePort } from "../../../scripts/postgres-cluster.mjs";
import type { Database } from "./database.ts";

/** Stops the pooler at the end of input, also after the death of this process. */
const GUARD = `"$@" & pooler=$!; read -r _; kill -INT $pooler; wait $pooler`;

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
  const child = spawn("sh", ["-c", GUARD, "sh", pgbouncer(), "-q", ...asUser, config], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  child.stdin.on("error", () => undefined);
  await listening(port);
  return {
    port,
    async stop(): Promise<void> {
      child.stdin.end();
      if (child.exitCode === null) await once(child, "exit");
      rmSync(folder, { recursive: true });
    },
  };
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    const socket = connect(port, "127.0.0.1");
    const isThere = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isThere) return;
    await sleep(20);
  }
  throw new Error("pgbouncer does not listen");
}
