import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { afterAll } from "vitest";
import { encodeFrame, type Frame, FrameReader } from "../../../src/shim/frame.ts";
import { type FromShim, readFromShim, SHIM_PROTOCOL, type ToShim } from "../../../src/shim/protocol.ts";

/** The built shim, and owners played by a test. */

export const PROGRAM = join(import.meta.dirname, "../../../dist/shim/shim.js");
const DAEMON = "d1";

export const sh = (script: string): string[] => ["/bin/sh", "-c", script];
/** Answers each line of stdin. */
export const ECHO = sh("while read line; do echo got $line; done");
/** `id` of the process in these tests, and `epoch` of its first owner. */
export const FIRST_PROCESS = { id: "p", epoch: 1 } as const;

export function write(owner: Owner, lineId: string, text: string, epoch: number = FIRST_PROCESS.epoch): void {
  owner.send({ t: "write", id: FIRST_PROCESS.id, epoch, lineId }, text);
}

export interface Received {
  readonly message: FromShim;
  readonly body: string;
}

type Of<Kind extends FromShim["t"]> = Extract<FromShim, { t: Kind }>;

/** Connection of an owner to a shim. */
export class Owner {
  /** All messages except `lines` and `exit`. */
  readonly received: Received[] = [];
  /** Resolves when the connection has ended. */
  readonly closed: Promise<unknown>;
  readonly input: Writable;
  readonly output: Readable;
  readonly #reader = new FrameReader();
  readonly #waiting = new Set<() => void>();
  readonly #lines = new Map<string, [number, string][]>();
  readonly #end: () => void;

  constructor(input: Writable, output: Readable, end: () => void) {
    this.input = input.on("error", () => undefined);
    this.output = output.on("error", () => undefined);
    this.#end = end;
    this.closed = new Promise((resolve) => void output.once("close", resolve));
    output.on("data", (chunk: Buffer) => {
      for (const frame of this.#reader.push(chunk)) this.#take(frame);
      for (const look of this.#waiting) look();
    });
  }

  send(message: ToShim, body = ""): void {
    this.input.write(encodeFrame(message, Buffer.from(body)));
  }

  /** Resolves with the first message for which `fits` is true, past or future, and its body. */
  async find<Found extends FromShim>(
    fits: (message: FromShim, body: string) => message is Found,
  ): Promise<Received & { message: Found }>;
  async find(fits: (message: FromShim, body: string) => boolean): Promise<Received>;
  async find(fits: (message: FromShim, body: string) => boolean): Promise<Received> {
    const found = () => this.received.find(({ body, message }) => fits(message, body));
    await this.#when(() => found() !== undefined);
    return found()!;
  }

  async answer<Kind extends FromShim["t"]>(kind: Kind): Promise<Of<Kind> & { readonly body: string }> {
    const { body, message } = await this.find((each): each is Of<Kind> => each.t === kind);
    return { ...message, body };
  }

  /** Starts a program; resolves when it runs. */
  async start(
    id: string,
    command: readonly string[],
    more: { epoch?: number; env?: Record<string, string>; tag?: string } = {},
  ) {
    const [program = "", ...args] = command;
    const env = { PATH: process.env["PATH"] ?? "", ...more.env };
    this.send({ t: "start", id, epoch: more.epoch ?? 1, command: program, args, env, tag: more.tag ?? "" });
    return (await this.find((each): each is Of<"started"> => each.t === "started" && each.id === id)).message;
  }

  async attach(id: string, epoch: number, after: number): Promise<Of<"attached"> & { readonly body: string }> {
    this.send({ t: "attach", id, epoch, after });
    return this.answer("attached");
  }

  /** Numbers and texts of a process's lines so far; the exit comes last. */
  lines(id = "p"): [number, string][] {
    return this.#lines.get(id) ?? [];
  }

  /** Resolves with all lines once there are at least `count`. */
  async hasLines(count: number, id = "p"): Promise<[number, string][]> {
    await this.#when(() => this.lines(id).length >= count);
    return this.lines(id);
  }

  /** Resolves with number and text of the exit. */
  async exit(id = "p"): Promise<[number, string]> {
    const last = () => this.lines(id).at(-1);
    await this.#when(() => last()?.[1].startsWith("exit ") === true);
    return last()!;
  }

  /** Ends the connection, like an owner that is killed. */
  end(): void {
    this.#end();
  }

  async #when(isTrue: () => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = () => {
        if (!isTrue()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  #take({ body, header }: Frame): void {
    const message = readFromShim(header);
    if (message.t !== "lines" && message.t !== "exit") {
      this.received.push({ message, body: body.toString() });
      return;
    }
    const texts =
      message.t === "lines" ? body.toString().split("\n") : [`exit ${String(message.code ?? message.signal)}`];
    const lines = this.#lines.get(message.id) ?? [];
    this.#lines.set(message.id, lines);
    lines.push(...texts.map((text, at): [number, string] => [message.n + at, text]));
  }
}

export interface Shim {
  readonly pid: number;
  readonly socket: string;
  readonly stateFolder: string;
  /** Resolves with the exit code when the process has ended. */
  readonly gone: Promise<number | null>;
  /** Connects an owner and says `hello`. */
  owner(): Promise<Owner>;
  /** Connects an owner in a separate process, so that tests can stop and kill it. */
  ownerProcess(): Promise<{ readonly owner: Owner; readonly process: ChildProcess }>;
  /** Connects an owner without a `hello`. */
  connect(): Promise<Owner>;
  log(): string;
  /** Resident memory, bytes. */
  memory(): number;
}

export interface ShimStart {
  readonly keepMs?: number;
  readonly restart?: { readonly command: string; readonly args: readonly string[] };
  readonly restartAfterMs?: number;
  readonly reaper?: { readonly command: string; readonly args: readonly string[] };
  readonly program?: string;
  readonly stateFolder?: string;
}

const RELAY = `const s = require("net").connect(process.argv[1]); process.stdin.pipe(s).pipe(process.stdout); s.on("close", () => process.exit())`;

const BARE = `
  import "node:child_process";
  import { createServer } from "node:net";
  createServer().listen(process.argv[1], () => process.stdout.write("up"));
`;

/** Starts shims for the tests of a file; ends all of their processes afterwards. */
export function useShims() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-shim-")));
  const running = new Set<ChildProcess>();
  const watched = (child: ChildProcess) => {
    running.add(child);
    return once(child, "exit").then(([code]: (number | null)[]) => {
      running.delete(child);
      return code ?? null;
    });
  };
  afterAll(async () => {
    await Promise.all([...running].map(async (child) => (child.kill("SIGKILL"), once(child, "exit"))));
    rmSync(root, { recursive: true, force: true });
  });

  const start = async ({ program = PROGRAM, stateFolder = mkdtempSync(join(root, "s-")), ...more }: ShimStart = {}) => {
    const socket = join(mkdtempSync(join(root, "run-")), "d1.0a1b2c3d.shim");
    mkdirSync(join(stateFolder, "logs"), { recursive: true });
    const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "ignore"], detached: true });
    const gone = watched(child);
    const { restart, ...others } = more;
    const again = restart && { restart: { ...restart, cwd: root, env: { PATH: process.env["PATH"] ?? "" } } };
    child.stdin.end(JSON.stringify({ socket, daemon: DAEMON, keepMs: 60_000, stateFolder, ...others, ...again }));
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    // The shim closes stdout once it is ready.
    await once(child.stdout, "close");
    const [, pid] = /^ready (\d+) \S+\n$/.exec(said) ?? [];
    if (pid === undefined) throw new Error(`the shim did not start: ${said}`);
    const connected = async () => {
      const stream = connect(socket);
      await once(stream, "connect");
      return new Owner(stream, stream, () => stream.destroy());
    };
    const shim: Shim = {
      pid: Number(pid),
      socket,
      stateFolder,
      gone,
      connect: connected,
      owner: async () => greeted(await connected()),
      ownerProcess: async () => {
        const relay = spawn(process.execPath, ["-e", RELAY, socket], { stdio: ["pipe", "pipe", "ignore"] });
        void watched(relay);
        const owner = new Owner(relay.stdin, relay.stdout, () => relay.kill("SIGKILL"));
        return { owner: await greeted(owner), process: relay };
      },
      log: () => readFileSync(join(stateFolder, "logs", `daemon-${DAEMON}.shim.log`), "utf8"),
      memory: () => residentMemory(Number(pid)),
    };
    return shim;
  };
  /** Memory of a Node process that only listens, bytes. */
  const bareNode = async () => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", BARE, join(root, "bare")], { stdio: "pipe" });
    void watched(child);
    await once(child.stdout, "data");
    return residentMemory(child.pid!);
  };
  return { root, start, bareNode };
}

async function greeted(owner: Owner): Promise<Owner> {
  owner.send({ t: "hello", protocol: SHIM_PROTOCOL, daemon: DAEMON });
  await owner.answer("hello");
  return owner;
}

function residentMemory(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

export function isRunning(pid: number): boolean {
  if (!existsSync(`/proc/${String(pid)}/stat`)) return false;
  try {
    return !/\) Z /.test(readFileSync(`/proc/${String(pid)}/stat`, "utf8"));
  } catch {
    return false;
  }
}
