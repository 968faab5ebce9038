import { createInterface } from "node:readline";
import type { Duplex, Readable, Writable } from "node:stream";
import { ALIVE_MS, objectIn, REST, WATCH } from "./wire.ts";
import { AppError } from "../domain/error.ts";
import type { Engine } from "../engine/api.ts";

/**
 * Operations of the engine that a process of this user leaves to its daemon, so that what they start does not end with that
 * process. One JSON line each way: `{id, operation, args}`, and `{id, value}` or `{id, error}`. Both ends are of one build,
 * which the name of the socket says, and of one user: the arguments are those of the engine's interface and not checked again.
 */

const NAMES = [
  "answer",
  "adopt",
  "cancel",
  "close",
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
  "waitingBefore",
] as const satisfies (keyof Engine)[];

type Name = (typeof NAMES)[number];
export type Operations = Pick<Engine, Name>;

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly code: AppError["code"]; readonly message: string; readonly sessionId?: string };
}

/** The daemon's end: performs what is asked until the other end leaves. `onFault` gets errors that are no refusals. */
export async function perform(
  { stdin, stdout }: Streams,
  operations: Operations,
  onFault: (error: unknown) => void,
): Promise<void> {
  for await (const line of createInterface({ input: stdin })) {
    if (line.startsWith("#")) continue;
    void answerTo(line, operations, onFault).then((answer) => stdout.write(`${JSON.stringify(answer)}\n`));
  }
}

interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
}

async function answerTo(line: string, operations: Operations, onFault: (error: unknown) => void): Promise<Answer> {
  let number = 0;
  try {
    const { args, id, operation } = objectIn(line);
    number = Number(id);
    const name = NAMES.find((each) => each === operation);
    if (!name || !Array.isArray(args)) throw new AppError("INTERNAL", "The daemon knows no such operation.");
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

/** The other end. `connect` resolves to a daemon that has said hello; it is called again when that one has gone. */
export function operationsOf(connect: () => Promise<Duplex>): Operations {
  const client = new OperationsClient(connect);
  const entries = NAMES.map((name) => [name, async (...args: unknown[]) => client.ask(name, args)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one entry for each name
  return Object.fromEntries(entries) as Operations;
}

/**
 * The engine of a process that leaves all work to its daemon: it reads the store itself, without taking over what a dead server
 * has left.
 */
export function withOperations(engine: Engine, operations: Operations): Engine {
  const reading = engine.forCaller({ scopes: ["read"] });
  const whole: Engine = {
    ...reading,
    ...operations,
    stop: async (graceMs) => engine.stop(graceMs),
    drain: async () => engine.drain(),
    forCaller: () => whole,
    forConnection: () => whole,
  };
  return whole;
}

class OperationsClient {
  readonly #connect: () => Promise<Duplex>;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #socket: Promise<Duplex> | undefined;
  #count = 0;
  readonly #lost = new WeakSet<Duplex>();
  #watchdog: NodeJS.Timeout | undefined;
  #silentFor = 0;

  constructor(connect: () => Promise<Duplex>) {
    this.#connect = connect;
  }

  /** Throws what the operation throws in the daemon. */
  async ask(operation: Name, args: unknown[]): Promise<unknown> {
    const socket = await (this.#socket ??= this.#open());
    const id = (this.#count += 1);
    const answered = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    socket.write(`${JSON.stringify({ id, operation, args })}\n`);
    this.#watch(socket);
    const { error, value } = await answered;
    if (this.#waiting.size === 0) this.#rest(socket);
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
      throw new AppError(
        "INTERNAL",
        `No daemon can be had for this: ${why}. \`claude-agents-mcp daemon logs\` may tell more.`,
      );
    }
  }

  /** An operation may take long: the daemon says each second that it lives. Seconds are counted, so that sleep does not count. */
  #watch(socket: Duplex): void {
    if (this.#watchdog) return;
    this.#silentFor = 0;
    socket.write(`${WATCH}\n`);
    this.#watchdog = setInterval(() => {
      this.#silentFor += 1;
      if (this.#silentFor >= MAX_SILENT) this.#lose(socket, SILENT);
    }, ALIVE_MS);
  }

  #rest(socket: Duplex): void {
    clearInterval(this.#watchdog);
    this.#watchdog = undefined;
    if (socket.writable) socket.write(`${REST}\n`);
  }

  /** Once for each connection: the next one has waits of its own. */
  #lose(socket: Duplex, message: string): void {
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
        const answer = objectIn(line) as unknown as Answer;
        this.#waiting.get(answer.id)?.(answer);
        this.#waiting.delete(answer.id);
      }
    } catch {
      // The connection broke: the same as its end.
    }
    this.#lose(socket, ENDED);
  }
}

/** Signs of life that a daemon may miss. */
const MAX_SILENT = 5;

const ADVICE = "Nothing that was recorded is lost: look at the session before you try again.";
const ENDED = `The daemon that was to do this has ended. ${ADVICE}`;
const SILENT = `The daemon that was to do this does not answer. ${ADVICE}`;
