import { countOf, type Fields, idOf, listOf, MAX_ID, numberOf, optionalText, textOf, textsOf } from "./fields.ts";
import { type Header, ProtocolError } from "./frame.ts";

/**
 * Messages between a shim and its owners. Checked by hand, because a shim loads no schemas. The first frame each way is the
 * hello; another version ends the connection. Later versions keep the frame and the fields of both hellos.
 */

export const SHIM_PROTOCOL = 3;

/** `epoch` fences: messages must have the epoch of the last `start` or `attach`. */
interface ProcessMessage {
  readonly id: string;
  readonly epoch: number;
}

/** Messages of an owner. */
export type ToShim =
  | { readonly t: "hello"; readonly protocol: number; readonly daemon: string }
  /**
   * Answered by `started` or `failed`. Spares have epoch 0. The body describes the environment of this owner for the next
   * owner, in a form of their own: the shim keeps the body in memory and returns it unread.
   */
  | (ProcessMessage & {
      readonly t: "start";
      readonly command: string;
      readonly args: readonly string[];
      readonly cwd?: string;
      /** Whole environment. */
      readonly env: Readonly<Record<string, string>>;
      /**
       * Tag of the process at the reaper: `NUMBER VALUE`, where NUMBER may be empty. The shim registers `+PID TAG` with its
       * reaper before `started`. The owner removes the registration, because only the owner knows when nothing of the process
       * is left.
       */
      readonly tag: string;
    })
  /**
   * Takes the process over from an owner with a lower epoch, or with an equal epoch and a closed connection. Answered by
   * `attached`, then the last text on stderr, then all lines above `after`, including lines that this connection has received
   * before.
   */
  | (ProcessMessage & { readonly t: "attach"; readonly after: number })
  /** The body is one line without its line break. Answered by `written` after the system has taken the line. */
  | (ProcessMessage & { readonly t: "write"; readonly lineId: string })
  /** Acknowledges all lines up to `upTo`. */
  | (ProcessMessage & { readonly t: "ack"; readonly upTo: number })
  | (ProcessMessage & { readonly t: "end-input" })
  | (ProcessMessage & { readonly t: "signal"; readonly signal: string })
  /** Sends SIGKILL to the process and all its descendants. */
  | (ProcessMessage & { readonly t: "kill" })
  /** Binds the process to this connection, whose end ends the process at once: the session is in the memory of this owner. */
  | (ProcessMessage & { readonly t: "bound" })
  /**
   * Gives the processes of this connection `forMs` from the receipt on, later ones included. Afterwards the shim ends them, and
   * refuses this connection as an owner until its next `lease`. Without this message they have no end.
   */
  | { readonly t: "lease"; readonly forMs: number }
  | { readonly t: "list" }
  /** Line for the reaper, without its line break. */
  | { readonly t: "reaper"; readonly line: string }
  /** This connection starts nothing more. The shim ends once all connections have said `end` and no process is left. */
  | { readonly t: "end" };

export interface ListedProcess {
  readonly id: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly epoch: number;
  readonly tag: string;
  /** Set if the process belongs to a session (`epoch` above 0). */
  readonly session?: true;
  /** Set while a connection owns the process. */
  readonly owned?: true;
  /** Set after the exit, until the exit is acknowledged. */
  readonly exited?: true;
  /** Set while the process starts: `startedAt` is empty, and `pid` is 0 if there is no process yet. */
  readonly starting?: true;
}

/** Messages of a shim. `startedAt` is in the form of `startTime` (src/claude/supervise/tree.ts). */
export type FromShim =
  | { readonly t: "hello"; readonly protocol: number; readonly pid: number; readonly startedAt: string }
  | { readonly t: "started"; readonly id: string; readonly pid: number; readonly startedAt: string }
  | { readonly t: "failed"; readonly id: string; readonly message: string; readonly code?: string }
  | Attached
  | { readonly t: "written"; readonly id: string; readonly lineId: string; readonly again: boolean }
  /**
   * The body is one or several lines, separated by line breaks. `n` is the number of the first line; numbers ascend from 1.
   * Missing numbers are evicted partial text, or lines above `MAX_BODY`.
   */
  | { readonly t: "lines"; readonly id: string; readonly n: number }
  /** Last item, numbered as a line. Acknowledging the exit removes the process. */
  | {
      readonly t: "exit";
      readonly id: string;
      readonly n: number;
      readonly code: number | null;
      readonly signal: string | null;
    }
  /** The body is UTF-8 text, unnumbered and not repeated. After `attached`: the last whole lines so far. */
  | { readonly t: "stderr"; readonly id: string }
  /** Another owner has attached to this process. */
  | { readonly t: "superseded"; readonly id: string }
  /** Refuses a message. `of` is its kind, `lineId` the id in a `write`. */
  | {
      readonly t: "refused";
      readonly id?: string;
      readonly of: string;
      readonly lineId?: string;
      readonly message: string;
    }
  | { readonly t: "processes"; readonly processes: readonly ListedProcess[] };

export interface Attached {
  readonly t: "attached";
  readonly id: string;
  readonly pid: number;
  readonly startedAt: string;
  /** Number of lost lines above `after`, without partial text. */
  readonly lost: number;
  /** Number of evicted lines of partial text above `after`. */
  readonly evicted: number;
  /** Length of the body of `start`, with which this body begins, bytes. */
  readonly record: number;
  /** True if Claude Code's first answer to `initialize` follows in the body. */
  readonly initialize: boolean;
  /** Ids of Claude Code's control requests that are neither answered nor cancelled. */
  readonly open: readonly string[];
  /** Ids of the last lines written to Claude Code. */
  readonly written: readonly string[];
}

/** Reads a header of an owner. Throws `ProtocolError` with the fault. */
export function readToShim(header: Header): ToShim {
  const { t } = header;
  switch (t) {
    case "hello":
      return { t, protocol: numberOf(header, "protocol"), daemon: textOf(header, "daemon") };
    case "start":
      return { t, ...processOf(header), ...commandOf(header), tag: textOf(header, "tag") };
    case "attach":
      return { t, ...processOf(header), after: countOf(header, "after") };
    case "write":
      return { t, ...processOf(header), lineId: idOf(header, "lineId") };
    case "ack":
      return { t, ...processOf(header), upTo: countOf(header, "upTo") };
    case "signal":
      return { t, ...processOf(header), signal: textOf(header, "signal") };
    case "end-input":
    case "kill":
    case "bound":
      return { t, ...processOf(header) };
    case "lease":
      return { t, forMs: countOf(header, "forMs") };
    case "reaper":
      return { t, line: textOf(header, "line") };
    case "list":
    case "end":
      return { t };
    default:
      throw new ProtocolError(`"${t.slice(0, MAX_ID)}" is not a message to a shim`);
  }
}

/** Reads a header of a shim. Throws `ProtocolError` with the fault. */
export function readFromShim(header: Header): FromShim {
  const { t } = header;
  switch (t) {
    case "hello":
      return { t, protocol: numberOf(header, "protocol"), ...identityOf(header) };
    case "started":
      return { t, id: textOf(header, "id"), ...identityOf(header) };
    case "failed":
      return { t, id: textOf(header, "id"), message: textOf(header, "message"), ...optionalText(header, "code") };
    case "attached":
      return attachedOf(header);
    case "written":
      return { t, id: textOf(header, "id"), lineId: textOf(header, "lineId"), again: header["again"] === true };
    case "lines":
      return { t, id: textOf(header, "id"), n: countOf(header, "n") };
    case "exit":
      return { t, id: textOf(header, "id"), n: countOf(header, "n"), ...exitOf(header) };
    case "stderr":
    case "superseded":
      return { t, id: textOf(header, "id") };
    case "refused":
      return refusedOf(header);
    case "processes":
      return { t, processes: listOf(header, "processes").map((each) => listedOf(each)) };
    default:
      throw new ProtocolError(`"${t.slice(0, MAX_ID)}" is not a message of a shim`);
  }
}

function attachedOf(header: Fields): Attached {
  return {
    t: "attached",
    id: textOf(header, "id"),
    ...identityOf(header),
    lost: countOf(header, "lost"),
    evicted: countOf(header, "evicted"),
    record: countOf(header, "record"),
    initialize: header["initialize"] === true,
    open: textsOf(header, "open"),
    written: textsOf(header, "written"),
  };
}

function refusedOf(header: Fields): FromShim {
  const [of, message] = [textOf(header, "of"), textOf(header, "message")];
  return { t: "refused", of, message, ...optionalText(header, "id"), ...optionalText(header, "lineId") };
}

function exitOf(header: Fields) {
  const { code, signal } = header;
  return { code: typeof code === "number" ? code : null, signal: typeof signal === "string" ? signal : null };
}

function listedOf(value: unknown): ListedProcess {
  const fields: Fields = typeof value === "object" && value !== null ? { ...value } : {};
  return {
    id: textOf(fields, "id"),
    ...identityOf(fields),
    epoch: countOf(fields, "epoch"),
    tag: textOf(fields, "tag"),
    ...(fields["session"] === true && { session: true }),
    ...(fields["owned"] === true && { owned: true }),
    ...(fields["exited"] === true && { exited: true }),
    ...(fields["starting"] === true && { starting: true }),
  };
}

function processOf(fields: Fields) {
  return { id: idOf(fields, "id"), epoch: countOf(fields, "epoch") };
}

function identityOf(fields: Fields) {
  return { pid: countOf(fields, "pid"), startedAt: textOf(fields, "startedAt") };
}

function commandOf(fields: Fields) {
  const { env } = fields;
  if (typeof env !== "object" || env === null) throw new ProtocolError("`env` is not an object");
  const texts = Object.entries(env).flatMap(([name, value]: [string, unknown]) =>
    typeof value === "string" ? [[name, value] as const] : [],
  );
  return {
    command: textOf(fields, "command"),
    args: textsOf(fields, "args"),
    env: Object.fromEntries(texts),
    ...optionalText(fields, "cwd"),
  };
}
