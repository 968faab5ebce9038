import type { JsonObject } from "../domain/json.ts";
import type { Caller } from "../domain/principal.ts";
import { statusOf, type SessionState } from "../domain/session.ts";
import type { Engine } from "../engine/api.ts";
import type { SessionRecord } from "../engine/ports.ts";

/** Sessions that are named; the others are counted. */
const MAX_NAMED = 5;

/** What the first answer to a client says beside its own matter, once for each connection. */
export class FirstAnswer {
  readonly #note: string;
  #isGiven = false;

  /** `note` says what becomes of the client's work when the client ends. */
  constructor(note: string) {
    this.#note = note;
  }

  /** Adds it to the answer of a call, unless it was given before or the caller has set the size of the answer (`maxBytes`). */
  async addTo(
    answer: JsonObject,
    raw: unknown,
    { principal }: Pick<Caller, "principal">,
    engine: Pick<Engine, "takeUnattended">,
  ): Promise<JsonObject> {
    if (this.#isGiven || hasOwnBudget(raw)) return answer;
    this.#isGiven = true;
    // What the call has done stands, whether or not this can be read.
    const records = await engine.takeUnattended(principal).catch(() => []);
    return { ...answer, note: this.#note, ...(records.length > 0 && { unattended: wordsOf(records) }) };
  }
}

function hasOwnBudget(raw: unknown): boolean {
  return typeof raw === "object" && raw !== null && "maxBytes" in raw;
}

function wordsOf(records: readonly SessionRecord[]): string {
  const named = records.slice(0, MAX_NAMED).map(({ id, state }) => `${id} (${wordOf(state)})`);
  const more = records.length - named.length;
  const all = [...named, ...(more > 0 ? [`${String(more)} more`] : [])].join(", ");
  return `${String(records.length)} ${records.length === 1 ? "session" : "sessions"} continued unattended: ${all}`;
}

function wordOf(state: SessionState): string {
  const { attendance, lastOutcome, turn } = state;
  const status = statusOf(state);
  if (status === "waiting_permission") return "waits for an answer";
  if (turn || state.closed) return status;
  const over = attendance?.work?.over;
  if (over !== undefined)
    return `stopped by ${over === "time" ? "the limit of unattended time" : "--unattended-max-usd"}`;
  return lastOutcome ?? status;
}
