import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import type { Person } from "../kit/clients/connection.ts";
import { stream } from "../kit/clients/streaming.ts";
import { onTerminal, WITHOUT_TERMINAL } from "../kit/clients/terminal.ts";
import { ofType, startReceiver, WITH_SECRET } from "../kit/clients/webhook-receiver.ts";
import { useWorld } from "../kit/world.ts";

/** Tests work that outlives the client, and the separate state of each client of a daemon. */

const world = useWorld({ agent: "stand-in" });

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

it("a request without a connected client is answered by the next client", async () => {
  const daemon = await world.daemon({ args: ["--approvals", "caller"] });
  const cwd = world.folder();
  const first = await daemon.client();
  const tools = [{ name: "Bash", input: { command: "touch asked.txt" } }];
  const prompt = scriptTag([{ tools, gateBefore: "no client is there" }, { text: "made" }]);
  const { sessionId } = await first.call("claude_code", { prompt, cwd });
  await first.close();
  world.model.release("no client is there");
  const second = await daemon.client({ kind: "v1" });
  const { actions } = await second.news(sessionId);
  const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
  await second.call("claude_code_check", answer);
  expect(await second.end(sessionId)).toMatchObject({ result: { result: "made" } });
  expect(readdirSync(cwd)).toEqual(["asked.txt"]);
  await daemon.close();
});

it("two clients of a daemon have separate folders, bypass gates, log levels, declined forms and audit entries", async () => {
  const auditLog = join(world.folder(), "audit.jsonl");
  const args = [
    "--toolsets",
    "agent,configure,query",
    "--audit-log",
    auditLog,
    "--approvals",
    "user,caller",
    "--drain-ms",
    "0",
  ];
  const daemon = await world.daemon({ args, env: { IS_SANDBOX: "1" } });
  const [one, other] = [world.folder(), world.folder()];
  let [declined, shown] = [0, 0];
  const declines: Person = () => {
    declined += 1;
    return { action: "decline" };
  };
  const allows: Person = () => {
    shown += 1;
    return { action: "accept", content: { decision: "allow" } };
  };
  const a = await daemon.client({ cwd: one, person: declines });
  const b = await daemon.client({ cwd: other, person: allows });
  const begin = { prompt: scriptTag([{ text: "here" }]), permissionMode: "bypassPermissions" };
  await stream(a, "claude_code_configure", { action: "enable_bypass" });
  const { sessionId } = await a.call("claude_code", begin);
  expect(await b.refusal("claude_code", begin)).toMatchObject({ code: "PERMISSION_DENIED" });
  expect(await b.refusal("claude_code_reply", { sessionId, prompt: "more" })).toMatchObject({
    code: "PERMISSION_DENIED",
  });

  mkdirSync(join(other, "sub"));
  const asking = {
    prompt: scriptTag([{ tools: [{ name: "Bash", input: { command: "pwd > where.txt" } }] }, { text: "ok" }]),
  };
  await a.call("claude_code", { ...asking, waitMs: 20_000 });
  const relative = await b.call("claude_code", { ...asking, cwd: "sub", waitMs: 20_000 });
  expect(relative).toMatchObject({ status: "idle", result: { result: "ok" } });
  expect(readFileSync(join(other, "sub", "where.txt"), "utf8").trim()).toBe(join(other, "sub"));
  // A form declined by the first client is still shown to the second.
  expect([declined, shown]).toEqual([1, 1]);

  const starts = readLines(auditLog).map((line) => JSON.parse(line) as Record<string, string>);
  const clients = starts.filter(({ tool, outcome }) => tool === "claude_code" && outcome === "ok");
  expect(clients.map(({ client }) => client)).toEqual(["test-modern", "test-modern", "test-modern"]);
  const [first, second, third] = clients.map(({ connection }) => connection);
  expect(second).toBe(first);
  expect(third).not.toBe(first);

  // Clients of the earlier era set the log level of their connection.
  const [loud, quiet] = [await daemon.client({ kind: "legacy" }), await daemon.client({ kind: "v1" })];
  // oxlint-disable-next-line typescript/no-deprecated -- these clients have nothing else
  await Promise.all([loud.client.setLoggingLevel("debug"), quiet.client.setLoggingLevel("error")]);
  const query = { prompt: scriptTag([{ text: "said" }]), cwd: one };
  const heard = [loud, quiet].map(async (client) => (await stream(client, "claude_code_query", query)).logs);
  expect(await Promise.all(heard)).toEqual([expect.arrayContaining([expect.anything()]), []]);
  await daemon.close();
});

it("an open call to a killed named daemon gets an error, and the next daemon of the name is used", async () => {
  const daemon = await world.daemon({ name: "killed" });
  const client = await daemon.client();
  const slow = scriptTag([{ text: "slow", gateBefore: "killed" }]);
  const { sessionId } = await client.call("claude_code", { prompt: slow, cwd: world.folder() });
  const open = client.end(sessionId).then(String, String);
  await client.call("claude_code_session", { action: "list" });
  await daemon.end("SIGKILL");
  expect(await open).toContain("The daemon that served this call has ended");
  const next = await world.daemon({ name: "killed" });
  world.model.release("killed");
  // The turn succeeds, at whatever point of its start the daemon was killed.
  expect(await client.end(sessionId)).toMatchObject({ result: { result: "slow", isError: false } });
  await client.close();
  await next.close();
});

it("a ready daemon needs the files of its package no more", async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-package-")));
  const repository = join(import.meta.dirname, "../..");
  cpSync(join(repository, "dist"), join(root, "dist"), { recursive: true });
  cpSync(join(repository, "package.json"), join(root, "package.json"));
  symlinkSync(join(repository, "node_modules"), join(root, "node_modules"));
  const receiver = await startReceiver();
  const daemon = await world.daemon({
    name: "kept",
    main: join(root, "dist/cli/main.js"),
    args: ["--approvals", "caller", "--notify-url", receiver.url, "--idle-process-ms", "1000", "--drain-ms", "0"],
    env: { ...WITH_SECRET, ...constants({ keepMs: 500 }) },
  });
  rmSync(root, { recursive: true });
  const client = await daemon.client();
  const cwd = world.folder();
  const tools = [{ name: "Bash", input: { command: "touch made.txt" } }];
  const { sessionId } = await client.call("claude_code", { prompt: scriptTag([{ tools }, { text: "ok" }]), cwd });
  const { actions } = await client.news(sessionId);
  const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
  await client.call("claude_code_check", answer);
  const ended = await client.end(sessionId);
  expect(ended).toMatchObject({ result: { result: "ok" } });
  const prompts = await client.client.listPrompts();
  expect(prompts.prompts.length).toBeGreaterThan(0);
  const { resources } = await client.client.listResources();
  await client.client.readResource({ uri: resources[0]!.uri });
  expect((await receiver.next(ofType("turn.ended"))).payload).toMatchObject({ session: { id: sessionId } });
  // The idle process ends, and the next prompt resumes the session. The command left in the background ends after the death of
  // the daemon, because no daemon follows.
  const running = (word: string) => world.processes().filter(({ command }) => command.includes(word));
  await expect.poll(() => running(sessionId)).toEqual([]);
  const leaves = { name: "Bash", input: { command: "setsid sleep 300 > /dev/null 2>&1 & touch made.txt" } };
  const prompt = scriptTag([{ tools: [leaves] }, { text: "again" }, { text: "never", gateBefore: "never" }]);
  await client.call("claude_code_reply", { sessionId, prompt });
  const { actions: second } = await client.news(sessionId, ended.nextCursor);
  await client.call("claude_code_check", { ...answer, requestId: second[0]?.requestId });
  await expect.poll(() => running("sleep 300")).toHaveLength(1);
  await daemon.end("SIGKILL");
  await expect.poll(() => running("sleep 300")).toEqual([]);
  expect(daemon.stderr()).not.toContain("Cannot find");
  await Promise.all([client.close(), receiver.close()]);
});

it("`daemon status` lists a running daemon, and `daemon stop` stops it", async () => {
  const main = join(import.meta.dirname, "../../dist/cli/main.js");
  const home = world.folder();
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  const run = (...args: string[]) => spawnSync(process.execPath, [main, "daemon", ...args], { env, encoding: "utf8" });
  expect(run("status")).toMatchObject({ status: 1, stdout: "No daemon runs.\n" });
  expect(run("stop", "unknown")).toMatchObject({ status: 2, stderr: expect.stringContaining('"unknown"') as string });
  const daemon = await world.daemon({ name: "one", env: { HOME: home } });
  const listed = JSON.parse(run("status", "--json").stdout) as { daemons: object[] };
  expect(listed.daemons).toEqual([
    {
      name: "one",
      pid: daemon.pid,
      startedAt: expect.any(String) as string,
      version: "0.1.0",
      nodeVersion: process.versions.node,
      nodeId: expect.any(String) as string,
      state: "ready",
      proxies: 0,
      sessions: 0,
      processes: 0,
      turns: [],
      userFile: expect.stringContaining("/claude-agents-mcp/config.json") as string,
      socket: expect.stringContaining("one.sock") as string,
      shim: { setting: "auto", shims: [expect.objectContaining({ processes: [] })] },
    },
  ]);
  expect(run("run", "--daemon", "one").stderr).toContain(
    `the daemon "one" runs already, with pid ${String(daemon.pid)}. Stop it (\`claude-agents-mcp daemon stop one\`)`,
  );
  expect(run("stop").stdout).toBe("1 daemon stopped.\n");
  expect(run("status").status).toBe(1);
});

it("`daemon stop` names the turns that it will interrupt, and asks on a terminal", async ({ skip }) => {
  const env = { PATH: process.env["PATH"] ?? "", HOME: world.folder() };
  const daemon = await world.daemon({ name: "asked", env: { HOME: env.HOME }, args: ["--drain-ms", "0"] });
  const client = await daemon.client();
  const prompt = scriptTag([{ text: "slow", gateBefore: "never" }]);
  const { sessionId } = await client.call("claude_code", {
    prompt,
    cwd: world.folder(),
    advanced: { title: "A long story" },
  });
  const words = [join(import.meta.dirname, "../../dist/cli/main.js"), "daemon", "stop"];
  const what = "1 running turn will be interrupted, unless they end within --drain-ms:";
  const unasked = spawnSync(process.execPath, words, { env, encoding: "utf8", input: "" });
  expect(unasked).toMatchObject({ status: 2, stdout: "" });
  expect(unasked.stderr).toContain(`${what} ${sessionId} A long story. Without a terminal to confirm on, --yes`);
  skip(WITHOUT_TERMINAL !== undefined, WITHOUT_TERMINAL);
  const stop = [process.execPath, ...words].join(" ");
  const no = await onTerminal(stop, "n\r", env);
  expect(no.status).toBe(1);
  expect(no.screen.replaceAll("\r", "")).toContain(`${what}\n  ${sessionId}  A long story\n`);
  expect(no.screen).toMatch(/Stop\? \[y\/N\][^]*No daemon was stopped\./);
  const poll = { action: "poll", sessionId, waitMs: 0 };
  expect(await client.call("claude_code_check", poll)).toMatchObject({ status: "running" });
  const yes = await onTerminal(stop, "y\r", env);
  expect(yes.status).toBe(0);
  expect(yes.screen).toContain("1 daemon stopped.");
  expect(spawnSync(process.execPath, [words[0]!, "daemon", "status"], { env }).status).toBe(1);
  const next = await world.daemon({ name: "asked", env: { HOME: env.HOME } });
  expect(await client.end(sessionId)).toMatchObject({ result: { isError: true, errorSubtype: "shutdown" } });
  await client.close();
  await next.close();
});

it("a client is refused if its named daemon does not run, and inside a session", () => {
  const main = join(import.meta.dirname, "../../dist/cli/main.js");
  const env = { PATH: process.env["PATH"] ?? "", HOME: world.folder() };
  const run = (args: string[], more = {}) =>
    spawnSync(process.execPath, [main, ...args], { env: { ...env, ...more }, encoding: "utf8", input: "" });
  expect(run(["--daemon", "none"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining(
      "no daemon of this name runs. Start it: claude-agents-mcp daemon run --daemon none",
    ) as string,
  });
  const asked = { id: 1, jsonrpc: "2.0", method: "initialize" };
  const told = spawnSync(process.execPath, [main, "--daemon", "none"], {
    env,
    encoding: "utf8",
    input: `${JSON.stringify(asked)}\n`,
  });
  expect([told.status, told.stdout]).toEqual([2, expect.stringContaining("daemon run --daemon none")]);
  expect(run(["--daemon", "../x"]).stderr).toContain("must be");
  expect(run(["--daemon", "none"], { CLAUDE_CODE_MCP_DEPTH: "1" }).stderr).toContain("inside a session");
});
