import { createHash } from "node:crypto";
import type { ErrorAnswer } from "./faults.ts";
import type { Served } from "./records.ts";
import { type Caller, type MessagesRequest, userTexts } from "./request.ts";
import { parseScript, type Reply, type Script, scriptIn, ScriptError, stepAt } from "./script.ts";

/** Answer to a request: a reply, or an error if the script is invalid. */
type Answer = { readonly served: Served } & ({ readonly reply: Reply } | { readonly error: ErrorAnswer });

/** Script of a conversation, its origin, and the number of answers so far. */
interface PlacedScript {
  readonly script: Script;
  /** Identifies the use of `script` within its session. */
  readonly place: string;
  readonly answers: number;
}

const MAX_COUNTERS = 10_000;

export class Conversations {
  /** Number of requests per step with a fault. The only state; all else is read from requests. */
  readonly #attempts = new Map<string, number>();
  readonly #fallback: Script | undefined;

  constructor(fallback: Script | undefined) {
    this.#fallback = fallback;
  }

  answer(request: MessagesRequest, caller: Caller): Answer {
    if (request.max_tokens === 1) return { served: { none: "model probe" }, reply: { text: "Hello" } };
    if (request.output_config?.format) {
      return { served: { none: "side question" }, reply: { text: '{"title":"Scripted session"}' } };
    }
    let found: PlacedScript | undefined;
    try {
      found = this.#find(request);
    } catch (error) {
      if (!(error instanceof ScriptError)) throw error;
      return { served: { none: "bad script" }, error: { status: 400, message: `Scripted model: ${error.message}` } };
    }
    if (!found) return { served: { none: "no script" }, reply: { text: "The prompt has no model script." } };
    return this.#next(found, caller);
  }

  /** Finds the last script in texts of the user. Tool results do not count, because a tool may read anything. */
  #find({ messages }: MessagesRequest): PlacedScript | undefined {
    for (const [at, message] of [...messages.entries()].toReversed()) {
      for (const [block, text] of [...userTexts(message).entries()].toReversed()) {
        const json = scriptIn(text);
        if (json === undefined) continue;
        const hash = createHash("sha256").update(json).digest("base64");
        const place = `${String(at)}.${String(block)} ${hash}`;
        return { script: parseScript(json), place, answers: answersIn(messages.slice(at + 1)) };
      }
    }
    return this.#fallback && { script: this.#fallback, place: "fallback", answers: answersIn(messages) };
  }

  #next({ script, place, answers }: PlacedScript, { sessionId, agentId }: Caller): Answer {
    const key = JSON.stringify([sessionId, agentId, place, answers]);
    const attempt = this.#attempts.get(key) ?? 0;
    const step = stepAt(script, answers, attempt);
    if (!step) return { served: { none: "past the end" }, reply: { text: "Done." } };
    if (step.fault) this.#count(key, attempt + 1);
    return { served: { entry: step.entry, fault: step.fault }, reply: step.reply };
  }

  #count(key: string, attempts: number): void {
    this.#attempts.delete(key);
    this.#attempts.set(key, attempts);
    if (this.#attempts.size <= MAX_COUNTERS) return;
    const [oldest] = this.#attempts.keys();
    if (oldest !== undefined) this.#attempts.delete(oldest);
  }
}

function answersIn(messages: MessagesRequest["messages"]): number {
  return messages.filter(({ role }) => role === "assistant").length;
}

/** Named latches in scripts. Once released, a gate stays open. */
export class Gates {
  readonly #open = new Set<string>();
  readonly #waiting = new Map<string, Set<() => void>>();

  release(name: string): void {
    this.#open.add(name);
    for (const pass of this.#waiting.get(name) ?? []) pass();
    this.#waiting.delete(name);
  }

  /** Resolves when the gate is open. Rejects with the reason of `signal`. */
  async pass(name: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#open.has(name)) return;
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting);
    await new Promise<void>((resolve, reject) => {
      const abort = () => {
        waiting.delete(resolve);
        reject(signal.reason instanceof Error ? signal.reason : new Error("the wait at a gate was aborted"));
      };
      waiting.add(resolve);
      signal.addEventListener("abort", abort, { once: true });
    });
  }
}
