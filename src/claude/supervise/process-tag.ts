import { createHash } from "node:crypto";

/**
 * What all that a Claude Code starts is known by: which store, which server and which process of it. It is said twice. The
 * value of PROCESS_VARIABLE is in full, and lost where the environment is emptied (`env -i`). The number is the soft
 * limit of file locks, which Linux has not looked at since 2.4.25 and every child inherits, whatever becomes of its
 * environment, session and parent.
 */
export interface ProcessTag {
  readonly value: string;
  /** Undefined where the system has no such limit to write to. */
  readonly number: string | undefined;
}

/** PROCESS_VARIABLE once more: the reaper loads nothing that the server loads as well. */
export const TAG_VARIABLE = "CLAUDE_CODE_MCP_PROCESS";

/** A server, as the tags of its processes name it. `startedAt` tells a reused pid apart. */
export interface TaggedServer {
  /** The store: two servers with the same one may end what the other has left. */
  readonly store: string;
  readonly pid: number;
  readonly startedAt: string;
}

/** The number, from the left: a bit that is always set, then the bits of store, pid, start and process. */
const BITS = { store: 15n, pid: 22n, start: 10n, process: 15n } as const;
const ALWAYS = 1n << (BITS.store + BITS.pid + BITS.start + BITS.process);
const DIGEST_LENGTH = 12;

/** `name` is that of a process in the store; `count` tells apart what is started in its place, as a spare that was refused. */
export function processTagOf({ pid, startedAt, store }: TaggedServer, name: string, count: number): ProcessTag {
  const value = `${digest(store)}/${String(pid)}-${digest(startedAt)}/${String(count)}/${name}`;
  const fields = [
    [bitsOf(store, BITS.store), BITS.store],
    [BigInt(pid), BITS.pid],
    [bitsOf(startedAt, BITS.start), BITS.start],
    [BigInt(count), BITS.process],
  ] as const;
  const rest = fields.reduce((sum, [field, bits]) => (sum << bits) | (field & ones(bits)), 0n);
  return { value, number: (ALWAYS | rest).toString() };
}

/** Who a tag names: whether that is a server of this store, and when it began, both by digest. */
interface Named {
  readonly pid: number;
  readonly isOfStore: boolean;
  readonly began: (startedAt: string) => boolean;
}

/** Undefined where it is no tag of ours. */
export function serverOfValue(value: string, store: string): (Named & { readonly name: string }) | undefined {
  const [, ofStore, pid, start, name] = /^([0-9a-f]{12})\/(\d+)-([0-9a-f]{12})\/\d+\/(.+)$/.exec(value) ?? [];
  if (name === undefined) return undefined;
  const isOfStore = ofStore === digest(store);
  return { pid: Number(pid), isOfStore, name, began: (startedAt) => digest(startedAt) === start };
}

/** Undefined where the number is an ordinary limit, not a tag. */
export function serverOfNumber(number: string, store: string): Named | undefined {
  const bits = BigInt(number);
  if (bits < ALWAYS || bits >= ALWAYS << 1n) return undefined;
  const start = (bits >> BITS.process) & ones(BITS.start);
  const pid = (bits >> (BITS.process + BITS.start)) & ones(BITS.pid);
  const ofStore = (bits >> (BITS.process + BITS.start + BITS.pid)) & ones(BITS.store);
  return {
    pid: Number(pid),
    isOfStore: ofStore === bitsOf(store, BITS.store),
    began: (startedAt) => bitsOf(startedAt, BITS.start) === start,
  };
}

/** Number of distinct tags of one server. */
export const TAG_COUNT = Number(1n << BITS.process);

function ones(bits: bigint): bigint {
  return (1n << bits) - 1n;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, DIGEST_LENGTH);
}

function bitsOf(text: string, bits: bigint): bigint {
  return BigInt(`0x${digest(text)}`) & ones(bits);
}
