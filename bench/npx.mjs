/** Measures the first start by npx, with a download at 10 Mbit/s from a registry on loopback. */
import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { packInto } from "../scripts/packed.mjs";
import { withDaemons } from "./daemons.mjs";
import { clientOf } from "./server.mjs";

const BYTES_PER_MS = 1_250;
const CHUNK = 16_384;
const BASE = "npx of an empty package";

export const npx = {
  name: "npx",
  about: "first start by npx, with an empty cache and a download at 10 Mbit/s",
  rows: [
    { row: "initialize is answered", of: "initialize", base: BASE, unit: "ms", atMost: 3 },
    { row: "the download alone, at 10 Mbit/s", of: "line", unit: "ms" },
    { row: "the package", of: "package", unit: "bytes", atMostAlone: 1_000_000 },
  ],
  async run({ figures, progress, rounds, world }) {
    const [empty, own] = [emptyPackage(world.home), { name: "claude-agents-mcp", file: packInto(world.home) }];
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      await withRegistry(world, empty, async ({ environment: env }) => {
        const options = { env, cwd: env.HOME };
        await figures.timed(BASE, async () => promisify(execFile)("npx", ["-y", "empty"], options));
      });
      await withRegistry(world, own, async (user, sent) => {
        // Runs outside the repository, because in its own repository npx would run the sources.
        const started = `cd "$HOME" && exec npx -y claude-agents-mcp serve`;
        const environment = { ...user.environment, CLAUDE_CODE_MCP_CONSTANTS: '{"daemonStartMs":60000}' };
        const program = clientOf("sh", ["-c", started], environment);
        await figures.timed("initialize", program.connect);
        figures.note("line", sent() / BYTES_PER_MS);
        await program.client.close();
      });
      figures.note("package", readFileSync(own.file).length);
    }
  },
};

function emptyPackage(home) {
  const [folder, file] = [join(home, "empty/package"), join(home, "empty.tgz")];
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "empty", version: "1.0.0", bin: "main.js" }));
  writeFileSync(join(folder, "main.js"), "#!/usr/bin/env node\n", { mode: 0o755 });
  execFileSync("tar", ["-C", join(home, "empty"), "-czf", file, "package"]);
  return { name: "empty", file };
}

/**
 * Runs `work` as a user with nothing installed, whose registry has only this package. Calls `work` with a world, and with a
 * function that returns the number of bytes sent by the registry. The daemon waits for no other download, because nothing else
 * can be installed.
 */
async function withRegistry(world, { file, name }, work) {
  const body = readFileSync(file);
  const manifest = JSON.parse(execFileSync("tar", ["-xOf", file, "package/package.json"], { encoding: "utf8" }));
  const integrity = `sha512-${createHash("sha512").update(body).digest("base64")}`;
  let sent = 0;
  const server = createServer((request, response) => {
    const tarball = `http://127.0.0.1:${String(server.address().port)}/${name}.tgz`;
    const version = { ...manifest, dist: { tarball, integrity } };
    const packument = { name, "dist-tags": { latest: manifest.version }, versions: { [manifest.version]: version } };
    const answers = { [`/${name}`]: Buffer.from(JSON.stringify(packument)), [`/${name}.tgz`]: body };
    void send(response, answers[request.url]);
  });
  async function send(response, answer) {
    response.writeHead(answer ? 200 : 404);
    for (let at = 0; at < (answer?.length ?? 0) && !response.destroyed; at += CHUNK) {
      const chunk = answer.subarray(at, at + CHUNK);
      await sleep(chunk.length / BYTES_PER_MS);
      response.write(chunk);
      sent += chunk.length;
    }
    response.end();
  }
  await once(server.listen(0, "127.0.0.1"), "listening");
  const home = mkdtempSync(join(world.home, "u-"));
  writeFileSync(join(home, ".npmrc"), `registry=http://127.0.0.1:${String(server.address().port)}/\n`);
  const user = { ...world, environment: { ...world.environment, HOME: home } };
  await withDaemons(user, (own) => work(own, () => sent));
  server.closeAllConnections();
  server.close();
}
