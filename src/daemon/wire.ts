import type { Socket } from "node:net";
import { isAbsolute } from "node:path";
import { Patience } from "./patience.ts";

/**
 * The wire between a client's end and a daemon: lines. The first each way is a hello. Lines that begin with # are between the two
 * ends; all others are MCP. Plain checks by hand: this module is loaded by processes that load no schemas.
 */

export const PROTOCOL = 1;

/** The client's end asks with it for a sign of life each second, as long as calls are open; and no more. */
export const WATCH = "#watch";
export const REST = "#rest";
export const ALIVE = "#alive";
export const ALIVE_MS = 1_000;

/** What a connection is for. */
export type Purpose = "mcp" | "operations" | "status" | "stop";

export interface ClientHello {
  readonly protocol: number;
  readonly purpose: Purpose;
  /** The folder in which the client was started. */
  readonly cwd: string;
  /** The command line by which the client has started its end. */
  readonly commandLine: readonly string[];
  /** The process that has started it, as far as it is known. */
  readonly clientPid?: number;
}

export interface DaemonHello {
  readonly protocol: number;
  readonly pid: number;
  readonly version: string;
  /** Why it does not serve this connection, and what to do. */
  readonly refused?: string;
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
  /** Its log file; undefined where it logs to the stderr of who has started it. */
  readonly log?: string | undefined;
  readonly socket: string;
  /** Who holds the pipes of its processes; undefined where it was started before there were shims. */
  readonly shim?: ShimStatus | undefined;
  /** Why the one before it has ended, where that was not in order. */
  readonly lastDeath?: { readonly pid: number; readonly noticedAt: string; readonly why: string } | undefined;
  /** Digests of what it was made with, by what each is called: compared, they tell by what two daemons differ, never how. */
  readonly traits: Readonly<Record<string, string>>;
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

const PURPOSES: readonly unknown[] = ["mcp", "operations", "status", "stop"] satisfies Purpose[];

/** Throws what is wrong, for the other end. */
export function readClientHello(line: string): ClientHello {
  const { clientPid, commandLine, cwd, protocol, purpose } = objectIn(line);
  if (protocol !== PROTOCOL)
    throw new Error(`protocol ${String(protocol)} is not spoken here, only ${String(PROTOCOL)}`);
  const words = Array.isArray(commandLine) ? commandLine.filter((word) => typeof word === "string") : [];
  if (!isPurpose(purpose)) throw new Error("the purpose of the connection is unknown");
  if (typeof cwd !== "string" || !isAbsolute(cwd)) throw new Error("cwd is not an absolute path");
  return { protocol, purpose, cwd, commandLine: words, ...(typeof clientPid === "number" && { clientPid }) };
}

export function readDaemonHello(line: string): DaemonHello {
  const { isEnding, pid, protocol, refused, version } = objectIn(line);
  if (protocol !== PROTOCOL || typeof pid !== "number" || typeof version !== "string") {
    throw new Error("what answers on the socket is no daemon of claude-agents-mcp that this version knows");
  }
  const why = typeof refused === "string" ? { refused } : {};
  return { protocol, pid, version, ...why, ...(isEnding === true && { isEnding }) };
}

function isPurpose(value: unknown): value is Purpose {
  return PURPOSES.includes(value);
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
