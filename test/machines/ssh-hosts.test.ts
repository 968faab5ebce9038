import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { checkClients } from "../../src/doctor/clients.ts";
import { createMachine } from "../../src/doctor/machine.ts";
import { connectTo, type Server } from "../kit/servers/stdio-server.ts";
import { startFarMachine, type FarMachine } from "../kit/ssh/far-machine.ts";
import { createWorld, type World } from "../kit/world.ts";

/** Entries of servers on another machine: `install --host` through Debian's sshd and OpenSSH's client. */

const MAIN = resolve("dist/cli/main.js");
const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync("package.json", "utf8")));
/** The world is the machine there; `near` is the home folder of the person here. */
let world: World;
let far: FarMachine;
let near: string;
beforeAll(async () => {
  world = await createWorld({ agent: "stand-in" });
  far = await startFarMachine(world.folder(), { ...world.environment });
  near = world.folder();
});
const connections: Server[] = [];
afterEach(async () => {
  await Promise.all(connections.splice(0).map(async (connection) => connection.close()));
});
afterAll(async () => {
  try {
    await world.close();
  } finally {
    await far.close();
  }
});

const environment = () => ({ PATH: `${far.path}:/usr/bin:/bin`, HOME: near, TMPDIR: near });

function run(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stderr, stdout } = spawnSync(process.execPath, [MAIN, ...args], {
    encoding: "utf8",
    cwd: near,
    env: { ...environment(), ...env },
    input: "",
  });
  return { status, stderr, stdout };
}

const Servers = z.object({
  mcpServers: z.record(z.string(), z.object({ command: z.string(), args: z.array(z.string()) })),
});
const file = () => join(near, ".gemini", "settings.json");
const entries = () => Servers.parse(JSON.parse(readFileSync(file(), "utf8"))).mcpServers;

it("install --host finds the program of nvm there, starts it, and writes an entry beside that of this machine", async () => {
  expect(run(["install", "gemini", "--yes"]).status).toBe(0);
  const before = readFileSync(file(), "utf8");
  const words = ["install", "--host", "gpu=ssh:gpu", "gemini", "--yes", "--json", "--", "--allow-dir", "~/a b"];
  const { status, stderr, stdout } = run(words);
  expect([status, stderr]).toEqual([0, expect.stringMatching(/^(?:gpu: .*\n){3}$/)]);
  expect(stderr).toContain(`found ${far.bin}/claude-agents-mcp (Linux `);
  expect(stderr).toContain(`Version there ${version}, here ${version}`);
  expect(JSON.parse(stdout)).toMatchObject({ changed: true, host: { name: "gpu", target: "gpu", version } });
  const { command, args } = entries()["claude-agents-mcp-gpu"]!;
  expect(command).toBe(join(far.path, "ssh"));
  const quoted = [`${far.bin}/node`, `${far.bin}/claude-agents-mcp`].map((word) => `'${word}'`);
  expect(args.slice(args.indexOf("gpu"))).toEqual(["gpu", ...quoted, "--allow-dir", "'~/a b'"]);
  for (const option of ["BatchMode=yes", "ForwardAgent=no", "ServerAliveInterval=15"]) expect(args).toContain(option);

  expect(run(["install"]).stdout).toContain("\ngemini: gpu, by ssh on gpu\n");
  expect(await examined()).toEqual([
    expect.objectContaining({ level: "ok", text: expect.stringContaining("a server on gpu by ssh") as unknown }),
    { id: "clients", level: "ok", text: `Gemini CLI reaches gpu by ssh on gpu: version ${version} there.` },
  ]);

  expect(run(["uninstall", "--host", "gpu", "gemini", "--yes"]).status).toBe(0);
  expect(readFileSync(file(), "utf8")).toBe(before);
});

const examined = async () => checkClients({ ...createMachine([], environment()), cwd: near, script: MAIN });

async function connectByEntry(): Promise<Server> {
  const { args, command } = entries()["claude-agents-mcp-gpu"]!;
  const server = await connectTo("modern", args, environment(), { command });
  connections.push(server);
  return server;
}

it("a turn goes on there when the connection is killed, and the next connection has its result", async () => {
  const words = ["install", "--host", "gpu=ssh:gpu", "gemini", "--yes", "--", "--allow-rules", "Bash"];
  expect(run(words).status).toBe(0);
  const first = await connectByEntry();
  expect((await first.client.listTools()).tools.map(({ name }) => name)).toContain("claude_code");
  const prompt = scriptTag([
    { tools: [{ name: "Bash", input: { command: 'echo "$HOME $SSH_AUTH_SOCK." > ran.txt' } }] },
    { text: "Done there.", gateBefore: "the connection is gone" },
  ]);
  const cwd = world.folder();
  const { sessionId } = await first.call("claude_code", { prompt, cwd });
  await expect.poll(() => existsSync(join(cwd, "ran.txt"))).toBe(true);
  process.kill(first.pid, "SIGKILL");
  await first.gone;
  const second = await connectByEntry();
  const { sessions } = await second.call("claude_code_session", { action: "list" });
  expect(sessions).toMatchObject([{ sessionId, status: "running" }]);
  world.model.release("the connection is gone");
  expect(await second.end(sessionId)).toMatchObject({ status: "idle", result: { result: "Done there." } });
  // No agent was forwarded, although the configuration of the host asks for it.
  expect(readFileSync(join(cwd, "ran.txt"), "utf8")).toBe(`${far.home} .\n`);
  expect(world.daemons()).toHaveLength(1);
});

const tryHost = (target: string, env: Record<string, string> = {}, ...flags: string[]) =>
  run(["install", "--host", `box=ssh:${target}`, "cursor", "--yes", ...flags], env);

it.each([
  ["stranger", /the key of stranger is not known here\. Run `ssh stranger` once/],
  ["changed", /the key of changed has changed since the last connection/],
  ["locked", /locked accepts no key of yours without a question.*ssh-copy-id locked/],
  ["off", /off cannot be reached/],
  ["nowhere.invalid", /cannot be reached|no machine is known as nowhere\.invalid/],
])("install --host says why %s cannot be used, and writes nothing", (target, problem) => {
  const { status, stderr, stdout } = tryHost(target);
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(problem);
  expect(existsSync(join(near, ".cursor"))).toBe(false);
});

it("install --host names a login shell that writes to stdout", async () => {
  expect(run(["install", "--host", "gpu=ssh:gpu", "gemini", "--yes"]).status).toBe(0);
  const files = [".bashrc", ".zshenv"].map((name) => join(far.home, name));
  for (const each of files) writeFileSync(each, "echo Welcome to the box\n");
  const { status, stderr } = tryHost("gpu");
  const findings = await examined();
  for (const each of files) rmSync(each);
  expect([status, stderr]).toEqual([
    1,
    expect.stringContaining('stdout there before the server: "Welcome to the box"'),
  ]);
  expect(findings).toEqual([
    {
      id: "clients",
      level: "warning",
      text: expect.stringContaining('stdout there before the server: "Welcome to the box"') as unknown,
    },
  ]);
});

it("install --host takes Node and PATH from the login shell of a terminal there", () => {
  const bin = join(far.home, "my tools");
  mkdirSync(bin, { recursive: true });
  renameSync(join(far.bin, "claude-agents-mcp"), join(bin, "claude-agents-mcp"));
  far.setLoginPath(bin, far.bin, "/usr/bin", "/bin");
  const { status, stdout } = tryHost("gpu", {}, "--print");
  renameSync(join(bin, "claude-agents-mcp"), join(far.bin, "claude-agents-mcp"));
  far.setLoginPath("/usr/bin", "/bin");
  expect(status).toBe(0);
  const { args } = Servers.parse(JSON.parse(stdout)).mcpServers["claude-agents-mcp-box"]!;
  const words = ["env", `'PATH=${bin}:${far.bin}:/usr/bin:/bin'`, `'${far.bin}/node'`, `'${bin}/claude-agents-mcp'`];
  expect(args.slice(args.indexOf("gpu"))).toEqual(["gpu", ...words]);
});

it("install --host says what to run there if the program is missing, its Node is too old, or its flags are refused", () => {
  const program = join(far.bin, "claude-agents-mcp");
  renameSync(program, `${program}.away`);
  const without = tryHost("gpu");
  renameSync(`${program}.away`, program);
  expect([without.status, without.stderr]).toEqual([1, expect.stringContaining("is not installed on gpu") as unknown]);
  expect(without.stderr).toContain("Run there: npm install -g claude-agents-mcp");

  // The real program, which reads the version of its Node.
  renameSync(program, `${program}.real`);
  const old = 'Object.defineProperty(process.versions, "node", { value: "18.19.0" })';
  writeFileSync(program, `#!/usr/bin/env node\n${old};\nimport(${JSON.stringify(MAIN)});\n`, { mode: 0o755 });
  const tooOld = tryHost("gpu");
  renameSync(`${program}.real`, program);
  expect([tooOld.status, tooOld.stderr]).toEqual([
    1,
    expect.stringMatching(/no Node that is new enough: .*this is 18\.19\.0/) as unknown,
  ]);

  const refused = tryHost("gpu", {}, "--", "--max-live", "2");
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining("refused to start: ") as unknown]);
  expect(existsSync(join(near, ".cursor"))).toBe(false);
});

it("install --host says that there is no ssh here", () => {
  const { status, stderr } = tryHost("gpu", { PATH: near });
  expect([status, stderr]).toEqual([1, expect.stringContaining("There is no ssh in PATH") as unknown]);
});
