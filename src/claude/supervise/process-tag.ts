import { createHash } from "node:crypto";

/**
 * Identifies the store, server and process behind everything that a Claude Code starts. Each descendant inherits the tag twice:
 * `value` in the variable `PROCESS_VARIABLE`, lost if the environment is emptied (`env -i`), and `number` as soft limit of file
 * locks (`RLIMIT_LOCKS`), ignored by Linux since 2.4.25 and kept across changes of environment, session and parent.
 */
export interface ProcessTag {
  readonly value: string;
  /** `undefined` if the limit cannot be set, for example on macOS or without `prlimit`. */
  readonly number: string | undefined;
}

/** Copy of `PROCESS_VARIABLE`, so that the reaper does not load `domain/names.ts`. */
export const TAG_VARIABLE = "CLAUDE_CODE_MCP_PROCESS";

/** Server named in a tag. `startedAt` distinguishes reused pids. */
export interface TaggedServer {
  /** Servers of one store may end the leftover processes of each other. */
  readonly store: string;
  readonly pid: number;
  readonly startedAt: string;
}

/** Widths of the fields of `number`, from the left, behind a constant 1 (`ALWAYS`). */
const BITS = { store: 15n, pid: 22n, start: 10n, process: 15n } as const;
const ALWAYS = 1n << (BITS.store + BITS.pid + BITS.start + BITS.process);
const DIGEST_LENGTH = 12;

/**
 * `name` is unique in the store. `count` distinguishes processes with an equal `name`, such as the replacement of a refused
 * spare.
 */
export function createProcessTag({ pid, startedAt, store }: TaggedServer, name: string, count: number): ProcessTag {
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

/** Server named by a tag. `isOfStore` and `began` compare digests. */
interface ServerInTag {
  readonly pid: number;
  readonly isOfStore: boolean;
  readonly began: (startedAt: string) => boolean;
}

/** `undefined` if `value` is not a tag. */
export function parseTagValue(value: string, store: string): (ServerInTag & { readonly name: string }) | undefined {
  const [, ofStore, pid, start, name] = /^([0-9a-f]{12})\/(\d+)-([0-9a-f]{12})\/\d+\/(.+)$/.exec(value) ?? [];
  if (name === undefined) return undefined;
  const isOfStore = ofStore === digest(store);
  return { pid: Number(pid), isOfStore, name, began: (startedAt) => digest(startedAt) === start };
}

/** `undefined` if `number` is an ordinary limit, not a tag. */
export function parseTagNumber(number: string, store: string): ServerInTag | undefined {
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
