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

/** The environment of a group of tests: a scripted model, a Claude configuration of its own, and all servers started. */
export interface World {
  readonly model: ScriptedModel;
  readonly configFolder: string;
  /** Variables for clients of `shared`, with the folder of the user's settings file. */
  readonly environment: Readonly<Record<string, string>>;
  /** Returns Claude Code's own transcript of a session so far, "" before the first line. */
  transcript(sessionId: string): string;
  /** Creates an empty folder. */
  folder(): string;
  /** Starts the built server as an MCP client does: a server of its own, or through a daemon (`daemon`, or DAEMON=auto). */
  server(options?: {
    client?: ClientKind;
    args?: string[];
    env?: Record<string, string>;
    person?: Person;
  }): Promise<Server>;
  /** Starts the built server as users have it: through an automatic daemon, which `close` ends. */
  shared(options?: {
    client?: ClientKind;
    args?: string[];
    cwd?: string;
    env?: Record<string, string>;
    main?: string;
    /** Flags of Node; a daemon inherits them. */
    node?: readonly string[];
    person?: Person;
    settings?: Settings;
  }): Promise<Server>;
  /**
   * Writes a user's settings file and returns the variable for its folder, because clients of a daemon cannot pass such
   * settings.
   */
  settings(more: Settings): { XDG_CONFIG_HOME: string };
  /** Pids of running daemons that clients of `shared` have started. */
  daemons(): number[];
  /** Starts the built server as an operator does, on a free port; `token` has every scope. */
  http(options?: {
    args?: string[];
    env?: Record<string, string>;
    token?: string;
    through?: readonly string[];
  }): Promise<HttpServer>;
  /** Starts a daemon as an operator does; resolves when it accepts clients. */
  daemon(options?: { args?: string[]; env?: Record<string, string>; main?: string; name?: string }): Promise<Daemon>;
  /** Every process of this world except the servers: Claude Code, its shells, reapers. */
  processes(folder?: string): { pid: number; command: string }[];
  /** Resolves when `processes()` is empty; otherwise throws after `ms` with the processes left. */
  quiet(ms: number): Promise<void>;
  closeServers(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Turns off the second tier of Claude Code's compiler, useful only in long-lived programs: a start and a turn take a third less
 * processor time.
 */
export const SHORT_LIVED = { BUN_JSC_useDFGJIT: "0" };

/** Token of the operator of the servers in these tests. */
const TOKEN = "ccm_of-the-operator-of-these-tests-0123456789";

/** Claude Code of a world's sessions: the real one, or the stand-in, seven times as fast. */
export type AgentKind = "real" | "stand-in";

/** Variables that make a server start the stand-in instead of Claude Code. */
export const STAND_IN = { CLAUDE_CODE_MCP_CLAUDE_PATH: join(import.meta.dirname, "stand-in", "claude.mjs") };

/** Variables of a server for `agent`. `AGENT=real npm test` uses the real Claude Code everywhere. */
export function environmentOf(agent: AgentKind): Record<string, string> {
  return (process.env["AGENT"] ?? agent) === "stand-in" ? STAND_IN : {};
}

interface WorldOptions {
  readonly agent?: AgentKind;
  /**
   * `auto`: clients of `server()` have a daemon, unless DAEMON=off. `never`: no daemon whatever DAEMON is, because a test ends
   * its
   * server.
   */
  readonly daemon?: "auto" | "never";
  /** True for a Claude Code that is signed in to a subscription, whose plan the scripts play. */
  readonly plan?: boolean;
}

/** Settings by their keys in the settings file. */
export type Settings = Readonly<Record<string, unknown>>;

/** No spares by default: most tests count processes, or have only one session. */
const USUAL = { spares: 0, logLevel: "debug" };

/** A world for the tests of a file or a `describe`, created before the first test and closed after the last. */
export function useWorld(options: WorldOptions = {}): World {
  const world: Partial<World> = {};
  beforeAll(async () => void Object.assign(world, await createWorld(options)));
  afterAll(async () => world.close?.());
  return world as World;
}

export async function createWorld({ agent = "real", daemon: wanted, plan = false }: WorldOptions = {}): Promise<World> {
  const model = await startScriptedModel();
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-test-")));
  const configFolder = mkdtempSync(join(root, "config-"));
  const servers: Pick<Server, "pid" | "close">[] = [];
  const folders = new Map<string, string>();
  // A server goes on with the turns of a former one if both have the same flags.
  const tokenFiles = new Map<string, string>();
  const settings = (more: Settings) => {
    const text = JSON.stringify({ ...USUAL, ...more });
    const folder = folders.get(text) ?? userFile(root, text);
    folders.set(text, folder);
    return { XDG_CONFIG_HOME: folder };
  };
  const environment = {
    ...model.environment(configFolder, { plan }),
    HOME: root,
    CLAUDE_CODE_MAX_RETRIES: "1",
    ...settings({}),
    ...SHORT_LIVED,
    // Above the default, so that a slow machine causes no failure.
    ...constants({ compareMs: 9_000 }),
    ...environmentOf(agent),
  };
  const living = () => processesIn(root);
  const world: World = {
    model,
    configFolder,
    environment: merged(environment, AUTOMATIC),
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
      // Between fork and exec, a child of a daemon has the daemon's command line.
      const started = new Set(found.flatMap(({ pid }) => childrenOf(pid)));
      return found.map(({ pid }) => pid).filter((pid) => !started.has(pid));
    },
    async http({ args = [], env = {}, token = TOKEN, through } = {}) {
      const tokenFile = tokenFiles.get(token) ?? join(mkdtempSync(join(root, "token-")), "token");
      tokenFiles.set(token, tokenFile);
      writeFileSync(tokenFile, token, { mode: 0o600 });
      const flags = ["--http", "127.0.0.1:0", "--token-file", tokenFile, "--drain-ms", "0"];
      // Defaults of stdio; `args` can override them.
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

/** Writes a user's settings file; returns its configuration folder. */
function userFile(root: string, text: string): string {
  const folder = mkdtempSync(join(root, "settings-"));
  mkdirSync(join(folder, "claude-agents-mcp"));
  writeFileSync(join(folder, "claude-agents-mcp", "config.json"), text);
  return folder;
}

const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");

/** On a busy machine, a daemon may start more slowly than a client would wait by default. */
const AUTOMATIC = { CLAUDE_CODE_MCP_DAEMON: "auto", ...constants({ daemonStartMs: 30_000 }) };

/** Returns the logs of daemons, which clients do not see. */
function daemonLogs(home: string): string {
  const folder = join(home, ".local/state/claude-agents-mcp/logs");
  const files = existsSync(folder) ? readdirSync(folder).toSorted() : [];
  return files.map((file) => readFileSync(join(folder, file), "utf8")).join("");
}

/** Matches a daemon started by a client, or by a shim after the death of its predecessor. */
export const AUTOMATIC_DAEMON = /^\S*node\S* .*main\.js daemon run(?! --daemon)/;

function isDaemon({ command }: { readonly command: string }): boolean {
  return AUTOMATIC_DAEMON.test(command);
}

/** Also ends daemons that a shim starts meanwhile in place of a killed daemon. */
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

/** Finds processes by inherited variables, because shells may have left their group and parent. */
function processesIn(root: string): { pid: number; command: string }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!readFileSync(`/proc/${name}/environ`, "utf8").includes(`=${root}`)) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return command === "" ? [] : [{ pid: Number(name), command: command.slice(0, 40_000) }];
      } catch {
        // The process ended meanwhile, or belongs to another user.
        return [];
      }
    });
}
