import { AppError } from "../domain/error.ts";
import type { Engine } from "../engine/api.ts";
import type { SessionRecord } from "../engine/ports.ts";

/** Title of a session: its name, otherwise the beginning of its first prompt, which never changes. */

const MAX_TITLE = 120;
/** Maximum size of `#prompts`, which is cleared when full. */
const MAX_PROMPTS = 2_000;
/** Number of events to search for `prompt.queued`: the first prompt stands near the start of the log. */
const FIRST_EVENTS = 5;

export class Titles {
  readonly #engine: Pick<Engine, "read">;
  readonly #prompts = new Map<string, string>();

  constructor(engine: Pick<Engine, "read">) {
    this.#engine = engine;
  }

  /** Resolves to "" for an unnamed session without a prompt. */
  async findTitle({ createdAt, id, principal, state, title }: SessionRecord): Promise<string> {
    if (title !== undefined) return title;
    // Includes `createdAt` and `principal`, because a deleted session can be adopted again from disk under its id, by another
    // principal.
    const key = JSON.stringify([id, createdAt, principal]);
    const known = this.#prompts.get(key);
    if (known !== undefined) return known;
    if (state.lastEventId === 0) return "";
    const first = await this.#engine.read(principal, id, 1, FIRST_EVENTS).catch(noneIfRefused);
    const prompt = first.find((event) => event.type === "prompt.queued");
    if (prompt?.type !== "prompt.queued") return "";
    const text = beginningOf(prompt.data.text);
    if (this.#prompts.size >= MAX_PROMPTS) this.#prompts.clear();
    this.#prompts.set(key, text);
    return text;
  }
}

/** Returns [] for an `AppError`: a session that was deleted after the listing, or cannot be read, must not hide the others. */
export function noneIfRefused(error: unknown): [] {
  if (error instanceof AppError) return [];
  throw error;
}

function beginningOf(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length <= MAX_TITLE ? line : `${line.slice(0, MAX_TITLE - 1)}…`;
}
