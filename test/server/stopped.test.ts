import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { startHttp } from "../kit/servers/http-server.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** A server that continues the Claude Code of a killed server also ends the process in good order. */

const world = useWorld();
const home = () => join(world.configFolder, "..");
const args = ["--allow-rules", "Bash"];
const TOKEN = "ccm_of-the-operator-of-a-server-that-is-killed-01";

/** Pids of the shims of `world`. */
function shims(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const isShim = readFileSync(`/proc/${String(pid)}/cmdline`, "utf8").includes("shim.js");
        return isShim && readlinkSync(`/proc/${String(pid)}/cwd`).startsWith(home());
      } catch {
        return false;
      }
    });
}

/** Prompt whose command creates `ran` and then waits until `go` exists. */
function waitingCommand() {
  const cwd = world.folder();
  const [ran, go] = [join(cwd, "ran"), join(cwd, "go")];
  const command = `touch ${ran}; until [ -e ${go} ]; do sleep 0.05; done`;
  const prompt = scriptTag([{ tools: [{ name: "Bash", input: { command } }] }, { text: "done" }]);
  return {
    begin: { prompt, cwd },
    go,
    hasBegun: async () => {
      await expect.poll(() => existsSync(ran), { timeout: 30_000 }).toBe(true);
    },
  };
}

async function expectNothingLeft(): Promise<void> {
  await expect.poll(() => world.processes().map(({ command }) => command.slice(0, 200))).toEqual([]);
  await expect.poll(shims).toEqual([]);
}

it(
  "a daemon that is stopped right after it has taken over a running turn interrupts the turn",
  { timeout: 90_000 },
  async () => {
    const first = await world.daemon({ args, name: "killed" });
    const client = await first.client();
    const { begin, hasBegun } = waitingCommand();
    const { sessionId } = await client.call("claude_code", begin);
    await hasBegun();
    await client.close();
    await first.end("SIGKILL");
    const second = await world.daemon({ args: [...args, "--drain-ms", "2000"], name: "killed" });
    await second.close();
    const log = await storedEvents(home(), sessionId);
    const last = log.filter(({ type }) => type === "turn.ended").map(({ event }) => event);
    expect(last).toEqual([expect.stringContaining('"errorSubtype":"shutdown"')]);
    await expectNothingLeft();
  },
);

it(
  "a server over HTTP continues a turn of a killed server, and leaves nothing behind when it ends",
  { timeout: 90_000 },
  async () => {
    const tokenFile = join(world.folder(), "token");
    writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
    const flags = ["--http", "127.0.0.1:0", "--token-file", tokenFile, "--attended", "--drain-ms", "0", ...args];
    const start = {
      args: flags,
      env: { ...world.model.environment(world.configFolder), ...world.settings({}), HOME: home() },
      token: TOKEN,
    };
    const first = await startHttp(start);
    const client = await first.connect();
    const { begin, go, hasBegun } = waitingCommand();
    const { sessionId } = await client.call("claude_code", begin);
    await hasBegun();
    first.signal("SIGKILL");
    await first.exited;
    const second = await startHttp(start);
    const next = await second.connect();
    await next.call("claude_code_session", { action: "list" });
    writeFileSync(go, "");
    const { result, status } = await next.end(sessionId, 1);
    expect([status, result?.result]).toEqual(["idle", "done"]);
    await second.close();
    await expectNothingLeft();
  },
);
