import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { constants } from "../kit/servers/constants.ts";
import { CLAUDE_CODE, initialize, legacyLines, line, modern, modernLines } from "../kit/clients/opening-lines.ts";
import { useWorld } from "../kit/world.ts";

/** Tests a client before its daemon is ready: answers until then, and calls afterwards. */

const world = useWorld({ agent: "stand-in" });
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");

const idOf = (text: string) => (JSON.parse(text) as { id?: string | number }).id;

/** Environment by which `world` finds daemons and ends them afterwards. */
function environment(env: Record<string, string>) {
  return { PATH: process.env["PATH"] ?? "", ...world.model.environment(world.configFolder), ...env };
}

/** Starts `serve` like a client; collects the answers by id. */
function startProxy({ env, node = [] }: { env: Record<string, string>; node?: string[] }, ...args: string[]) {
  const child = spawn(process.execPath, [...node, MAIN, "serve", ...args], {
    env: environment(env),
    stdio: ["pipe", "pipe", "ignore"],
  });
  const answers = new Map<unknown, string>();
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (text) => answers.set(idOf(text), text));
  return {
    answers,
    send: (...sent: string[]) => void child.stdin.write(sent.map((each) => `${each}\n`).join("")),
    answerTo: async (id: unknown): Promise<string> => {
      while (!answers.has(id)) await once(lines, "line");
      return answers.get(id) ?? "";
    },
    async end(): Promise<void> {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

/** Holds back daemons until `release` is called. */
function heldDaemons() {
  const home = world.folder();
  const code = join(home, "hold.cjs");
  const gate = join(home, "open");
  const wait = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)";
  const hold = `while (!require("node:fs").existsSync(${JSON.stringify(gate)})) ${wait};`;
  writeFileSync(code, `if (process.argv.includes("daemon")) ${hold}`);
  const env = { HOME: home, ...constants({ daemonStartMs: 30_000 }) };
  return { env, node: ["--require", code], release: () => writeFileSync(gate, "") };
}

const call = { name: "claude_code_session", arguments: { action: "list" } };
const legacyCall = line({ id: "call", method: "tools/call", params: call });
const modernCall = modern("tools/call", { clientInfo: CLAUDE_CODE });
const withCall = JSON.stringify({
  ...(JSON.parse(modernCall) as object),
  id: "call",
  params: { ...(JSON.parse(modernCall) as { params: object }).params, ...call },
});

const ERAS: [string, string[], string, string][] = [
  ["2025", legacyLines({ clientInfo: CLAUDE_CODE }), legacyCall, line({ id: "again", method: "tools/list" })],
  ["2026", modernLines({ clientInfo: CLAUDE_CODE }), withCall, modern("tools/list", { clientInfo: CLAUDE_CODE })],
];

it.each(ERAS)(
  "a client of the %s era gets the daemon's answers before the daemon is there, and its call's answer then",
  async (_, opening, laterCall, again) => {
    const { release, ...start } = heldDaemons();
    const proxy = startProxy(start);
    proxy.send(...opening, laterCall);
    const ids = opening.map(idOf).filter((id) => id !== undefined);
    const given = await Promise.all(ids.map(async (id) => proxy.answerTo(id)));
    expect(proxy.answers.has("call")).toBe(false);

    const own = startProxy({ env: { HOME: world.folder() } }, "--daemon", "off");
    own.send(...opening);
    expect(given).toEqual(await Promise.all(ids.map(async (id) => own.answerTo(id))));
    await own.end();

    release();
    expect(await proxy.answerTo("call")).toContain("Work goes on in a daemon when this client ends");
    // The daemon knows the client, although the proxy answered the opening.
    proxy.answers.delete(idOf(again));
    proxy.send(again);
    expect(await proxy.answerTo(idOf(again))).toContain('"maximum":1800000');
    await proxy.end();
  },
);

it.each(ERAS)(
  "a client of the %s era is served by its own process if no daemon comes",
  async (_, opening, laterCall, again) => {
    const { env, node } = heldDaemons();
    const proxy = startProxy({ env: { ...env, ...constants({ daemonStartMs: 1 }) }, node });
    proxy.send(...opening, laterCall);
    expect(await proxy.answerTo("call")).toContain("because no daemon is available");
    proxy.answers.delete(idOf(again));
    proxy.send(again);
    expect(await proxy.answerTo(idOf(again))).toContain('"maximum":1800000');
    await proxy.end();
  },
);

it("a client that only lists tools and leaves is answered, in the order of its lines", () => {
  const { env, node } = heldDaemons();
  const opening = legacyLines({});
  const { status, stdout } = spawnSync(process.execPath, [...node, MAIN], {
    env: environment(env),
    encoding: "utf8",
    input: opening.map((each) => `${each}\n`).join(""),
    timeout: 60_000,
  });
  expect(status).toBe(0);
  const ids = stdout.trimEnd().split("\n").map(idOf);
  expect(ids).toEqual(opening.map(idOf).filter((id) => id !== undefined));
});

it("a wrong setting is an error of the command, and the answer to the client's first request", () => {
  for (const first of [initialize(), modern("server/discover")]) {
    const env = environment({ HOME: world.folder() });
    const run = spawnSync(process.execPath, [MAIN, "--max-depth", "x"], { env, encoding: "utf8", input: `${first}\n` });
    expect(run.status).toBe(2);
    expect(run.stderr).toContain('--max-depth is "x"');
    const { error, id } = JSON.parse(run.stdout) as { error: { message: string }; id: unknown };
    expect([id, error.message]).toEqual([idOf(first), expect.stringContaining('--max-depth is "x"')]);
  }
});

it("a server that fails to start ends the command, although the client was already answered", async () => {
  const home = world.folder();
  const broken = join(home, "network.cjs");
  const mounts = "1 1 0:1 / / rw - nfs4 x rw";
  writeFileSync(
    broken,
    `const files = require("node:fs/promises"), { readFile } = files;
     files.readFile = async (path, ...rest) => path === "/proc/self/mountinfo" ? ${JSON.stringify(mounts)} : readFile(path, ...rest);`,
  );
  const child = spawn(process.execPath, ["--require", broken, MAIN], { env: environment({ HOME: home }) });
  let [said, why] = ["", ""];
  child.stdout.on("data", (text) => (said += String(text)));
  child.stderr.on("data", (text) => (why += String(text)));
  child.stdin.write(`${initialize()}\n`);
  const [code] = (await once(child, "exit")) as [number];
  expect([code, said]).toEqual([2, expect.stringContaining('"result"')]);
  expect(why).toContain("network file system");
});
