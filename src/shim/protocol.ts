import { type Header, ProtocolError } from "./frame.ts";

/**
 * The messages between a shim and its owners. Checks are written by hand: a shim loads no schemas. The first frame each way is the
 * hello, and a version that differs ends the connection. Later versions keep the frame and the fields of both hellos.
 */

export const SHIM_PROTOCOL = 2;

/** The longest id of a process, of a line towards Claude Code, or of a control request. Characters. */
export const MAX_ID = 128;

/** `epoch` fences: a message with another epoch than that of the last `start` or `attach` is refused. */
interface OfProcess {
  readonly id: string;
  readonly epoch: number;
}

/** From an owner. */
export type ToShim =
  | { readonly t: "hello"; readonly protocol: number; readonly daemon: string }
  /**
   * Answered by `started` or `failed`. Epoch 0 is that of a spare. The body is what the next owner has to know of the environment of
   * this one, in its own form: the shim keeps it in memory and gives it back.
   */
  | (OfProcess & {
      readonly t: "start";
      readonly command: string;
      readonly args: readonly string[];
      readonly cwd?: string;
      /** The whole environment. */
      readonly env: Readonly<Record<string, string>>;
      /**
       * The process as the reaper knows it: `NUMBER VALUE`, where NUMBER may be empty. The shim registers the process with its reaper under
       * it (`+PID TAG`), before `started`; to forget it again is up to the owner, who knows when nothing of it is left.
       */
      readonly tag: string;
    })
  /**
   * Takes the process over from an owner with a lower epoch, or with the same one whose connection has ended. Answered by
   * `attached`, then its last words on stderr, then all lines above `after`: also those that this connection has received before.
   */
  | (OfProcess & { readonly t: "attach"; readonly after: number })
  /** The body is one line without its line break. Answered by `written` when the system has taken it. */
  | (OfProcess & { readonly t: "write"; readonly lineId: string })
  /** All lines up to this number are dealt with. */
  | (OfProcess & { readonly t: "ack"; readonly upTo: number })
  | (OfProcess & { readonly t: "end-input" })
  | (OfProcess & { readonly t: "signal"; readonly signal: string })
  /** SIGKILL to the process and all below it. */
  | (OfProcess & { readonly t: "kill" })
  /** Its session is in the memory of this owner: it is ended at once when the connection ends. */
  | (OfProcess & { readonly t: "bound" })
  | { readonly t: "list" }
  /** A line for the reaper, without its line break. */
  | { readonly t: "reaper"; readonly line: string }
  /** This connection starts nothing more. The shim ends as soon as all connections have said it and no process is left. */
  | { readonly t: "end" };

export interface ListedProcess {
  readonly id: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly epoch: number;
  readonly tag: string;
  /** It belongs to a session: its epoch is above 0. */
  readonly session?: true;
  /** A connection owns it. */
  readonly owned?: true;
  /** It has ended, and its exit is not acknowledged. */
  readonly exited?: true;
  /** Set while the process starts: `startedAt` is empty, and `pid` is 0 if there is no process yet. */
  readonly starting?: true;
}

/** From a shim. `startedAt` as `startTime` in src/claude/supervise/tree.ts gives it. */
export type FromShim =
  | { readonly t: "hello"; readonly protocol: number; readonly pid: number; readonly startedAt: string }
  | { readonly t: "started"; readonly id: string; readonly pid: number; readonly startedAt: string }
  | { readonly t: "failed"; readonly id: string; readonly message: string; readonly code?: string }
  | Attached
  | { readonly t: "written"; readonly id: string; readonly lineId: string; readonly again: boolean }
  /**
   * The body is one line or several, with line breaks between them. `n` is the number of the first: numbers begin with 1 and ascend.
   * A missing number is that of evicted partial text, or of a line above MAX_BODY.
   */
  | { readonly t: "lines"; readonly id: string; readonly n: number }
  /** The last item, numbered as a line. When it is acknowledged the process is forgotten. */
  | {
      readonly t: "exit";
      readonly id: string;
      readonly n: number;
      readonly code: number | null;
      readonly signal: string | null;
    }
  /** The body is text in UTF-8, without number and not repeated; after `attached`, the last whole lines so far. */
  | { readonly t: "stderr"; readonly id: string }
  /** Another owner has attached to this process. */
  | { readonly t: "superseded"; readonly id: string }
  /** A message was not carried out; `of` is its kind, `lineId` that of a `write`. */
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
  /** Lines above `after` that are gone and were no partial text. */
  readonly lost: number;
  /** Lines of partial text above `after` that were evicted. */
  readonly evicted: number;
  /** Bytes at the beginning of the body that are the body of its `start`. */
  readonly record: number;
  /** What follows there is Claude Code's first answer to `initialize`. */
  readonly initialize: boolean;
  /** Ids of Claude Code's control requests that are neither answered nor cancelled. */
  readonly open: readonly string[];
  /** Ids of the last lines that were written towards Claude Code. */
  readonly written: readonly string[];
}

/** A header that an owner has sent. Throws ProtocolError with what is wrong. */
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
    case "reaper":
      return { t, line: textOf(header, "line") };
    case "list":
    case "end":
      return { t };
    default:
      throw new ProtocolError(`"${t.slice(0, MAX_ID)}" is no message to a shim`);
  }
}

/** A header that a shim has sent. Throws ProtocolError with what is wrong. */
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
      throw new ProtocolError(`"${t.slice(0, MAX_ID)}" is no message of a shim`);
  }
}

type Fields = Readonly<Record<string, unknown>>;

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

function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new ProtocolError(`\`${name}\` is not a text`);
  return value;
}

function optionalText<Name extends string>(fields: Fields, name: Name): Partial<Record<Name, string>> {
  const found: Partial<Record<Name, string>> = {};
  if (fields[name] !== undefined) found[name] = textOf(fields, name);
  return found;
}

/** Printable ASCII without quotes and backslashes: a list of them has a known length in a header. */
export function isId(text: string): boolean {
  return text.length <= MAX_ID && /^[!#-[\]-~]+$/.test(text);
}

function idOf(fields: Fields, name: string): string {
  const value = textOf(fields, name);
  if (isId(value)) return value;
  throw new ProtocolError(`\`${name}\` is not 1 to ${String(MAX_ID)} printable ASCII characters without " and \\`);
}

function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== "number") throw new ProtocolError(`\`${name}\` is not a number`);
  return value;
}

function countOf(fields: Fields, name: string): number {
  const value = numberOf(fields, name);
  if (!Number.isSafeInteger(value) || value < 0) throw new ProtocolError(`\`${name}\` is not a whole number from 0`);
  return value;
}

function listOf(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw new ProtocolError(`\`${name}\` is not a list`);
  return value;
}

function textsOf(fields: Fields, name: string): string[] {
  return listOf(fields, name).map((each) => {
    if (typeof each === "string") return each;
    throw new ProtocolError(`\`${name}\` is not a list of texts`);
  });
}
