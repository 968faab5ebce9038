/** Records requests to a scripted model, and lets tests wait for one. */
import type { FaultKind } from "./script.ts";

/** Source of an answer: an entry of a script (from 0), or the reason for none. */
export type Served =
  | { readonly entry: number; readonly fault: FaultKind | undefined }
  | { readonly none: "no script" | "past the end" | "bad script" | "model probe" | "side question" | "not a message" };

export interface RequestRecord {
  /** Number in order of arrival, from 1. */
  readonly seq: number;
  /** Time of complete arrival, ms since the epoch. */
  readonly time: number;
  readonly method: string;
  /** Includes the query string. */
  readonly path: string;
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly sessionId: string | undefined;
  /** Id of the subagent; `undefined` for the main conversation. */
  readonly agentId: string | undefined;
  readonly subagent: boolean;
  /** Names of offered tools. */
  readonly tools: readonly string[];
  /** Blocks of the system prompt, joined by newlines. */
  readonly system: string;
  /** Beta features in the header `anthropic-beta`. */
  readonly betas: readonly string[];
  /** Unchanged from the request: thinking, and effort, task budget or format of the output. */
  readonly thinking: unknown;
  readonly outputConfig: Readonly<Record<string, unknown>>;
  /** Texts of all messages except the model's own. Without the system prompt. */
  readonly told: string;
  /** Text of the last user message with any text. */
  readonly lastUserText: string;
  /** Digest of the system prompt and all messages, except marks for the cache. Equal for byte-equal requests only. */
  readonly digest: string;
  /** Number of images in the messages. */
  readonly images: number;
  readonly served: Served;
}

const MAX_RECORDS = 10_000;
const MAX_CHARACTERS = 32 * 1024 * 1024;

interface Watcher {
  see(record: RequestRecord): void;
  fail(reason: unknown): void;
}

/** Keeps the last 10,000 requests, or fewer if their texts exceed 32 Mi characters. */
export class Records {
  readonly list: RequestRecord[] = [];
  readonly #watchers = new Set<Watcher>();
  #seq = 0;
  #characters = 0;
  #closed = false;

  add(record: Omit<RequestRecord, "seq">): RequestRecord {
    const added = { seq: ++this.#seq, ...record };
    this.list.push(added);
    this.#characters += sizeOf(added);
    while (this.list.length > MAX_RECORDS || (this.#characters > MAX_CHARACTERS && this.list.length > 1)) {
      const dropped = this.list.shift();
      if (dropped) this.#characters -= sizeOf(dropped);
    }
    for (const watcher of this.#watchers) watcher.see(added);
    return added;
  }

  /** Resolves to the first request, past or future, accepted by `matches`. Rejects on abort of `signal` and on `close()`. */
  async waitFor(matches: (record: RequestRecord) => boolean, signal?: AbortSignal): Promise<RequestRecord> {
    signal?.throwIfAborted();
    const seen = this.list.find(matches);
    if (seen) return seen;
    if (this.#closed) throw new Error(CLOSED);
    return new Promise((resolve, reject) => {
      const settle = (then: () => void) => {
        this.#watchers.delete(watcher);
        signal?.removeEventListener("abort", abort);
        then();
      };
      const fail = (reason: unknown) => settle(() => reject(reason));
      const see = (record: RequestRecord) => {
        try {
          if (matches(record)) settle(() => resolve(record));
        } catch (error) {
          fail(error);
        }
      };
      const watcher = { see, fail };
      const abort = () => fail(signal?.reason);
      this.#watchers.add(watcher);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** Rejects all waits. */
  close(): void {
    this.#closed = true;
    for (const watcher of this.#watchers) watcher.fail(new Error(CLOSED));
  }
}

const CLOSED = "the scripted model was closed while a request was waited for";

function sizeOf(record: RequestRecord): number {
  return record.system.length + record.told.length + record.lastUserText.length;
}
