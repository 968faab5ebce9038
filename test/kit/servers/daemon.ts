import { spawn } from "node:child_process";
import { join } from "node:path";
import { readFlags } from "../../../src/config/parse-flags.ts";
import type { ClientKind, Person } from "../clients/connection.ts";
import { connectTo, type Server } from "./stdio-server.ts";

/** A `daemon run` as its operator starts it, and clients that connect through proxies. */
export interface Daemon {
  readonly pid: number;
  stderr(): string;
  /** Connects a client by starting a proxy, like a real client. */
  client(options?: {
    args?: readonly string[];
    env?: Record<string, string>;
    kind?: ClientKind;
    main?: string;
    person?: Person;
    cwd?: string;
  }): Promise<Server>;
  /** Sends `signal`; resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Closes all clients, then ends the daemon in order. */
  close(): Promise<void>;
}

interface Start {
  /** Flags; terms among them are bounds for the clients, and are passed to the clients too. */
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  /** Default: the build of this checkout. */
  readonly main?: string | undefined;
  readonly name: string;
}

const MAIN = join(import.meta.dirname, "../../../dist/cli/main.js");

export async function startDaemon({ args, env, main = MAIN, name }: Start): Promise<Daemon> {
  const child = spawn(process.execPath, [main, "daemon", "run", "--daemon", name, ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let stderr = "";
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString("utf8");
      if (stderr.includes("the daemon is ready")) resolve();
    });
    void gone.then(() => reject(new Error(`the daemon did not start: ${stderr}`)));
  });
  const clients: Server[] = [];
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    return gone;
  };
  return {
    pid: child.pid!,
    stderr: () => stderr,
    client: async ({ args: more = [], cwd, env: own = {}, kind = "modern", main: program = MAIN, person } = {}) => {
      const words = [program, "serve", "--daemon", name, ...termsIn(args), ...more];
      const client = await connectTo(kind, words, { ...env, ...own }, { person, cwd });
      clients.push(client);
      return client;
    },
    signal: (signal) => void child.kill(signal),
    end,
    close: async () => {
      await Promise.all(clients.map(async (client) => client.close()));
      child.kill("SIGCONT");
      await end("SIGTERM");
    },
  };
}

function termsIn(args: readonly string[]): string[] {
  const own = readFlags(args).filter(({ setting }) => setting.of === "term");
  return own.flatMap(({ text, written }) => [written, ...(text === undefined ? [] : [text])]);
}
