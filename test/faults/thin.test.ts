import { execFile, execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";

import { userClaudeFiles } from "../../src/claude/claude-files.ts";
import { signal } from "../../src/claude/supervise/tree.ts";
import { NEWEST_TESTED } from "../../src/claude/version.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { DRIVER_PACKAGE, SDK } from "../../src/packages/pinned.ts";
import { constants } from "../kit/servers/constants.ts";
import { bytesOf, readOnlyFolder } from "../kit/install/folders.ts";
import { BINARY, publishAll } from "../kit/install/published.ts";
import type { Registry } from "../kit/install/registry.ts";
import { connectTo, type Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** The package as users get it: missing parts are installed at the first session, from a registry on loopback. */

const root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-thin-")));
const prompt = scriptTag([{ text: "done" }]);
const done = { status: "idle", result: { result: "done" } };
const PATH = [dirname(process.execPath), "/usr/bin", "/bin"].join(":");
const NPX = join(realpathSync(execFileSync("which", ["npm"], { encoding: "utf8" }).trim()), "../npx-cli.js");
/** True if this machine has a Claude Code, used in place of the registry's. */
const [path, usual] = [(await userClaudeFiles({ PATH })).path, (await userClaudeFiles({ PATH, HOME: root })).usual];
const hasOwn = [...path, ...usual].some((file) => existsSync(file));

let registry: Registry;
let main: string;

beforeAll(async () => {
  registry = await publishAll(root);
  const empty = join(root, "empty");
  mkdirSync(empty);
  writeFileSync(join(empty, "package.json"), JSON.stringify({ name: "empty", version: "1.0.0", bin: "main.js" }));
  writeFileSync(join(empty, "main.js"), "#!/usr/bin/env node\n", { mode: 0o755 });
  registry.publish(empty);
  const program = join(root, "program");
  mkdirSync(program);
  writeFileSync(join(program, "package.json"), "{}");
  const npm = ["install", "--no-audit", "--no-fund", "claude-agents-mcp"];
  await promisify(execFile)("npm", npm, { cwd: program, env: newUser() });
  main = join(program, "node_modules/claude-agents-mcp/dist/cli/main.js");
  // 180 s, because packing, publishing and installing take a minute on a busy machine.
}, 180_000);
afterAll(async () => {
  await registry.close();
  rmSync(root, { recursive: true, force: true });
});
const world = useWorld();

/** Creates a user with nothing installed, whose npm knows the registry. */
function newUser(name = "home"): Record<string, string> {
  const home = mkdtempSync(join(root, `${name}-`));
  writeFileSync(join(home, ".npmrc"), `registry=${registry.url}\n`);
  return { HOME: home, PATH };
}

/** Folders of SDK and driver, once installed for a first user: later users get copies. */
const seeds: string[] = [];

/** Creates a user who lacks only Claude Code. */
function userWithSdk(): Record<string, string> {
  const user = newUser();
  mkdirSync(packagesOf(user), { recursive: true });
  if (seeds.length > 0) execFileSync("cp", ["-al", ...seeds, packagesOf(user)]);
  return user;
}

const packagesOf = ({ HOME = "" }: Record<string, string>) => join(HOME, ".cache/claude-agents-mcp/packages");

async function begin(client: Server, waitMs = 40_000) {
  return client.call("claude_code", { prompt, cwd: world.folder(), waitMs });
}

/** Connects a client to a server without a daemon. */
async function withoutDaemon(env: Record<string, string>, cwd?: string): Promise<Server> {
  return world.shared({ main, env: { ...env, CLAUDE_CODE_MCP_DAEMON: "off" }, ...(cwd !== undefined && { cwd }) });
}

/** Connects through npx to a daemon of this world. `cwd` is elsewhere, because npx would run this repository itself. */
async function throughNpx(env: Record<string, string>): Promise<Server> {
  const model = world.model.environment(world.configFolder);
  const all = {
    ...model,
    ...world.settings({}),
    CLAUDE_CODE_MCP_DAEMON: "auto",
    ...constants({ daemonStartMs: 30_000 }),
    ...env,
  };
  return connectTo("modern", [NPX, "-y", "claude-agents-mcp", "serve"], all, { cwd: env["HOME"] });
}

/** Starts a server that installs Claude Code, of which the registry sends a third until `mend()`. */
async function stalledInstall() {
  const env = userWithSdk();
  const before = registry.timesFetched(BINARY);
  registry.spoil(BINARY, "stalls");
  const first = await withoutDaemon(env);
  await begin(first, 0);
  await vi.waitFor(() => expect(registry.timesFetched(BINARY) - before).toBe(1), 20_000);
  return { before, env, first };
}

describe.skipIf(hasOwn)("on a machine without Claude Code", () => {
  it("four servers at once fetch Claude Code once, even into a home with spaces and non-ASCII letters", async () => {
    const before = registry.timesFetched(BINARY);
    const env = newUser("Zoë's 家 ");
    const clients = await Promise.all([withoutDaemon(env), withoutDaemon(env), withoutDaemon(env), withoutDaemon(env)]);
    const answers = await Promise.all(clients.map(async (client) => begin(client)));
    expect(answers).toMatchObject([done, done, done, done]);
    expect(registry.timesFetched(BINARY) - before).toBe(1);
    expect(readdirSync(packagesOf(env)).filter((name) => /lock$|draft$/.test(name))).toEqual([]);
    await Promise.all(clients.map(async (client) => client.close()));
    const others = readdirSync(packagesOf(env)).filter((name) => !name.includes(`${process.platform}-${process.arch}`));
    seeds.push(...others.map((name) => join(packagesOf(env), name)));
  });

  it("an installation reports progress, and its time does not count as the call's wait", async () => {
    const client = await withoutDaemon(userWithSdk());
    registry.spoil(BINARY, "stalls");
    const lines: string[] = [];
    const answered = vi.fn<() => void>();
    const args = { prompt, cwd: world.folder(), waitMs: 2_000 };
    const answering = client.call("claude_code", args, {
      onprogress: (...[told]: { message?: string }[]) => void lines.push(told?.message ?? ""),
    });
    void answering.then(answered, answered);
    await vi.waitFor(
      () => expect(lines.filter((line) => line.includes("Preparing Claude Code"))).not.toHaveLength(0),
      20_000,
    );
    // Longer than the call waits for a turn.
    await sleep(args.waitMs + 1_500);
    expect(answered).not.toHaveBeenCalled();
    registry.mend();
    const { sessionId } = await answering;
    expect(await client.end(sessionId)).toMatchObject(done);
    await client.close();
  });

  it("npm finishes after its server is killed, and the next server uses the installation", async () => {
    const { before, env, first } = await stalledInstall();
    process.kill(first.pid, "SIGKILL");
    await first.gone;
    const next = await withoutDaemon(env);
    const answering = begin(next);
    registry.mend();
    expect(await answering).toMatchObject(done);
    expect(registry.timesFetched(BINARY) - before).toBe(1);
    await next.close();
  });

  it("an installation whose processes were all killed is started again", async () => {
    const { before, env, first } = await stalledInstall();
    const noted = readdirSync(packagesOf(env), { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith("npm.json"),
    );
    const pids = noted.map(
      (name) => (JSON.parse(readFileSync(join(packagesOf(env), name), "utf8")) as { pid: number }).pid,
    );
    for (const pid of [first.pid, ...pids]) signal(pid, "SIGKILL");
    await first.gone;
    registry.mend();
    const next = await withoutDaemon(env);
    expect(await begin(next)).toMatchObject(done);
    expect(registry.timesFetched(BINARY) - before).toBe(2);
    await next.close();
  });

  it("wrong bytes and refusals of a registry or proxy are reported with a command", async () => {
    const client = await withoutDaemon({ ...userWithSdk(), NPM_CONFIG_FETCH_RETRIES: "0" });
    const told = [
      ["other bytes", /wrong integrity.*Run: npm config delete registry/],
      [401, /refuses it \(E401\).*Run: npm login/],
      [404, /does not have it \(E404\).*Run: npm config delete registry/],
      [407, /a name and a password.*Run: npm config set https-proxy/],
    ] as const;
    for (const [fault, words] of told) {
      registry.spoil(BINARY, fault);
      const { result } = await begin(client);
      expect(result?.result).toMatch(words);
    }
    registry.mend();
    expect(await begin(client)).toMatchObject(done);
    await client.close();
  });

  it("without a network the error says so, and with one the next session runs", async () => {
    const client = await withoutDaemon({ ...userWithSdk(), NPM_CONFIG_FETCH_RETRIES: "0" });
    const { port } = registry;
    await registry.close();
    const [answer] = await Promise.allSettled([begin(client)]);
    // Opened before any assertion, because the next tests need the registry.
    await registry.open(port);
    const result = answer.status === "fulfilled" ? answer.value.result : undefined;
    expect(result?.result).toMatch(/npm does not reach the registry \(ECONNREFUSED\)/);
    expect(result?.result).toContain(`Run: node '${main}' doctor --fix`);
    expect(await begin(client)).toMatchObject(done);
    await client.close();
  });

  it("a daemon started by npx continues when npm deletes its installation", async () => {
    const env = userWithSdk();
    const client = await throughNpx(env);
    expect(await begin(client)).toMatchObject(done);
    rmSync(join(env["HOME"] ?? "", ".npm"), { recursive: true });
    expect(await begin(client)).toMatchObject(done);
    await client.close();
  });
});

it("with a Claude Code in PATH, only the SDK is fetched, and npm ignores a project's configuration", async () => {
  const bin = mkdtempSync(join(root, "bin-"));
  const standIn = `exec ${process.execPath} ${resolve("test/kit/stand-in/claude.mjs")} "$@"`;
  const script = `#!/bin/sh\n[ "$1" = --version ] && echo "${NEWEST_TESTED} (Claude Code)" && exit\n${standIn}\n`;
  writeFileSync(join(bin, "claude"), script, { mode: 0o755 });
  const project = mkdtempSync(join(root, "project-"));
  writeFileSync(join(project, ".npmrc"), "registry=http://127.0.0.1:1/\n");
  writeFileSync(join(project, "package.json"), "{}");
  const [sdk, binary] = [registry.timesFetched(SDK), registry.timesFetched(BINARY)];
  // `npm_config_registry`, as npm sets it for programs started in the project.
  const env = { ...newUser(), PATH: `${bin}:${PATH}`, npm_config_registry: "http://127.0.0.1:1/" };
  const client = await withoutDaemon(env, project);
  expect(await begin(client)).toMatchObject(done);
  expect([registry.timesFetched(SDK) - sdk, registry.timesFetched(BINARY) - binary]).toEqual([1, 0]);
  await client.close();
});

it("with the SDK and the driver installed beside it, nothing is fetched", async () => {
  const env = newUser();
  const beside = [SDK, BINARY, DRIVER_PACKAGE.name];
  const npm = ["install", "-g", "--prefix", env["HOME"] ?? "", "--legacy-peer-deps", "claude-agents-mcp", ...beside];
  await promisify(execFile)("npm", npm, { env });
  const before = registry.fetched.length;
  const installed = join(env["HOME"] ?? "", "lib/node_modules/claude-agents-mcp/dist/cli/main.js");
  const client = await world.shared({ main: installed, env: { ...env, CLAUDE_CODE_MCP_DAEMON: "off" } });
  expect(await begin(client)).toMatchObject(done);
  expect(registry.fetched.length).toBe(before);
  await client.close();
});

it.skipIf(process.getBuiltinModule("node:sqlite"))(
  "a daemon that waits for its store's driver answers, and stops when told to",
  async () => {
    registry.spoil(DRIVER_PACKAGE.name, "stalls");
    const env = newUser();
    const client = await world.shared({ main, env });
    const daemon = async (...words: string[]) =>
      (await promisify(execFile)(process.execPath, [main, "daemon", ...words], { env })).stdout;
    // The call makes the daemon wait for the driver; a client that has only connected may have no daemon yet.
    const waiting = client.call("claude_code_session", { action: "list" }).then(JSON.stringify, String);
    const status = async () => daemon("status", "--json").then(JSON.parse, () => undefined) as Promise<unknown>;
    await expect.poll(status).toMatchObject({ daemons: [{ state: "ready", turns: [] }] });
    expect(await daemon("stop", "--all", "--yes")).toContain("1 daemon stopped");
    expect(await waiting).toMatch(/has ended|shutting down/);
    registry.mend();
    await client.close();
  },
);

const readOnly = readOnlyFolder();
afterAll(() => readOnly?.unmount());

it.runIf(readOnly)("an unwritable cache folder is named, with a command that chooses another one", async () => {
  const store = ["--store", "memory:"];
  const client = await world.shared({ main, args: store, env: { ...newUser(), XDG_CACHE_HOME: readOnly?.path ?? "" } });
  // On a Node without SQLite, the driver of the store is installed first.
  const told = await begin(client).then(({ result }) => result?.result, String);
  expect(told).toContain(
    `${readOnly?.path ?? ""}/claude-agents-mcp/packages is on a read-only disk. Run: export XDG_CACHE_HOME=`,
  );
  await client.close();
});

it("npx downloads one package of at most 1 MB before the first answer, and installs at most 15 MB", async () => {
  const env = newUser();
  const before = registry.fetched.length;
  const client = await throughNpx(env);
  const ofDriver = [DRIVER_PACKAGE, ...(DRIVER_PACKAGE.dependencies ?? [])].map(({ name }) => name);
  expect(registry.fetched.slice(before).filter((name) => !ofDriver.includes(name))).toEqual(["claude-agents-mcp"]);
  expect(registry.bytesOf("claude-agents-mcp")).toBeLessThan(1e6);
  expect(bytesOf(join(env["HOME"] ?? "", ".npm/_npx"))).toBeLessThan(15e6);
  expect(bytesOf(join(env["HOME"] ?? "", ".npm/_npx"))).toBeGreaterThan(1e6);
  await client.close();
});
