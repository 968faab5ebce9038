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
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll } from "vitest";

import { startScriptedModel, type ScriptedModel } from "../../src/demo/model/server.ts";
import type { ClientKind, Person } from "./clients/connection.ts";
import { constants, merged } from "./servers/constants.ts";
import { startDaemon, type Daemon } from "./servers/daemon.ts";
import { startHttp, type HttpServer } from "./servers/http-server.ts";
import { childrenOf } from "./process-tree.ts";
import { connect, connectTo, type Server } from "./servers/stdio-server.ts";

/** The environment of a group of tests: a scripted model, a Claude configuration of its own, and the servers it starts. */
export interface World {
  readonly model: ScriptedModel;
  readonly configFolder: string;
  /** Variables of the clients of `shared`. They name the folder of the user's file of settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** Claude Code's own transcript of a session so far, "" before there is one. */
  transcript(sessionId: string): string;
  /** A new, empty folder. */
  folder(): string;
  /** Starts the built server as an MCP client does: a server of its own, or through a daemon (`daemon`, or DAEMON=auto). */
  server(options?: {
    client?: ClientKind;
    args?: string[];
    env?: Record<string, string>;
    person?: Person;
  }): Promise<Server>;
  /** The same as users have it: through a daemon, which starts by itself and which the end of the world ends. */
  shared(options?: {
    client?: ClientKind;
    args?: string[];
    cwd?: string;
    env?: Record<string, string>;
    main?: string;
    /** Words of Node, which the daemon gets too. */
    node?: readonly string[];
    person?: Person;
    settings?: Settings;
  }): Promise<Server>;
  /** The variable of a user's file with these settings of the server: no client of a daemon can give them. */
  settings(more: Settings): { XDG_CONFIG_HOME: string };
  /** The daemons that clients of `shared` have started, while they live. */
  daemons(): number[];
  /** Starts the built server as an operator does, on a free port; `token` has every scope. */
  http(options?: {
    args?: string[];
    env?: Record<string, string>;
    token?: string;
    through?: readonly string[];
  }): Promise<HttpServer>;
  /** Starts a daemon as an operator does, and resolves when it takes clients. */
  daemon(options?: { args?: string[]; env?: Record<string, string>; main?: string; name?: string }): Promise<Daemon>;
  /** Every process of this world except the servers themselves: Claude Code, its shells, reapers. */
  processes(folder?: string): { pid: number; command: string }[];
  /** Resolves when `processes()` is empty, else throws after `ms` with what is left. */
  quiet(ms: number): Promise<void>;
  closeServers(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Claude Code does the same without the second tier of its compiler, which is for programs that live longer than a test:
 * a start and a turn take a third less of the processor.
 */
export const SHORT_LIVED = { BUN_JSC_useDFGJIT: "0" };

/** Known to the operator of the servers of these tests. */
const TOKEN = "ccm_of-the-operator-of-these-tests-0123456789";

/** The Claude Code of a world's sessions: the real one, or a program that behaves like it, seven times as fast. */
export type AgentKind = "real" | "stand-in";

/** The variables that make a server start the stand-in. */
export const STAND_IN = { CLAUDE_CODE_MCP_CLAUDE_PATH: join(import.meta.dirname, "stand-in", "claude.mjs") };

/** Variables of a server for `agent`. `AGENT=real npm test` uses the real Claude Code everywhere. */
export function environmentOf(agent: AgentKind): Record<string, string> {
  return (process.env["AGENT"] ?? agent) === "stand-in" ? STAND_IN : {};
}

interface WorldOptions {
  readonly agent?: AgentKind;
  /** `auto`: clients of `server()` have a daemon, unless DAEMON=off. `never`: whatever DAEMON is, because a test ends its server. */
  readonly daemon?: "auto" | "never";
}

/** By the keys of the file of settings. */
export type Settings = Readonly<Record<string, unknown>>;

/** Without spares by default: most tests count processes, or have only one session. */
const USUAL = { spares: 0, logLevel: "debug" };

/** A world for the tests of a file or of a `describe`, from before the first to after the last. */
export function useWorld(options: WorldOptions = {}): World {
  const world: Partial<World> = {};
  beforeAll(async () => void Object.assign(world, await createWorld(options)));
  afterAll(async () => world.close?.());
  return world as World;
}

export async function createWorld({ agent = "real", daemon: wanted }: WorldOptions = {}): Promise<World> {
  const model = await startScriptedModel();
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-test-")));
  const configFolder = mkdtempSync(join(root, "config-"));
  const servers: Pick<Server, "pid" | "close">[] = [];
  const folders = new Map<string, string>();
  const settings = (more: Settings) => {
    const text = JSON.stringify({ ...USUAL, ...more });
    const folder = folders.get(text) ?? userFile(root, text);
    folders.set(text, folder);
    return { XDG_CONFIG_HOME: folder };
  };
  const environment = {
    ...model.environment(configFolder),
    HOME: root,
    CLAUDE_CODE_MAX_RETRIES: "1",
    ...settings({}),
    ...SHORT_LIVED,
    ...environmentOf(agent),
  };
  const living = () => processesIn(root);
  const world: World = {
    model,
    configFolder,
    environment: { ...environment, ...AUTOMATIC },
    transcript(sessionId) {
      const projects = join(configFolder, "projects");
      if (!existsSync(projects)) return "";
      const files = readdirSync(projects).map((project) => join(projects, project, `${sessionId}.jsonl`));
      return files.flatMap((file) => (existsSync(file) ? [readFileSync(file, "utf8")] : [])).join("");
    },
    folder: () => mkdtempSync(join(root, "work-")),
    async server({ client = "modern", args = [], env = {}, person } = {}) {
      if (wanted !== "never" && (process.env["DAEMON"] ?? wanted) === "auto") {
        const shared = await world.shared({ client, args, env, ...(person && { person }) });
        return { ...shared, stderr: () => shared.stderr() + daemonLogs(env["HOME"] ?? root) };
      }
      const server = await connect(client, { args, env: merged(environment, env), person });
      servers.push(server);
      return server;
    },
    settings,
    async shared({ args = [], client = "modern", cwd, env = {}, main = MAIN, node = [], person, settings: more } = {}) {
      const all = merged(environment, AUTOMATIC, settings(more ?? {}), env);
      const server = await connectTo(client, [...node, main, "serve", ...args], all, { cwd, person });
      servers.push(server);
      return server;
    },
    daemons: () => {
      const found = living().filter(isDaemon);
      // Until it runs its program, a process that a daemon has just started has the command line of the daemon.
      const started = new Set(found.flatMap(({ pid }) => childrenOf(pid)));
      return found.map(({ pid }) => pid).filter((pid) => !started.has(pid));
    },
    async http({ args = [], env = {}, token = TOKEN, through } = {}) {
      const tokenFile = join(mkdtempSync(join(root, "token-")), "token");
      writeFileSync(tokenFile, token, { mode: 0o600 });
      const flags = ["--http", "127.0.0.1:0", "--token-file", tokenFile, "--drain-ms", "0"];
      // As on stdio, unless a test is about it.
      flags.push("--caller-approves", "all", "--attended");
      const all = { args: [...flags, ...args], env: merged(environment, constants({ shim: false }), env) };
      const server = await startHttp({ ...all, token, through });
      servers.push(server);
      return server;
    },
    async daemon({ args = [], env = {}, main, name = `d${String(servers.length)}` } = {}) {
      const daemon = await startDaemon({ args, env: merged(environment, env), main, name });
      servers.push(daemon);
      return daemon;
    },
    processes: (folder = root) => {
      const own = servers.map(({ pid }) => pid);
      return processesIn(folder).filter((each) => !own.includes(each.pid) && !isDaemon(each));
    },
    async quiet(ms) {
      const deadline = Date.now() + ms;
      while (world.processes().length > 0) {
        if (Date.now() > deadline)
          throw new Error(`left over after ${String(ms)} ms: ${JSON.stringify(world.processes())}`);
        await sleep(50);
      }
    },
    async closeServers() {
      await Promise.all(servers.splice(0).map(async (server) => server.close()));
      await endDaemons(() => world.daemons());
    },
    async close() {
      await world.closeServers();
      await world.quiet(15_000);
      await model.close();
      rmSync(root, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  return world;
}

/** Writes a user's file of settings; returns the folder of configurations that it is in. */
function userFile(root: string, text: string): string {
  const folder = mkdtempSync(join(root, "settings-"));
  mkdirSync(join(folder, "claude-agents-mcp"));
  writeFileSync(join(folder, "claude-agents-mcp", "config.json"), text);
  return folder;
}

const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");

/** On a busy machine a daemon may take longer to start than a client would wait for it. */
const AUTOMATIC = { CLAUDE_CODE_MCP_DAEMON: "auto", ...constants({ daemonStartMs: 30_000 }) };

/** What daemons have written, which their clients do not see. */
function daemonLogs(home: string): string {
  const folder = join(home, ".local/state/claude-agents-mcp/logs");
  const files = existsSync(folder) ? readdirSync(folder).toSorted() : [];
  return files.map((file) => readFileSync(join(folder, file), "utf8")).join("");
}

/** One that a client has started, or a shim after the death of the one before. */
export const AUTOMATIC_DAEMON = /^\S*node\S* .*main\.js daemon run(?! --daemon)/;

function isDaemon({ command }: { readonly command: string }): boolean {
  return AUTOMATIC_DAEMON.test(command);
}

/** Also those that a shim starts meanwhile in place of a daemon that was killed. */
async function endDaemons(living: () => number[]): Promise<void> {
  const told = new Set<number>();
  const deadline = Date.now() + 30_000;
  while (living().length > 0) {
    for (const pid of living().filter((each) => !told.has(each))) {
      told.add(pid);
      for (const signal of ["SIGCONT", "SIGTERM"] as const) process.kill(pid, signal);
    }
    if (Date.now() > deadline) throw new Error(`daemons do not end: ${JSON.stringify(living())}`);
    await sleep(50);
  }
}

/** Finds processes by their inherited variables, so that shells which left their group and parent are included. */
function processesIn(root: string): { pid: number; command: string }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!readFileSync(`/proc/${name}/environ`, "utf8").includes(`=${root}`)) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return command === "" ? [] : [{ pid: Number(name), command: command.slice(0, 40_000) }];
      } catch {
        // It ended while we looked, or is not ours.
        return [];
      }
    });
}
