import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, vi } from "vitest";
import { makeMarker } from "../../../src/security/files/volume-marker.ts";
import type { ClientKind } from "../clients/connection.ts";
import { TcpProxy } from "../faults/tcp-proxy.ts";
import { commandOf } from "../process-tree.ts";
import { Database } from "../postgres/database.ts";
import { constants, merged } from "../servers/constants.ts";
import type { HttpConnection, HttpServer } from "../servers/http-server.ts";
import { connectTo, type Server } from "../servers/stdio-server.ts";
import { SCENARIO_ARGS } from "../sessions/scenario.ts";
import { type AgentKind, useWorld, type World } from "../world.ts";
import { Machine } from "./machine.ts";

/** Servers of several machines on a database. */

interface Place {
  readonly world: World;
  readonly database: Database;
  readonly proxy: TcpProxy;
  readonly name: string;
  /** Empty on the other machines. */
  readonly disk: string;
  readonly otherDisks: readonly string[];
  readonly args: readonly string[];
  readonly leaseMs: number;
}

/** A machine with a server whose name stays, as its operator starts it again. */
export class TestNode {
  readonly name: string;
  /** Between this node and the database. */
  readonly network: TcpProxy;
  readonly #place: Place;
  #machine: Machine | undefined;
  #server: HttpServer | undefined;
  readonly #clients: Server[] = [];

  constructor(place: Place) {
    this.#place = place;
    this.name = place.name;
    this.network = place.proxy;
  }

  get server(): HttpServer {
    return this.#server!;
  }

  get machine(): Machine {
    return this.#machine!;
  }

  /** Folder that is empty on the other machines. */
  get ownFolder(): string {
    return this.#place.disk;
  }

  /** Returns the arguments of Node for a command of the operator on the database. */
  command(...words: string[]): string[] {
    return ["dist/cli/main.js", ...words, ...this.#place.database.flags()];
  }

  /** Returns the command lines of the Claude Codes of a session on this machine. */
  running(sessionId: string): string[] {
    return this.machine
      .processes()
      .map(commandOf)
      .filter((command) => command.includes(sessionId) && command.includes("--input-format"));
  }

  async connect(kind?: ClientKind): Promise<HttpConnection> {
    return this.server.connect(kind);
  }

  /** Starts the server, and the machine if it does not run. Further `args` hold for this start. */
  async start(...args: string[]): Promise<void> {
    const { database, disk, leaseMs, otherDisks, world, ...place } = this.#place;
    this.#machine ??= await Machine.start(otherDisks);
    const nodes = `SELECT count(*) FROM claude_agents_mcp.nodes WHERE name = '${this.name}'`;
    const announced = async () => Number(await database.query(nodes).catch(() => 0));
    const before = await announced();
    const folders = foldersIn(disk);
    this.#server = await world.http({
      args: [...database.flags(this.network.port), "--node", this.name, ...SCENARIO_ARGS, ...place.args, ...args],
      env: { ...folders, ...constants({ shim: true, cleanupIntervalMs: 500, testLeaseMs: leaseMs }) },
      through: this.#machine.through,
    });
    // Listens before it is announced to the other node.
    const isAnnounced = async () => ((await announced()) > before ? undefined : Promise.reject(new Error("not yet")));
    await vi.waitFor(isAnnounced, { timeout: 20_000, interval: 50 });
  }

  /** Connects a client over stdio on this machine, whose daemon is a node of its own. */
  async connectDaemon(name: string): Promise<Server> {
    const { database, disk, leaseMs, world } = this.#place;
    const store = { store: database.url(this.network.port), storePasswordFile: database.passwordFile };
    const values = constants({ daemonStartMs: 30_000, cleanupIntervalMs: 500, testLeaseMs: leaseMs });
    const settings = world.settings({ ...store, node: name });
    const env = { ...merged(world.environment, values), ...foldersIn(disk), ...settings };
    const [command, ...words] = this.machine.through;
    const args = [...words, process.execPath, "dist/cli/main.js", "serve"];
    const client = await connectTo("modern", args, env, { ...(command !== undefined && { command }) });
    this.#clients.push(client);
    return client;
  }

  /** Kills the server. Its shim and all it has started go on. */
  async killServer(): Promise<void> {
    this.server.signal("SIGKILL");
    await this.server.exited;
  }

  /** Ends the machine as a power cut does. */
  async kill(): Promise<void> {
    await this.machine.kill();
    await this.server.exited;
    this.#machine = undefined;
  }

  /** Ends the server in order; resolves when all that it has started is gone. */
  async stop(): Promise<void> {
    await this.server.close();
    const isQuiet = () => !this.machine.processes().map(commandOf).some(isOfServer);
    await vi.waitUntil(isQuiet, { timeout: 15_000, interval: 50 });
  }

  /** Ends server and machine in order, if the machine runs. */
  async shutDown(): Promise<void> {
    if (this.#machine === undefined) return;
    this.machine.continue();
    await Promise.all(this.#clients.splice(0).map(async (client) => client.close()));
    for (const pid of this.machine.processes()) if (isDaemon(commandOf(pid))) process.kill(pid, "SIGTERM");
    await this.stop();
    await this.kill();
  }
}

/** Makes the folders of a user on `disk`; returns their variables. */
function foldersIn(disk: string): Record<string, string> {
  const [home, temporary, runtime] = ["home", "tmp", "run"].map((name) => join(disk, name)) as [string, string, string];
  const folders = { HOME: home, TMPDIR: temporary, XDG_RUNTIME_DIR: runtime, CLAUDE_CONFIG_DIR: join(home, ".claude") };
  for (const folder of Object.values(folders)) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folders;
}

const isDaemon = (command: string) => command.includes("\0daemon\0run\0");

/** False for the first process of a machine. */
const isOfServer = (command: string) => command !== "" && !command.startsWith("sleep\0infinity");

export interface Nodes {
  readonly world: World;
  readonly database: Database;
  readonly a: TestNode;
  readonly b: TestNode;
  /** Folder of all machines, below which sessions may move. */
  readonly shared: string;
}

interface Options {
  readonly agent?: AgentKind;
  readonly args?: readonly string[];
  /** Length of the leases. The default is short, because tests wait for the end of leases. */
  readonly leaseMs?: number;
  /** Folder `shared` is declared to the servers. Default: false. */
  readonly hasVolume?: boolean;
}

const NAMES = ["a", "b"] as const;

/** Gives the tests of a file two nodes, `a` and `b`, started before the first test. Call inside `describePostgres`. */
export function useNodes({ agent = "stand-in", args = [], leaseMs = 4_000, hasVolume = false }: Options = {}): Nodes {
  const world = useWorld({ agent });
  const nodes: { -readonly [Key in keyof Nodes]?: Nodes[Key] } = { world };
  const started: TestNode[] = [];
  beforeAll(async () => {
    const root = String(world.environment["HOME"]);
    const disks = NAMES.map((name) => join(root, `disk-${name}`));
    nodes.shared = join(root, "shared");
    for (const folder of [...disks, nodes.shared]) mkdirSync(folder);
    await makeMarker(nodes.shared);
    nodes.database = await Database.create();
    for (const [at, name] of NAMES.entries()) {
      const node = new TestNode({
        world,
        database: nodes.database,
        proxy: await TcpProxy.open(nodes.database.port),
        name,
        disk: disks[at]!,
        otherDisks: disks.filter((_, other) => other !== at),
        args: [...args, ...(hasVolume ? ["--shared-folder", nodes.shared] : []), "--labels", `disk=${name}`],
        leaseMs,
      });
      started.push(node);
      nodes[name] = node;
    }
    await Promise.all(started.map(async (node) => node.start()));
  });
  afterAll(async () => {
    await Promise.all(started.map(async (node) => node.shutDown()));
    await world.quiet(15_000);
    await Promise.all(started.map(async ({ network }) => network.close()));
    await nodes.database?.drop();
  });
  return nodes as Nodes;
}
