import { once } from "node:events";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Conversation } from "./conversation.ts";
import { ConfigError } from "../config/error.ts";
import { stateFolder } from "../config/state-folder.ts";
import { checkName, connectTo, socketFolder, socketPath } from "../daemon/socket.ts";
import { ALIVE, firstLine, PROTOCOL, readDaemonHello, REST, WATCH, type ClientHello } from "../daemon/wire.ts";
import { depthAbove, depthIn } from "../security/ancestors.ts";

/**
 * The client's end of a daemon: what a client starts in place of a server. It passes lines between stdio and the socket. Its end
 * ends nothing but the client's own waits; after the daemon's end it goes on with the next one.
 */

/** How long a daemon may take to appear, and how long between two looks for one, ms. */
const START_MS = 3_000;
const LOOK_MS = 50;
/** A daemon that owes an answer and says nothing for this time is taken for dead, s of awake time. */
const SILENT_S = 5;

/** Resolves to the exit code when the client is gone. Throws ConfigError when there is no daemon to begin with. */
export async function connectToDaemon(argv: readonly string[]): Promise<number> {
  const name = readName(argv);
  refuseNested();
  const folder = await socketFolder(stateFolder(process.env, process.platform), process.env);
  const proxy = new Proxy({ name, path: socketPath(folder, name), stdout: process.stdout });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(0));
  // A client that is gone reads nothing; the end of stdin follows.
  process.stdout.on("error", () => process.exit(0));
  try {
    await proxy.connect();
  } catch (error) {
    throw new ConfigError(`--daemon-socket ${name}: ${whyOf(error)}. ${adviceFor(name)}`, error);
  }
  await proxy.pass(process.stdin);
  process.exit(0);
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isAbsent = "code" in error && (error.code === "ENOENT" || error.code === "ECONNREFUSED");
  return isAbsent ? "no daemon of this name runs" : error.message;
}

function adviceFor(name: string): string {
  return `Start it: claude-agents-mcp daemon run --daemon-socket ${name}. \`claude-agents-mcp daemon status\` lists daemons.`;
}

function readName(argv: readonly string[]): string {
  const [word = "", value = "", ...rest] = argv.flatMap((each) =>
    each.split(/(?<=^--daemon-socket)=(.*)/s).slice(0, 2),
  );
  if (word !== "--daemon-socket" || rest.length > 0) {
    const others = word === "--daemon-socket" ? rest : argv;
    throw new ConfigError(
      `${others[0] ?? ""} does not go with --daemon-socket: settings are those of the daemon. Give it to \`daemon run\`.`,
    );
  }
  try {
    return checkName(value);
  } catch (error) {
    throw new ConfigError(`--daemon-socket ${error instanceof Error ? error.message : String(error)}.`, error);
  }
}

/** A session's shell is the same user; the daemon would not know how deep it is. */
function refuseNested(): void {
  if (Math.max(depthIn(process.env), depthAbove(process.pid)) === 0) return;
  throw new ConfigError("--daemon-socket: this runs inside a session of claude-agents-mcp, which may start no others.");
}

interface ProxyOptions {
  readonly name: string;
  readonly path: string;
  readonly stdout: Writable;
}

class Proxy {
  readonly #options: ProxyOptions;
  readonly #conversation = new Conversation();
  #socket: Socket | undefined;
  #connecting: Promise<void> | undefined;
  #watchdog: NodeJS.Timeout | undefined;
  #silentFor = 0;
  #isWatching = false;

  constructor(options: ProxyOptions) {
    this.#options = options;
  }

  /** Waits for a daemon for a while; the same for all who wait. Rejects with why there is none. */
  async connect(): Promise<void> {
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  async #connect(): Promise<void> {
    const deadline = performance.now() + START_MS;
    for (;;) {
      try {
        return this.#adopt(await this.#greet(deadline - performance.now()));
      } catch (error) {
        if (error instanceof RefusedError || performance.now() + LOOK_MS >= deadline) throw error;
        await sleep(LOOK_MS);
      }
    }
  }

  /** Until the client ends its side, and all that it had sent was taken. */
  async pass(stdin: Readable): Promise<void> {
    for await (const line of linesOf(stdin)) await this.#toDaemon(line);
    const socket = this.#socket;
    if (!socket) return;
    socket.end();
    await Promise.race([once(socket, "close"), sleep(LAST_WORDS_MS)]);
  }

  async #greet(ms: number): Promise<Socket> {
    const socket = await connectTo(this.#options.path);
    // What ends it is told by "close".
    socket.on("error", () => undefined);
    socket.write(`${JSON.stringify(helloOf())}\n`);
    try {
      const { refused } = readDaemonHello(await firstLine(socket, Math.max(1, ms)));
      if (refused === undefined) return socket;
      throw new RefusedError(refused);
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  #adopt(socket: Socket): void {
    this.#socket = socket;
    for (const line of this.#conversation.opening()) socket.write(`${line}\n`);
    this.#isWatching = false;
    this.#watch();
    void this.#fromDaemon(socket);
  }

  async #toDaemon(line: string): Promise<void> {
    if (line.startsWith("#") || line.trim() === "") return;
    if (!this.#socket) {
      const why = await this.connect().then(() => undefined, whyOf);
      if (why !== undefined) {
        const text = `The daemon "${this.#options.name}" is not there: ${why}. ${adviceFor(this.#options.name)}`;
        await this.#toClient(this.#conversation.refusal(line, text));
        return;
      }
    }
    const sent = this.#conversation.fromClient(line);
    this.#watch();
    const socket = this.#socket;
    if (sent !== undefined && socket && !socket.write(`${sent}\n`)) {
      await Promise.race([once(socket, "drain"), once(socket, "close")]);
    }
  }

  async #fromDaemon(socket: Socket): Promise<void> {
    try {
      for await (const line of linesOf(socket)) {
        // What a daemon says that was given up is answered already.
        if (this.#socket !== socket) break;
        this.#silentFor = 0;
        if (line === ALIVE) continue;
        await this.#toClient(this.#conversation.fromDaemon(line));
        this.#watch();
      }
    } catch {
      // The connection broke: the same as its end.
    }
    socket.destroy();
    if (this.#socket !== socket) return;
    await this.#onLost(DIED);
  }

  async #onLost(why: string): Promise<void> {
    this.#socket = undefined;
    this.#stopWatching();
    for (const line of this.#conversation.lost(why)) await this.#toClient(line);
    // Others are connected by the next line of the client.
    if (this.#conversation.isFollowing) await this.connect().catch(() => undefined);
  }

  async #toClient(line: string | undefined): Promise<void> {
    const { stdout } = this.#options;
    if (line !== undefined && !stdout.write(`${line}\n`)) await once(stdout, "drain");
  }

  /** Signs of life are wanted while an answer is owed. */
  #watch(): void {
    const { isWaiting } = this.#conversation;
    if (isWaiting === this.#isWatching || !this.#socket) return;
    this.#isWatching = isWaiting;
    this.#socket.write(`${isWaiting ? WATCH : REST}\n`);
    if (!isWaiting) return this.#stopWatching();
    this.#silentFor = 0;
    // Seconds are counted, not compared: a machine that sleeps counts none.
    this.#watchdog = setInterval(() => {
      this.#silentFor += 1;
      if (this.#silentFor < SILENT_S) return;
      const socket = this.#socket;
      void this.#onLost(SILENT);
      socket?.destroy();
    }, 1_000);
  }

  #stopWatching(): void {
    clearInterval(this.#watchdog);
    this.#isWatching = false;
  }
}

/** After the client has ended its side, the daemon has so long to take what was sent, ms. */
const LAST_WORDS_MS = 1_000;

const ADVICE =
  "Nothing that was recorded is lost: look with claude_code_check, or list sessions with claude_code_session, before you repeat the call.";
const DIED = `The daemon that served this call has ended. ${ADVICE}`;
const SILENT = `The daemon that served this call does not answer. ${ADVICE}`;

class RefusedError extends Error {}

function helloOf(): ClientHello {
  return { protocol: PROTOCOL, purpose: "mcp", cwd: process.cwd(), commandLine: process.argv };
}

const NEWLINE = 0x0a;

/** Lines of any length, without their ends. The next one is read when the last was dealt with. */
async function* linesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  for await (const chunk of stream) {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...begun, rest.subarray(0, end)]).toString("utf8");
      begun = [];
      rest = rest.subarray(end + 1);
      yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (rest.length > 0) begun.push(rest);
  }
  if (begun.length > 0) yield Buffer.concat(begun).toString("utf8");
}
