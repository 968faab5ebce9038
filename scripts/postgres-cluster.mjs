// Starts a PostgreSQL server of the tests' own: on a free loopback port, with its data in a temporary folder, as another user
// if this one is root, whom PostgreSQL refuses. No server outlives the process that started it, even if that is killed.
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { postgresFolder } from "./install-postgres.mjs";

/** Time for a start or an end, ms. */
const LIMIT_MS = 60_000;

/** User in the operating system, created by Debian's package. */
const USER = "postgres";

/**
 * Runs a server until a line names the signal to send. At the end of input, as after the death of the process that would write
 * the line, stops the server and removes the folder.
 */
const GUARD = `"$1" -D "$2/data" >>"$2/log" 2>&1 & server=$!
if read -r signal; then kill -"$signal" $server; wait $server; exit; fi
kill -INT $server; wait $server; rm -rf "$2"`;

export class Cluster {
  #guard;

  constructor({ bin, folder, password, port }) {
    Object.assign(this, { bin, folder, password, port, user: USER });
  }

  /** Creates and starts a server, with its data below `parent`. `settings` are lines of postgresql.conf. */
  static async start(settings = [], parent = tmpdir()) {
    const bin = postgresFolder();
    const folder = mkdtempSync(join(parent, "ccm-postgres-"));
    const cluster = new Cluster({ bin, folder, password: randomBytes(12).toString("hex"), port: await freePort() });
    cluster.#create(settings);
    await cluster.start();
    return cluster;
  }

  #create(settings) {
    const passwordFile = join(this.folder, "password");
    writeFileSync(passwordFile, this.password, { mode: 0o600 });
    const owner = userId();
    if (owner) for (const path of [this.folder, passwordFile]) chownSync(path, owner.uid, owner.gid);
    const words = ["-D", join(this.folder, "data"), "-U", USER, "-A", "scram-sha-256", `--pwfile=${passwordFile}`];
    const [command, ...rest] = asUser([join(this.bin, "initdb"), "-E", "UTF8", "--locale=C.UTF-8", "-N", ...words]);
    execFileSync(command, rest, { cwd: this.folder, stdio: ["ignore", "ignore", "inherit"] });
    const lines = [
      "listen_addresses = '127.0.0.1'",
      `port = ${this.port}`,
      `unix_socket_directories = ''`,
      ...settings,
    ];
    writeFileSync(join(this.folder, "data/postgresql.auto.conf"), `${lines.join("\n")}\n`);
  }

  /** Starts the server again after `stop`. */
  async start() {
    const [command, ...words] = asUser(["sh", "-c", GUARD, "sh", join(this.bin, "postgres"), this.folder]);
    // A group of its own, so that Ctrl-C reaches the guard only as the end of this process.
    this.#guard = spawn(command, words, { cwd: this.folder, stdio: ["pipe", "ignore", "inherit"], detached: true });
    this.#guard.stdin.on("error", () => undefined);
    await this.#ready(Date.now() + LIMIT_MS);
  }

  async #ready(deadline) {
    const pidFile = join(this.folder, "data/postmaster.pid");
    while (!existsSync(pidFile) || !/^ready/m.test(readFileSync(pidFile, "utf8"))) {
      if (this.#guard.exitCode !== null || Date.now() > deadline) {
        throw new Error(`PostgreSQL did not start:\n${this.log().split("\n").slice(-10).join("\n")}`);
      }
      await sleep(20);
    }
  }

  log() {
    return readFileSync(join(this.folder, "log"), "utf8");
  }

  /** Stops the server, by default as an orderly restart does; QUIT is a crash. Keeps its data. */
  async stop(signal = "INT") {
    this.#guard.stdin.write(`${signal}\n`);
    await once(this.#guard, "exit", { signal: AbortSignal.timeout(LIMIT_MS) });
  }

  /** Ends the server, and removes its data. */
  async remove() {
    if (this.#guard.exitCode !== null) await this.start();
    this.#guard.stdin.end();
    await once(this.#guard, "exit", { signal: AbortSignal.timeout(LIMIT_MS) });
  }
}

/** Returns a command that runs `words` as a user whom PostgreSQL accepts. */
function asUser(words) {
  return userId() ? ["runuser", "-u", USER, "--", ...words] : words;
}

/** Returns the user and group of the server; `undefined` if they are those of this process. */
function userId() {
  if (process.getuid?.() !== 0) return undefined;
  const found = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
  if (!found) throw new Error(`PostgreSQL does not run as root, and there is no user ${USER}. Create it.`);
  return { uid: Number(found[1]), gid: Number(found[2]) };
}

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
