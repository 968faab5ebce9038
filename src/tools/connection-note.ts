import type { JsonObject } from "../domain/json.ts";
import type { Caller } from "../domain/principal.ts";
import { statusOf, type SessionState } from "../domain/session.ts";
import type { Engine } from "../engine/api.ts";
import type { SessionRecord } from "../engine/ports.ts";

/** Maximum number of sessions listed by id; the rest is only counted. */
const MAX_NAMED = 5;

/** Adds a note to the first answer of each connection. */
export class ConnectionNote {
  readonly #note: string;
  #isGiven = false;

  /** `note` explains whether the client's work continues after the client ends. */
  constructor(note: string) {
    this.#note = note;
  }

  /** Adds the note to `answer`, unless already given or the caller limits the size of the answer (`maxBytes`). */
  async addTo(
    answer: JsonObject,
    raw: unknown,
    { principal }: Pick<Caller, "principal">,
    engine: Pick<Engine, "takeUnattended">,
  ): Promise<JsonObject> {
    if (this.#isGiven || hasOwnBudget(raw)) return answer;
    this.#isGiven = true;
    // An error here must not fail the call, whose work is done.
    const records = await engine.takeUnattended(principal).catch(() => []);
    return { ...answer, note: this.#note, ...(records.length > 0 && { unattended: describeSessions(records) }) };
  }
}

function hasOwnBudget(raw: unknown): boolean {
  return typeof raw === "object" && raw !== null && "maxBytes" in raw;
}

function describeSessions(records: readonly SessionRecord[]): string {
  const named = records.slice(0, MAX_NAMED).map(({ id, state }) => `${id} (${describeProgress(state)})`);
  const more = records.length - named.length;
  const all = [...named, ...(more > 0 ? [`${String(more)} more`] : [])].join(", ");
  return `${String(records.length)} ${records.length === 1 ? "session" : "sessions"} continued unattended: ${all}`;
}

function describeProgress(state: SessionState): string {
  const { attendance, lastOutcome, turn } = state;
  const status = statusOf(state);
  if (status === "waiting_permission") return "waits for an answer";
  if (turn || state.closed) return status;
  const over = attendance?.work?.over;
  if (over !== undefined)
    return `stopped by ${over === "time" ? "the limit of unattended time" : "--unattended-max-usd"}`;
  return lastOutcome ?? status;
}
