import { createInterface } from "node:readline";
import type { Duplex, Readable, Writable } from "node:stream";
import { ALIVE_MS, objectIn, REST, WATCH } from "./wire.ts";
import { AppError } from "../domain/error.ts";
import type { Engine } from "../engine/api.ts";

/**
 * Operations of the engine that the console's process delegates to its daemon, so that started work outlives that process.
 * Wire: one JSON line each way, `{id, operation, args}`, and `{id, value}` or `{id, error}`. Arguments are not validated,
 * because both ends are of one user and of one build (the name of the socket says so).
 */

const NAMES = [
  "answer",
  "adopt",
  "cancel",
  "close",
  "continueTurn",
  "control",
  "create",
  "delete",
  "delivered",
  "extend",
  "fill",
  "fork",
  "interrupt",
  "open",
  "partial",
  "pass",
  "prompt",
  "queue",
  "rename",
  "revoke",
  "verify",
  "waitingBefore",
] as const satisfies (keyof Engine)[];

type OperationName = (typeof NAMES)[number];
export type Operations = Pick<Engine, OperationName>;

interface OperationAnswer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly code: AppError["code"]; readonly message: string; readonly sessionId?: string };
}

/** Runs requested operations in the daemon until `stdin` ends. `onFault` receives errors that are not an `AppError`. */
export async function performOperations(
  { stdin, stdout }: Streams,
  operations: Operations,
  onFault: (error: unknown) => void,
): Promise<void> {
  for await (const line of createInterface({ input: stdin })) {
    if (line.startsWith("#")) continue;
    void runOperation(line, operations, onFault).then((answer) => stdout.write(`${JSON.stringify(answer)}\n`));
  }
}

interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
}

async function runOperation(
  line: string,
  operations: Operations,
  onFault: (error: unknown) => void,
): Promise<OperationAnswer> {
  let number = 0;
  try {
    const { args, id, operation } = objectIn(line);
    number = Number(id);
    const name = NAMES.find((each) => each === operation);
    if (!name || !Array.isArray(args)) throw new AppError("INTERNAL", "The daemon does not know this operation.");
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both ends are of one build
    const call = operations[name].bind(operations) as (...given: unknown[]) => Promise<unknown>;
    return { id: number, value: await call(...(args as unknown[])) };
  } catch (error) {
    if (!(error instanceof AppError)) onFault(error);
    const failure = error instanceof AppError ? error : new AppError("INTERNAL", "The daemon failed. See its log.");
    const { code, message, sessionId } = failure;
    return { id: number, error: { code, message, ...(sessionId !== undefined && { sessionId }) } };
  }
}

/**
 * Client of `performOperations`. `connect` resolves to a connection to a daemon that has said hello, and is called again after
 * a lost connection.
 */
export function operationsThrough(connect: () => Promise<Duplex>): Operations {
  const client = new OperationsClient(connect);
  const entries = NAMES.map((name) => [name, async (...args: unknown[]) => client.ask(name, args)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one entry for each name
  return Object.fromEntries(entries) as Operations;
}

/**
 * Returns the engine of a process that delegates all work to its daemon. The engine reads the store directly, and takes over no
 * sessions of dead servers.
 */
export function withOperations(engine: Engine, operations: Operations): Engine {
  const reading = engine.forCaller({ scopes: ["read"] });
  const delegating: Engine = {
    ...reading,
    ...operations,
    stop: async (graceMs) => engine.stop(graceMs),
    drain: async () => engine.drain(),
    forCaller: () => delegating,
    forConnection: () => delegating,
  };
  return delegating;
}

class OperationsClient {
  readonly #connect: () => Promise<Duplex>;
  readonly #waiting = new Map<number, (answer: OperationAnswer) => void>();
  #socket: Promise<Duplex> | undefined;
  #count = 0;
  readonly #lost = new WeakSet<Duplex>();
  #watchdog: NodeJS.Timeout | undefined;
  #silentFor = 0;

  constructor(connect: () => Promise<Duplex>) {
    this.#connect = connect;
  }

  /** Throws the error that `operation` throws in the daemon. */
  async ask(operation: OperationName, args: unknown[]): Promise<unknown> {
    const socket = await (this.#socket ??= this.#open());
    const id = (this.#count += 1);
    const answered = new Promise<OperationAnswer>((resolve) => this.#waiting.set(id, resolve));
    socket.write(`${JSON.stringify({ id, operation, args })}\n`);
    this.#watch(socket);
    const { error, value } = await answered;
    if (this.#waiting.size === 0) this.#unwatch(socket);
    if (!error) return value;
    const { code, message, sessionId } = error;
    throw new AppError(code, message, sessionId === undefined ? {} : { sessionId });
  }

  async #open(): Promise<Duplex> {
    try {
      const socket = await this.#connect();
      void this.#read(socket);
      return socket;
    } catch (error) {
      this.#socket = undefined;
      const why = error instanceof Error ? error.message : String(error);
      throw new AppError("INTERNAL", `No daemon is available: ${why}. See \`claude-agents-mcp daemon logs\`.`);
    }
  }

  /**
   * Asks the daemon for signs of life, because an operation may take long. Counts ticks of the timer and not the clock, so that
   * time in which the machine sleeps does not count.
   */
  #watch(socket: Duplex): void {
    if (this.#watchdog) return;
    this.#silentFor = 0;
    socket.write(`${WATCH}\n`);
    this.#watchdog = setInterval(() => {
      this.#silentFor += 1;
      if (this.#silentFor >= MAX_SILENT) this.#failPending(socket, SILENT);
    }, ALIVE_MS);
  }

  #unwatch(socket: Duplex): void {
    clearInterval(this.#watchdog);
    this.#watchdog = undefined;
    if (socket.writable) socket.write(`${REST}\n`);
  }

  /**
   * Fails all pending operations of a lost connection. Only once for each `socket`, because `#waiting` then belongs to the next
   * connection.
   */
  #failPending(socket: Duplex, message: string): void {
    if (this.#lost.has(socket)) return;
    this.#lost.add(socket);
    socket.destroy();
    clearInterval(this.#watchdog);
    this.#watchdog = undefined;
    this.#socket = undefined;
    for (const [id, answer] of this.#waiting) answer({ id, error: { code: "INTERNAL", message } });
    this.#waiting.clear();
  }

  async #read(socket: Duplex): Promise<void> {
    try {
      for await (const line of createInterface({ input: socket })) {
        this.#silentFor = 0;
        if (line.startsWith("#")) continue;
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both ends are of one build
        const answer = objectIn(line) as unknown as OperationAnswer;
        this.#waiting.get(answer.id)?.(answer);
        this.#waiting.delete(answer.id);
      }
    } catch {
      // A broken connection counts as ended.
    }
    this.#failPending(socket, ENDED);
  }
}

/** Number of `ALIVE_MS` without a line from the daemon, after which the connection counts as lost. */
const MAX_SILENT = 5;

const ADVICE = "Nothing that was recorded is lost: look at the session before you try again.";
const ENDED = `The daemon has ended before it answered. ${ADVICE}`;
const SILENT = `The daemon does not answer. ${ADVICE}`;
