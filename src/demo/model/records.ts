/** The requests a scripted model has seen, and those who wait for one. */
import type { FaultKind } from "./script.ts";

/** What a request got: an entry of a script (counted from 0), or why none. */
export type Served =
  | { readonly entry: number; readonly fault: FaultKind | undefined }
  | { readonly none: "no script" | "past the end" | "bad script" | "model probe" | "side question" | "not a message" };

export interface RequestRecord {
  /** 1, 2, 3, … in the order of arrival. */
  readonly seq: number;
  /** Milliseconds since the epoch, when the whole request was there. */
  readonly time: number;
  readonly method: string;
  /** With the query string. */
  readonly path: string;
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly sessionId: string | undefined;
  /** The subagent that asks; undefined for the main conversation. */
  readonly agentId: string | undefined;
  readonly subagent: boolean;
  /** Names of the tools offered. */
  readonly tools: readonly string[];
  /** The system prompt's blocks, joined by a newline. */
  readonly system: string;
  /** Beta features, of the header `anthropic-beta`. */
  readonly betas: readonly string[];
  /** As the request has them: whether to think, and effort, task budget or format of the output. */
  readonly thinking: unknown;
  readonly outputConfig: Readonly<Record<string, unknown>>;
  /** All that the model is told beside the system prompt: the texts of every message that is not its own. */
  readonly told: string;
  /** All text of the last user message that has any. */
  readonly lastUserText: string;
  /** How many images the messages hold. */
  readonly images: number;
  readonly served: Served;
}

const MAX_RECORDS = 10_000;
const MAX_CHARACTERS = 32 * 1024 * 1024;

interface Watcher {
  see(record: RequestRecord): void;
  fail(reason: unknown): void;
}

/** Keeps the last 10,000 requests, fewer when their texts are longer than 32 Mi characters together. */
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

  /** The first request, seen already or to come, that `matches`. Rejects when `signal` aborts or at close(). */
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

  /** Ends all waits. */
  close(): void {
    this.#closed = true;
    for (const watcher of this.#watchers) watcher.fail(new Error(CLOSED));
  }
}

const CLOSED = "the scripted model was closed while a request was waited for";

function sizeOf(record: RequestRecord): number {
  return record.system.length + record.told.length + record.lastUserText.length;
}
