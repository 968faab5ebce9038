import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { bundledClaudes } from "../../src/claude/claude-files.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { BACK_PROMPT } from "../kit/faults/driving.ts";
import {
  daemonStatus,
  expectLost,
  homeOf,
  killDaemons,
  persistently,
  theShim,
  untilGone,
} from "../kit/faults/shims.ts";
import { expectUsable } from "../kit/faults/watcher.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { STAND_IN, useWorld } from "../kit/world.ts";

/** Shims that die, and shims without a daemon. The stand-in suffices, because Claude Code does not know its server. */

const world = useWorld({ agent: "stand-in" });
const isReal = process.env["AGENT"] === "real";
const REPOSITORY = join(import.meta.dirname, "../..");
const MAIN = "dist/cli/main.js";
const SDK = "node_modules/@anthropic-ai/claude-agent-sdk";

/** Begins a turn blocked at `gate`. */
async function begin(client: Server) {
  const gate = `gate-${world.folder()}`;
  const prompt = scriptTag([{ gateBefore: gate, text: LONG }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder() });
  await world.model.waitForRequest((request) => request.sessionId === sessionId);
  return { gate, home: homeOf(world), sessionId, shim: theShim(world) };
}

/** Larger than the memory already reserved by a program, so that `prlimit --data` ends the program. */
const LONG = Array.from({ length: 500 }, () => "a long text ".repeat(100));

const isClaude = ({ command }: { readonly command: string }) => command.includes("--output-format stream-json");

/** Copies of this package have no Claude Code, or are deleted. */
const OWN_CLAUDE = ["--claude-path", isReal ? bundledClaudes()[0]! : STAND_IN.CLAUDE_CODE_MCP_CLAUDE_PATH];

/** Copies this package, without installed packages, to a new folder. */
function packageCopy(): string {
  const root = mkdtempSync(join(world.folder(), "package-"));
  for (const part of ["dist", "package.json"]) cpSync(join(REPOSITORY, part), join(root, part), { recursive: true });
  return root;
}

it("a turn whose shim is killed is reported as lost once; no process is left, and the next prompt works", async () => {
  const client = await world.shared();
  const { shim, ...turn } = await begin(client);
  const [claude] = world.processes();
  process.kill(shim, "SIGKILL");
  const said = await expectLost(client, turn);
  expect(said).toContain("in the middle of the turn. Its shim has ended. ");
  expect(world.daemons()).toHaveLength(1);
  await untilGone([shim, claude!.pid]);
  await expectUsable(client, turn.sessionId, BACK_PROMPT);
  expect(theShim(world)).not.toBe(shim);
  await client.close();
  await world.closeServers();
  await world.quiet(10_000);
});

it("a turn is reported as lost at the next daemon when shim and daemon are both killed", async () => {
  const client = await world.shared();
  const { shim, ...turn } = await begin(client);
  const [daemon] = world.daemons();
  const claude = world.processes().map(({ pid }) => pid);
  // Stops both before killing: neither may react to the death of the other.
  const both = [shim, daemon!];
  for (const pid of both) process.kill(pid, "SIGSTOP");
  for (const pid of both) process.kill(pid, "SIGKILL");
  await untilGone(both);
  const said = await expectLost(client, turn);
  expect(said).toContain("The server that ran it has died. Its shim has died as well.");
  await untilGone(claude);
  await expectUsable(client, turn.sessionId, BACK_PROMPT);
  await client.close();
  await world.closeServers();
  await world.quiet(10_000);
});

it("a shim starts before the first session, survives deletion of the package, and is not left behind", async () => {
  const root = packageCopy();
  symlinkSync(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
  const daemon = await world.daemon({ name: "early", args: OWN_CLAUDE, main: join(root, MAIN) });
  const shims = () => daemonStatus(homeOf(world)).flatMap(({ shim }) => shim?.shims ?? []);
  await expect.poll(shims, { timeout: 15_000 }).toMatchObject([{ processes: [] }]);
  const [shim] = shims();
  rmSync(root, { recursive: true });
  const client = await daemon.client();
  const { sessionId } = await client.call("claude_code", { prompt: BACK_PROMPT, cwd: world.folder() });
  await client.end(sessionId);
  expect(shims()).toMatchObject([{ pid: shim!.pid, processes: [{}] }]);
  await client.close();
  await daemon.end("SIGTERM");
  await untilGone([shim!.pid]);
});

it("a shim without a daemon to restart ends everything after a while, and the next server says why", async () => {
  const root = packageCopy();
  symlinkSync(join(REPOSITORY, "node_modules"), join(root, "node_modules"));
  const env = constants({ keepMs: 2500 });
  const client = await world.shared({ main: join(root, MAIN), env });
  const { home, sessionId, shim } = await begin(client);
  await client.close();
  rmSync(root, { recursive: true });
  const started = performance.now();
  await killDaemons(world);
  await untilGone([shim]);
  expect(performance.now() - started).toBeGreaterThan(2_400);
  await world.quiet(10_000);
  expect(world.daemons()).toEqual([]);
  const logs = join(home, ".local/state/claude-agents-mcp/logs");
  const shimLog = readdirSync(logs).filter((name) => name.endsWith(".shim.log"));
  const log = shimLog.map((name) => readFileSync(join(logs, name), "utf8")).join("");
  expect(log).toContain("the restart command has ended with 1");
  expect(log).toContain("within 2500 ms: it is ended");

  const why = "Its shim kept Claude Code for 2.5 s, and no server came for it.";
  for (const command of [["daemon", "status"], ["doctor"]]) {
    const environment = { env: { PATH: process.env["PATH"] ?? "", HOME: home }, encoding: "utf8" } as const;
    expect(spawnSync(process.execPath, [join(REPOSITORY, MAIN), ...command], environment).stdout).toContain(why);
  }
  const next = await world.shared({ env });
  expect(await expectLost(next, { home, sessionId })).toContain(`The server that ran it has died. ${why}`);
  await expectUsable(next, sessionId, BACK_PROMPT);
  await persistently(async () => next.call("claude_code_session", { action: "cancel", sessionId }));
  await next.close();
});

it("a turn is lost with the reason if the next daemon of its name has another version of the Agent SDK", async () => {
  const root = packageCopy();
  mkdirSync(join(root, SDK, ".."), { recursive: true });
  cpSync(join(REPOSITORY, SDK), join(root, SDK), { recursive: true });
  const pin = readFileSync(join(root, SDK, "package.json"), "utf8");
  const { version } = JSON.parse(pin) as { version: string };
  const other = "9.9.9";
  writeFileSync(join(root, SDK, "package.json"), pin.replace(`"version": "${version}"`, `"version": "${other}"`));
  for (const file of readdirSync(join(root, "dist"), { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".js")) continue;
    const path = join(root, "dist", file);
    // Minified strings may have any quotes.
    const pinned = new RegExp(`(["'\`])${version.replaceAll(".", String.raw`\.`)}\\1`, "g");
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(pinned, `$1${other}$1`));
  }
  for (const each of readdirSync(join(REPOSITORY, "node_modules"))) {
    if (!["@anthropic-ai", ".bin"].includes(each))
      symlinkSync(join(REPOSITORY, "node_modules", each), join(root, "node_modules", each));
  }
  const [args, env] = [[...OWN_CLAUDE], constants({ keepMs: 30_000 })];
  const first = await world.daemon({ name: "pinned", args, env });
  const client = await first.client();
  const { home, sessionId } = await begin(client);
  const [claude] = world.processes().filter(isClaude);
  await first.end("SIGKILL");
  const next = await world.daemon({ name: "pinned", args, main: join(root, MAIN) });
  const said = await expectLost(client, { home, sessionId });
  expect(said).toContain(`It used Agent SDK ${version}, this server uses ${other}`);
  await untilGone([claude!.pid]);
  await expectUsable(client, sessionId, BACK_PROMPT);
  await client.close();
  await next.close();
  await world.quiet(10_000);
});

it.each(["Claude Code", "the shim"])(
  "a turn is lost if %s runs out of memory, and the next prompt works",
  async (who) => {
    const client = await world.shared();
    const { gate, shim, ...turn } = await begin(client);
    const [claude] = world.processes().filter(isClaude);
    const pid = who === "the shim" ? shim : claude!.pid;
    // Kills the real Claude Code instead, because it reserves memory at its start: only the kernel's OOM killer could end it.
    if (who === "Claude Code" && isReal) process.kill(pid, "SIGKILL");
    else execFileSync("prlimit", ["--pid", String(pid), "--data=1"]);
    world.model.release(gate);
    expect(await expectLost(client, turn)).toContain("in the middle of the turn");
    await untilGone([pid, claude!.pid]);
    await expectUsable(client, turn.sessionId, BACK_PROMPT);
    await client.close();
    await world.closeServers();
    await world.quiet(10_000);
  },
);
