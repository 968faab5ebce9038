import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { constants } from "../kit/servers/constants.ts";
import { daemonStatus } from "../kit/faults/shims.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld } from "../kit/world.ts";

/** Tests the separate terms and environments of clients of one daemon. */

const world = useWorld({ agent: "stand-in" });
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");

const bash = (command: string) => ({ name: "Bash", input: { command } });

/** Connects a client with a program, a configuration folder and a secret of its own. */
async function clientOf(name: string, home: string, args: string[]) {
  const [bin, config, cwd] = [world.folder(), world.folder(), world.folder()];
  writeFileSync(join(bin, "who-is-it"), `#!/bin/sh\necho ${name}\n`, { mode: 0o755 });
  const secret = `secret-of-${name}-0123456789`;
  const path = `${bin}:${process.env["PATH"] ?? ""}`;
  const misspelt = { [`CLAUDE_CODE_MCP_DENY_RULE_${name}`]: "Bash" };
  const env = { HOME: home, PATH: path, CLAUDE_CONFIG_DIR: config, MY_API_TOKEN: secret, ...misspelt };
  return { args, client: await world.shared({ args, env }), config, cwd, env, name, secret };
}

function environmentsOf(pids: readonly number[]): string[] {
  return pids.map((pid) => readFileSync(`/proc/${String(pid)}/environ`, "utf8"));
}

async function startSession(client: Server, prompt: object[], cwd: string): Promise<string> {
  const { sessionId } = await client.call("claude_code", { prompt: scriptTag(prompt), cwd });
  return sessionId;
}

it("two clients with other programs, folders, secrets and rules have separate sessions on one daemon", async () => {
  const home = world.folder();
  const ann = await clientOf("ann", home, ["--allow-rules", "Bash"]);
  const bob = await clientOf("bob", home, ["--deny-rules", "Bash(touch *)"]);
  const look = "who-is-it > out; printenv CLAUDE_CONFIG_DIR MY_API_TOKEN >> out; printenv MY_API_TOKEN";
  const script = [{ tools: [bash(look)] }, { text: "seen", gateBefore: "both looked" }];
  const [ofAnn, ofBob] = [
    await startSession(ann.client, script, ann.cwd),
    await startSession(bob.client, script, bob.cwd),
  ];
  // Only Ann's rules allow the command.
  const { actions } = await bob.client.news(ofBob);
  expect(actions).toHaveLength(1);
  const answer = {
    action: "respond_permission",
    sessionId: ofBob,
    requestId: actions[0]?.requestId,
    decision: "allow",
  };
  await bob.client.call("claude_code_check", answer);
  for (const { config, cwd, name, secret } of [ann, bob]) {
    const read = () => spawnSync("cat", [join(cwd, "out")], { encoding: "utf8" }).stdout;
    await expect.poll(read).toBe(`${name}\n${config}\n${secret}\n`);
  }

  expect(world.daemons()).toHaveLength(1);
  const [daemon = ""] = environmentsOf(world.daemons());
  const others = environmentsOf(world.processes().map(({ pid }) => pid)).filter((each) => each.includes("secret-of"));
  expect(others.length).toBeGreaterThan(1);
  expect([daemon, ...others].filter((each) => each.includes(ann.secret) && each.includes(bob.secret))).toEqual([]);
  expect(daemon).not.toContain("secret-of");
  world.model.release("both looked");
  expect(await ann.client.end(ofAnn)).toMatchObject({ result: { result: "seen" } });
  expect(await bob.client.end(ofBob)).toMatchObject({ result: { result: "seen" } });
  for (const id of [ofAnn, ofBob]) {
    const log = JSON.stringify(await storedEvents(home, id));
    expect(log).toContain("who-is-it");
    expect(log).not.toContain("secret-of");
  }
  // Bob's deny rule holds in Bob's sessions alone.
  const named = [{ tools: [bash("touch made")] }, { text: "told" }];
  const [again, denied] = [
    await startSession(ann.client, named, ann.cwd),
    await startSession(bob.client, named, bob.cwd),
  ];
  expect(await ann.client.end(again)).toMatchObject({ result: { result: "told" } });
  expect(await bob.client.end(denied)).toMatchObject({ result: { result: "told" } });
  expect([ann, bob].map(({ cwd }) => existsSync(join(cwd, "made")))).toEqual([true, false]);
  // A misspelt rule has no effect, so the log must name the setting.
  const { stdout } = spawnSync(process.execPath, [MAIN, "daemon", "logs"], { env: ann.env, encoding: "utf8" });
  for (const name of ["ann", "bob"]) expect(stdout).toContain(`CLAUDE_CODE_MCP_DENY_RULE_${name} is not a setting`);
  await Promise.all([ann.client.close(), bob.client.close()]);
});

it("each client has its own tools, limit of waits and folders, and is refused for a wrong value", async () => {
  const env = { HOME: world.folder() };
  const all = await world.shared({ env, args: ["--toolsets", "all"] });
  const cwd = world.folder();
  writeFileSync(join(cwd, "own.json"), '{ "maxWaitMs": 2000, "allowDirs": ["."] }');
  const few = await world.shared({ env, cwd, args: ["--config", "own.json"] });
  const names = async ({ client }: Server) => (await client.listTools()).tools.map(({ name }) => name);
  expect(await names(all)).toContain("claude_code_query");
  expect(await names(few)).not.toContain("claude_code_query");
  const outside = few.call("claude_code", { prompt: scriptTag([{ text: "no" }]), cwd: env.HOME });
  await expect(outside).rejects.toThrow("--allow-dir");
  const inside = { prompt: scriptTag([{ text: "here" }]), waitMs: 2_000 };
  expect(await few.call("claude_code", inside)).toMatchObject({ result: { result: "here" } });
  await expect(few.call("claude_code", { ...inside, waitMs: 3_000 })).rejects.toThrow("2000");
  await expect(world.shared({ client: "legacy", env, args: ["--max-depth", "x"] })).rejects.toThrow(
    '--max-depth is "x"',
  );
  await expect(world.shared({ client: "legacy", env, args: ["--max-live", "4"] })).rejects.toThrow('Set "maxLive" in');
  const gone = { env: { ...env, CLAUDE_CODE_DEFAULT_CWD: "/none" }, args: ["--toolsets", "all"] };
  await expect(world.shared({ ...gone, client: "legacy" })).rejects.toThrow('CLAUDE_CODE_DEFAULT_CWD is "/none"');
  expect(daemonStatus(env.HOME)).toHaveLength(1);
  await Promise.all([all.close(), few.close()]);
});

it("bounds of the user's file hold for every client, whatever its flags are", async () => {
  const env = { HOME: world.folder() };
  const settings = { bounds: { denyRules: ["Bash(touch *)"], toolsets: ["agent", "chat"], allowBypass: false } };
  const client = await world.shared({
    env,
    settings,
    args: ["--toolsets", "all", "--allow-rules", "Bash", "--allow-bypass"],
  });
  const { tools } = await client.client.listTools();
  expect(tools.map(({ name }) => name)).toContain("claude_session_create");
  expect(tools.map(({ name }) => name)).not.toContain("claude_code_query");
  const cwd = world.folder();
  const script = scriptTag([{ tools: [bash("touch made"), bash("mkdir other")] }, { text: "tried" }]);
  const started = await client.call("claude_code", { prompt: script, cwd, waitMs: 40_000 });
  expect(started).toMatchObject({ result: { result: "tried" } });
  expect([existsSync(join(cwd, "made")), existsSync(join(cwd, "other"))]).toEqual([false, true]);
  const bypass = client.call("claude_code", { prompt: script, cwd, permissionMode: "bypassPermissions" });
  await expect(bypass).rejects.toThrow("bypassPermissions");
  await client.close();
});

it("`--unattended deny` of one client decides for its sessions alone", async () => {
  const env = { HOME: world.folder() };
  const start = async (args: string[]) => {
    const client = await world.shared({ env, args });
    const cwd = world.folder();
    const sessionId = await startSession(
      client,
      [{ tools: [bash("touch made")], gateBefore: "alone" }, { text: "asked" }],
      cwd,
    );
    return { client, cwd, sessionId };
  };
  const [denies, waits] = [await start(["--unattended", "deny"]), await start([])];
  await Promise.all([denies.client.close(), waits.client.close()]);
  // Connected, but attending to neither session.
  const other = await world.shared({ env });
  await other.call("claude_code_session", { action: "list" });
  world.model.release("alone");
  const log = async (id: string) => JSON.stringify(await storedEvents(env.HOME, id));
  await expect.poll(async () => log(waits.sessionId)).toContain("It waits for the next one");
  await expect.poll(async () => log(denies.sessionId)).toContain("turn.ended");
  expect(await log(waits.sessionId)).not.toContain("turn.ended");
  await other.close();
});

it("cron, ssh with and without an agent, an editor and a terminal share one daemon", () => {
  const home = world.folder();
  const own = {
    HOME: home,
    PATH: process.env["PATH"] ?? "",
    XDG_CONFIG_HOME: world.environment["XDG_CONFIG_HOME"] ?? "",
  };
  const starts: Record<string, string>[] = [
    {},
    { SSH_CONNECTION: "::1", SSH_AUTH_SOCK: "/tmp/agent", SSH_TTY: "/dev/pts/1" },
    { SSH_CONNECTION: "::1", LANG: "C.UTF-8" },
    { VSCODE_PID: "1", VSCODE_IPC_HOOK: "/x", ELECTRON_RUN_AS_NODE: "1", TERM_PROGRAM: "vscode" },
    { TERM: "xterm", SHELL: "/bin/zsh", EDITOR: "vi", PATH: `/opt/bin:${own.PATH}` },
  ];
  for (const more of starts) {
    const input = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "x" } })}\n`;
    const env = { ...constants({ daemonStartMs: 30_000 }), ...own, ...more };
    const { stdout } = spawnSync(process.execPath, [MAIN], { env, encoding: "utf8", input });
    expect(stdout).toContain('"id":1');
  }
  expect(daemonStatus(home)).toHaveLength(1);
});
