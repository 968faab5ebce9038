import type { Socket } from "node:net";
import { isAbsolute } from "node:path";
import { Countdown } from "./countdown.ts";

/**
 * Wire between proxy and daemon: lines. The first line each way is a hello. Lines that begin with `#` are control lines between
 * the two ends; all others are MCP. Validated by hand, because processes without schemas load this module.
 */

export const PROTOCOL = 2;

/** Control words of the proxy: `WATCH` asks for an `ALIVE` line every `ALIVE_MS` while calls are open, `REST` stops them. */
export const WATCH = "#watch";
export const REST = "#rest";
export const ALIVE = "#alive";
/** Sent after the client has ended its input: the daemon answers the open calls and closes the connection. */
export const END = "#end";
export const ALIVE_MS = 1_000;

/** Question to a daemon of any protocol. The answer ends the connection. */
export interface Question {
  readonly protocol: number;
  readonly purpose: "status" | "stop";
}

export type ClientEnvironment = Readonly<Record<string, string>>;

/** First line of a connecting process: the purpose of the connection, and all properties in which clients may differ. */
export interface ClientHello {
  readonly protocol: number;
  readonly purpose: "mcp" | "operations";
  /** Build of the connecting process, for `purpose` "operations". */
  readonly build?: string;
  /** Folder in which the client was started. */
  readonly cwd: string;
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  /** Whole environment of the client. The daemon keeps the variables in memory only. */
  readonly environment: ClientEnvironment;
  /**
   * Content of the client's `--config` file, if any. The proxy reads the file, so that a hanging mount delays no other client.
   */
  readonly configFile?: { readonly text: string } | { readonly fault: string };
  /** Command line by which the client has started the proxy. */
  readonly commandLine: readonly string[];
  /** Pid of the process that has started the proxy, if known. */
  readonly clientPid?: number;
  /** Ids of sessions that the client has used at earlier daemons. */
  readonly sessions?: readonly string[];
}

export interface DaemonHello {
  readonly protocol: number;
  readonly pid: number;
  readonly version: string;
  /** Reason for refusing the connection, with the remedy. */
  readonly refused?: string;
  /** The client's own settings are the reason: no other server would serve the client. */
  readonly isOfClient?: boolean;
  /** The daemon is about to end: connect to the next one. */
  readonly isEnding?: boolean;
}

export interface DaemonStatus {
  readonly pid: number;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly version: string;
  readonly nodeVersion: string;
  /** Id of the daemon in the store. */
  readonly nodeId: string;
  readonly state: "ready" | "draining";
  /** Number of connected clients. */
  readonly proxies: number;
  /** Number of sessions at work. */
  readonly sessions: number;
  /** Number of Claude Code processes, including spares. */
  readonly processes: number;
  /** Sessions with a turn. A stop would interrupt each without `waits`; the others wait at limits, and go on at the next daemon. */
  readonly turns: readonly {
    readonly sessionId: string;
    readonly title: string;
    /** `until`: time at which the daemon looks again, ms since the epoch. */
    readonly waits?: { readonly kind: string; readonly until?: number | undefined };
  }[];
  /** User's file of settings, read at the start of the daemon; `undefined` from builds that do not report the file. */
  readonly userFile?: string | undefined;
  /** Log file; `undefined` if the daemon logs to the stderr of its starter. */
  readonly log?: string | undefined;
  readonly socket: string;
  /** Holders of the pipes of its processes; `undefined` from a daemon of a build without shims. */
  readonly shim?: ShimStatus | undefined;
  /** End of the previous daemon of the name, unless orderly. */
  readonly lastDeath?: { readonly pid: number; readonly noticedAt: string; readonly why: string } | undefined;
}

export interface ShimStatus {
  readonly setting: "auto" | "off";
  /** Reason for having no shim despite `setting` "auto". Processes then end with the daemon. */
  readonly fallback?: string | undefined;
  readonly shims: readonly {
    readonly pid: number;
    readonly address: string;
    readonly processes: readonly { readonly pid: number; readonly startedAt: string }[];
  }[];
}

/**
 * Throws a message for the other end. Accepts questions of every protocol, so that a daemon of another build can be stopped.
 */
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
    environment: Object.fromEntries(Object.entries(objectOrEmpty(environment)).filter(isVariable)),
    ...configFileIn(configFile),
    commandLine: wordsIn(commandLine),
    ...(typeof build === "string" && { build }),
    ...(typeof clientPid === "number" && { clientPid }),
    ...(sessions !== undefined && { sessions: wordsIn(sessions) }),
  };
}

function configFileIn(value: unknown): Pick<ClientHello, "configFile"> {
  if (value === undefined) return {};
  const { fault, text } = objectOrEmpty(value);
  return { configFile: typeof text === "string" ? { text } : { fault: String(fault) } };
}

/** Drops values that no process can have: a program would refuse to start with such a value, and print it. */
const isVariable = (entry: [string, unknown]): entry is [string, string] =>
  typeof entry[1] === "string" && !entry.join("").includes("\0");

function wordsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((word) => typeof word === "string") : [];
}

/** Throws a message for the client. */
export function readDaemonHello(line: string): DaemonHello {
  const { isEnding, isOfClient, pid, protocol, refused, version } = objectIn(line);
  if (typeof protocol !== "number" || typeof pid !== "number" || typeof version !== "string") {
    throw new Error("the socket does not belong to a daemon of claude-agents-mcp");
  }
  const why = typeof refused === "string" ? { refused } : {};
  const more = { ...(isEnding === true && { isEnding }), ...(isOfClient === true && { isOfClient }) };
  return { protocol, pid, version, ...why, ...more };
}

export function otherProtocol(client: unknown, daemon: number): string {
  return `the client speaks protocol ${String(client)}, and this daemon ${String(daemon)}. Stop the daemon (\`claude-agents-mcp daemon stop\`) and start it with the client's build, or update the client.`;
}

function objectOrEmpty(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

export function objectIn(line: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null) throw new Error("a line is not a JSON object");
  return { ...value };
}

/** Maximum size of a hello, bytes. */
const MAX_HELLO = 4_194_304;

/**
 * Resolves to the first line from the other end. Later bytes stay in the stream. Rejects if the stream ends first, or after
 * `ms`.
 */
export async function firstLine(socket: Socket, ms: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const received: Buffer[] = [];
    let length = 0;
    const fail = (why: string) => finish(() => reject(new Error(why)));
    const countdown = new Countdown(ms, () => fail(`no hello within ${String(ms)} ms`));
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
      countdown.end();
      socket.off("readable", onReadable).off("end", onEnd).off("error", onEnd).off("close", onEnd);
      then();
    };
    // A closed stream emits "close" only once.
    if (socket.destroyed) return onEnd();
    socket.on("readable", onReadable).on("end", onEnd).on("error", onEnd).on("close", onEnd);
  });
}
