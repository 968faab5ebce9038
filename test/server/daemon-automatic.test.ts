import { spawn, spawnSync } from "node:child_process";
import { readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { freeze } from "../kit/store/freeze.ts";
import { useWorld } from "../kit/world.ts";

/** Tests the automatic daemon: clients that share a daemon, and clients that get none. */

const world = useWorld({ agent: "stand-in" });
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");

function command(home: string, ...args: string[]) {
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  return spawnSync(process.execPath, [MAIN, "daemon", ...args], { env, encoding: "utf8", timeout: 60_000 });
}

/** Text of the finding `id` of `doctor`. */
function doctorOn(home: string, id: string): string {
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  const { stdout } = spawnSync(process.execPath, [MAIN, "doctor", "--json"], {
    env,
    encoding: "utf8",
    timeout: 60_000,
  });
  const { findings } = JSON.parse(stdout) as { findings: { id: string; text: string }[] };
  return findings.find((each) => each.id === id)?.text ?? "";
}

interface Listed {
  readonly name: string;
  readonly pid: number;
  readonly proxies: number;
}

function listed(home: string): Listed[] {
  return (JSON.parse(command(home, "status", "--json").stdout) as { daemons: Listed[] }).daemons;
}

it("clients that start at once share one daemon from any environment; each other store has its own", async () => {
  const env = { HOME: world.folder() };
  const terminals = Array.from({ length: 4 }, (_, at) => ({ TERM: `xterm-${String(at)}`, SHLVL: String(at) }));
  const others = [
    { SSH_AUTH_SOCK: "/tmp/agent" },
    { VSCODE_PID: "7", VSCODE_CWD: "/" },
    { GIT_AUTHOR_NAME: "Ann", ANTHROPIC_CUSTOM_HEADERS: "X: secret" },
    { LANG: "de_DE.UTF-8", PATH: `${process.env["PATH"] ?? ""}:/opt/bin` },
  ];
  const begin = async (start: Parameters<typeof world.shared>[0]) => {
    const client = await world.shared(start);
    // A client of the later era sends nothing before the first call.
    const first = await client.call("claude_code_session", { action: "list" });
    const how = "To stop a session, cancel it with claude_code_session (action: cancel).";
    expect(first["note"]).toBe(`Work goes on in a daemon when this client ends. ${how}`);
    return client;
  };
  const clients = await Promise.all(
    [...terminals, ...others].map(async (each) => begin({ env: { ...env, ...each }, args: ["--max-wait-ms", "9000"] })),
  );
  expect(listed(env.HOME)).toMatchObject([{ proxies: 8 }]);
  const stores = ["one.db", "other.db"].map((file) => join(env.HOME, file));
  const more = await Promise.all(stores.map(async (store) => begin({ env, args: ["--store", store] })));
  const daemons = listed(env.HOME);
  expect(daemons).toHaveLength(3);
  expect(doctorOn(env.HOME, "daemons")).toContain("3 daemons running");

  const second = command(env.HOME, "run");
  expect([second.status, second.stderr]).toEqual([2, expect.stringContaining("the daemon runs already, with pid")]);

  // Each daemon wrote a separate log, and nothing to clients.
  expect(command(env.HOME, "logs", daemons[0]!.name).stdout).toContain("the daemon is ready");
  const later = new Date(Date.now() + 60_000);
  const ofShim = join(env.HOME, ".local/state/claude-agents-mcp/logs/daemon-x.shim.log");
  writeFileSync(ofShim, "of a shim\n");
  utimesSync(ofShim, later, later);
  expect(command(env.HOME, "logs").stdout).toContain("the daemon is ready");
  expect(clients.map((each) => each.stderr()).join("")).toBe("");
  expect(command(env.HOME, "stop")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("3 daemons run") as string,
  });
  await Promise.all([...clients, ...more].map(async (client) => client.close()));
  expect(command(env.HOME, "stop", "--all")).toMatchObject({
    status: 0,
    stdout: "3 daemons stopped.\n",
    stderr: "Waiting for 3 daemons to end.\n",
  });
  expect(command(env.HOME, "status")).toMatchObject({ status: 1, stdout: "No daemon runs.\n" });
});

it("clients with another umask or limit of open files have daemons of their own", async () => {
  const env = {
    ...world.model.environment(world.configFolder),
    HOME: world.folder(),
    PATH: process.env["PATH"] ?? "",
    ...constants({ daemonStartMs: 30_000 }),
  };
  const start = ["", "umask 077;", "ulimit -n 256;"].map(async (limit) => {
    const args = ["-c", `${limit} exec "$0" "$@"`, process.execPath, MAIN, "serve"];
    const client = spawn("/bin/sh", args, { env, stdio: "pipe" });
    client.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })}\n`);
    await new Promise((resolve) => client.stdout.once("data", resolve));
    return client;
  });
  const clients = await Promise.all(start);
  const daemons = listed(env.HOME);
  expect(daemons).toHaveLength(3);
  for (const client of clients) client.stdin.end();
  expect(command(env.HOME, "stop", "--all", "--yes").status).toBe(0);
});

describe("a client whose daemon does not start", () => {
  const HANGS = "if (process.argv.includes('daemon')) for (;;);";
  const DIES = "if (process.argv.includes('daemon')) { console.error('no luck'); process.exit(3); }";
  it.each([
    ["dies at its start", DIES, "30000", "no luck"],
    ["hangs at its start", HANGS, "1500", "was not ready within"],
  ])("a client gets a server of its own, with the reason, when the daemon %s", async (_, code, startMs, why) => {
    const file = join(world.folder(), "broken.cjs");
    writeFileSync(file, code);
    const env = { HOME: world.folder(), ...constants({ daemonStartMs: Number(startMs) }) };
    const client = await world.shared({ env, node: ["--require", file] });
    const prompt = scriptTag([{ text: "done" }]);
    const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(answer).toMatchObject({ status: "idle", result: { result: "done" } });
    expect(client.stderr()).toContain(why);
    // Some clients show no stderr.
    expect(answer["note"]).toContain("Work is interrupted when this client ends, because no daemon is available");
    expect(answer["note"]).toContain(why);
    await client.close();
    for (const pid of world.daemons()) process.kill(pid, "SIGKILL");
  });
});

it("a wrong flag is an error of the command, with and without a client's message", () => {
  const env = { PATH: process.env["PATH"] ?? "", HOME: world.folder() };
  for (const input of ["", `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })}\n`]) {
    const run = spawnSync(process.execPath, [MAIN, "--max-depth", "x"], {
      env,
      encoding: "utf8",
      input,
      timeout: 60_000,
    });
    expect(run.status).toBe(2);
    expect(run.stdout.includes('--max-depth is \\"x\\"')).toBe(input !== "");
    expect(run.stderr).toContain('--max-depth is "x"');
  }
  // Stops the daemon that has read the settings.
  command(env.HOME, "stop");
});

it("calls of a frozen daemon are answered, a new client gets another daemon, and the frozen one goes on", async () => {
  const env = { HOME: world.folder() };
  const first = await world.shared({ env });
  const prompt = scriptTag([{ text: "late", gateBefore: "thawed" }]);
  const { sessionId } = await first.call("claude_code", { prompt, cwd: world.folder() });
  const [{ pid } = { pid: 0 }] = listed(env.HOME);
  await freeze(pid, env.HOME);
  const waiting = first.end(sessionId).then(String, String);
  const second = await world.shared({ env });
  await second.call("claude_code_session", { action: "list" });
  expect(world.daemons()).toHaveLength(2);
  expect(await waiting).toContain("The daemon that served this call does not answer");
  process.kill(pid, "SIGCONT");
  world.model.release("thawed");
  // The next call of the first client goes to the daemon that has the name now.
  expect(await first.end(sessionId)).toMatchObject({ result: { result: "late", isError: false } });
  expect(await second.end(sessionId)).toMatchObject({ result: { result: "late" } });
  await Promise.all([first.close(), second.close()]);
});

it("an automatic daemon works in the client's folder, with its state in folders that only the user can enter", async () => {
  const env = { HOME: world.folder() };
  const cwd = world.folder();
  const client = await world.shared({ env, cwd, args: ["--allow-rules", "Bash"] });
  const tools = [{ name: "Bash", input: { command: "pwd > here.txt" } }];
  const prompt = scriptTag([{ tools }, { text: "done" }]);
  await client.call("claude_code", { prompt, waitMs: 40_000 });
  expect(readFileSync(join(cwd, "here.txt"), "utf8").trim()).toBe(cwd);
  const modes = spawnSync("find", [join(env.HOME, ".local/state"), "-printf", "%m %y %f\n"], {
    encoding: "utf8",
  }).stdout;
  const open = modes
    .split("\n")
    .filter((line) => /^\d*[1-7]\d [fsd]|^\d*\d[1-7] [fsd]/.test(line) && !line.includes(" d state"));
  expect(open).toEqual([]);
  await client.close();
});
