import type { Socket } from "node:net";
import { isAbsolute } from "node:path";
import { Patience } from "./patience.ts";

/**
 * The wire between a client's end and a daemon: lines. The first each way is a hello. Lines that begin with # are between the two
 * ends; all others are MCP. Plain checks by hand: this module is loaded by processes that load no schemas.
 */

export const PROTOCOL = 2;

/** The client's end asks with it for a sign of life each second, as long as calls are open; and no more. */
export const WATCH = "#watch";
export const REST = "#rest";
export const ALIVE = "#alive";
/** The client has ended its input: the daemon ends the connection once it has answered. */
export const END = "#end";
export const ALIVE_MS = 1_000;

/** Asks a daemon for something, whatever protocol it speaks: the answer ends the connection. */
export interface Question {
  readonly protocol: number;
  readonly purpose: "status" | "stop";
}

/** Variables of a process. */
export type Environment = Readonly<Record<string, string>>;

/** The purpose of a connection, and all that its client has of its own. */
export interface ClientHello {
  readonly protocol: number;
  readonly purpose: "mcp" | "operations";
  /** The build of the client's end, with purpose "operations". */
  readonly build?: string;
  /** The folder in which the client was started. */
  readonly cwd: string;
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  /** The whole environment of the client's end. The daemon keeps it in memory alone. */
  readonly environment: Environment;
  /** The client's file of settings, where it names one. The client's end reads it: a mount that hangs then holds up no other client. */
  readonly configFile?: { readonly text: string } | { readonly fault: string };
  /** The command line by which the client has started its end. */
  readonly commandLine: readonly string[];
  /** The process that has started it, as far as it is known. */
  readonly clientPid?: number;
  /** Ids of the sessions that it has had to do with at the daemon before. */
  readonly sessions?: readonly string[];
}

export interface DaemonHello {
  readonly protocol: number;
  readonly pid: number;
  readonly version: string;
  /** Why it does not serve this connection, and what to do. */
  readonly refused?: string;
  /** The client's own settings are why: no other server would serve it. */
  readonly isOfClient?: boolean;
  /** It is about to end: the next one serves. */
  readonly isEnding?: boolean;
}

export interface DaemonStatus {
  readonly pid: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly version: string;
  readonly nodeVersion: string;
  /** As the store and its sessions know it. */
  readonly nodeId: string;
  readonly state: "ready" | "draining";
  /** Connected clients. */
  readonly proxies: number;
  /** Sessions that are at work. */
  readonly sessions: number;
  /** Claude Code processes, spares included. */
  readonly processes: number;
  /** Sessions in which a turn runs: what a stop would interrupt. */
  readonly turns: readonly { readonly sessionId: string; readonly title: string }[];
  /** The user's file of settings that it reads at its start; undefined of builds that do not say so. */
  readonly userFile?: string | undefined;
  /** Its log file; undefined where it logs to the stderr of who has started it. */
  readonly log?: string | undefined;
  readonly socket: string;
  /** Who holds the pipes of its processes; undefined where it was started before there were shims. */
  readonly shim?: ShimStatus | undefined;
  /** Why the one before it has ended, where that was not in order. */
  readonly lastDeath?: { readonly pid: number; readonly noticedAt: string; readonly why: string } | undefined;
}

export interface ShimStatus {
  readonly setting: "auto" | "off";
  /** Why there is none although there should be: processes end with the daemon. */
  readonly fallback?: string | undefined;
  readonly shims: readonly {
    readonly pid: number;
    readonly address: string;
    readonly processes: readonly { readonly pid: number; readonly startedAt: string }[];
  }[];
}

/** Throws what is wrong, for the other end. Questions are understood in every protocol, so that a daemon of another build can be stopped. */
export function readClientHello(line: string): ClientHello | Question {
  const { argv, build, clientPid, commandLine, configFile, cwd, environment, protocol, purpose, sessions } =
    objectIn(line);
  if (purpose === "status" || purpose === "stop") return { protocol: PROTOCOL, purpose };
  if (protocol !== PROTOCOL) throw new Error(otherProtocol(protocol, PROTOCOL));
  if (purpose !== "mcp" && purpose !== "operations") throw new Error("the purpose of the connection is unknown");
  if (typeof cwd !== "string" || !isAbsolute(cwd)) throw new Error("cwd is not an absolute path");
  return {
    protocol,
    purpose,
    cwd,
    argv: wordsIn(argv),
    environment: Object.fromEntries(Object.entries(recordOf(environment)).filter(isVariable)),
    ...fileIn(configFile),
    commandLine: wordsIn(commandLine),
    ...(typeof build === "string" && { build }),
    ...(typeof clientPid === "number" && { clientPid }),
    ...(sessions !== undefined && { sessions: wordsIn(sessions) }),
  };
}

function fileIn(value: unknown): Pick<ClientHello, "configFile"> {
  if (value === undefined) return {};
  const { fault, text } = recordOf(value);
  return { configFile: typeof text === "string" ? { text } : { fault: String(fault) } };
}

/** What no process can have is left out: a program would refuse to start with it, and say its value. */
const isVariable = (entry: [string, unknown]): entry is [string, string] =>
  typeof entry[1] === "string" && !entry.join("").includes("\0");

function wordsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((word) => typeof word === "string") : [];
}

/** Throws what is wrong, for the client. */
export function readDaemonHello(line: string): DaemonHello {
  const { isEnding, isOfClient, pid, protocol, refused, version } = objectIn(line);
  if (typeof protocol !== "number" || typeof pid !== "number" || typeof version !== "string") {
    throw new Error("what answers on the socket is no daemon of claude-agents-mcp");
  }
  const why = typeof refused === "string" ? { refused } : {};
  const more = { ...(isEnding === true && { isEnding }), ...(isOfClient === true && { isOfClient }) };
  return { protocol, pid, version, ...why, ...more };
}

/** Both numbers are those of builds. */
export function otherProtocol(client: unknown, daemon: number): string {
  return `the client speaks protocol ${String(client)}, and this daemon ${String(daemon)}. Stop the daemon (\`claude-agents-mcp daemon stop\`) and start it with the client's build, or update the client.`;
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

export function objectIn(line: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null) throw new Error("a line is no JSON object");
  return { ...value };
}

/** Bytes of a hello. */
const MAX_HELLO = 4_194_304;

/** The first line of the other end; what follows stays in the stream. Rejects when the stream ends before it, or after `ms`. */
export async function firstLine(socket: Socket, ms: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    let length = 0;
    const fail = (why: string) => finish(() => reject(new Error(why)));
    const patience = new Patience(ms, () => fail(`no hello within ${String(ms)} ms`));
    const onEnd = () => fail("the connection ended before its hello");
    const onReadable = () => {
      for (let chunk: unknown = socket.read(); Buffer.isBuffer(chunk); chunk = socket.read()) {
        const at = chunk.indexOf("\n");
        length += at < 0 ? chunk.length : at;
        if (length > MAX_HELLO) return fail(`the hello has more than ${String(MAX_HELLO)} bytes`);
        received.push(at < 0 ? chunk : chunk.subarray(0, at));
        if (at < 0) continue;
        finish(() => {
          if (at + 1 < chunk.length) socket.unshift(chunk.subarray(at + 1));
          resolve(Buffer.concat(received).toString("utf8"));
        });
        return;
      }
    };
    const finish = (then: () => void) => {
      patience.end();
      socket.off("readable", onReadable).off("end", onEnd).off("error", onEnd).off("close", onEnd);
      then();
    };
    // A closed stream says so only once.
    if (socket.destroyed) return onEnd();
    socket.on("readable", onReadable).on("end", onEnd).on("error", onEnd).on("close", onEnd);
  });
}
