import type { Engine } from "../engine/api.ts";
import type { SessionRecord } from "../engine/ports.ts";

/** What a session is called: as somebody has named it, or as its first prompt begins, which never changes. */

const TITLE_MOST = 120;
/** First prompts that are remembered. */
const KEPT = 2_000;
/** Nothing of note comes before the first prompt. */
const FIRST_EVENTS = 5;

export class Titles {
  readonly #engine: Pick<Engine, "read">;
  readonly #prompts = new Map<string, string>();

  constructor(engine: Pick<Engine, "read">) {
    this.#engine = engine;
  }

  /** "" for a session without a name that has had no prompt yet. */
  async of({ id, principal, state, title }: SessionRecord): Promise<string> {
    if (title !== undefined) return title;
    const known = this.#prompts.get(id);
    if (known !== undefined) return known;
    if (state.lastEventId === 0) return "";
    const first = await this.#engine.read(principal, id, 1, FIRST_EVENTS);
    const prompt = first.find((event) => event.type === "prompt.queued");
    if (prompt?.type !== "prompt.queued") return "";
    const text = beginningOf(prompt.data.text);
    if (this.#prompts.size >= KEPT) this.#prompts.clear();
    this.#prompts.set(id, text);
    return text;
  }
}

function beginningOf(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length <= TITLE_MOST ? line : `${line.slice(0, TITLE_MOST - 1)}…`;
}
