/** The built server over HTTP, in a world of the benchmarks. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

import { mainProgram, nodeArguments } from "../server.mjs";

const run = promisify(execFile);

/** Resolves once the server listens. `complaints` holds the lines of its log with level warning or above. */
export async function startOverHttp(world, flags) {
  const token = "ccm_of-the-load-0123456789-0123456789";
  const tokenFile = join(world.home, "token");
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const store = join(world.home, "load.db");
  // The line with the server's address has level `info`.
  const own = ["--http", "127.0.0.1:0", "--token-file", tokenFile, "--store", store, "--log-level", "info"];
  const child = spawn(process.execPath, [...nodeArguments, mainProgram(), "serve", ...own, ...flags], {
    env: { ...world.environment, CLAUDE_CODE_MCP_CONSTANTS: '{"maxStreams":1000,"shim":false}' },
    stdio: ["ignore", "ignore", "pipe"],
  });
  // Over HTTP the server has no stdin whose end would report the end of the benchmark.
  const end = () => child.kill();
  process.once("exit", end);
  void once(child, "exit").then(() => process.off("exit", end));
  const exited = once(child, "exit").then(([code]) => code);
  const complaints = [];
  const url = await new Promise((resolve, reject) => {
    void exited.then((code) => reject(new Error(`the server ended with ${String(code)}: ${complaints.join("\n")}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      const found = /"url":"([^"]+)"/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
      if (!/"level":"(info|debug)"/.test(line)) complaints.push(line.slice(0, 1_000));
    });
  });
  return {
    pid: child.pid,
    door: { url, token },
    complaints,
    /** Returns all stored events of a session, read directly from the store. */
    async log(sessionId) {
      const args = [mainProgram(), "sessions", "export", sessionId, "--store", store];
      const { stdout } = await run(process.execPath, args, { env: world.environment, maxBuffer: 1_000_000_000 });
      return stdout.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
    },
    /** Resolves to the exit code. */
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}
