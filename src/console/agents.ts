import type { JsonObject } from "../domain/json.ts";
import type { SessionLog, SessionRecord } from "../engine/ports.ts";
import type { AskingAgent } from "./wire.ts";

/** The task of a subagent that asks: its prompt, as the log has it before the request. */

/** Events of a log that are read at a time, from the request backwards, and at most. */
const [PAGE, MAX_READ] = [500, 5_000];
const MAX_WORDS = 120;
/** Subagents that are remembered. */
const KEPT = 2_000;

export class Agents {
  readonly #log: Pick<SessionLog, "read">;
  readonly #known = new Map<string, AskingAgent>();

  constructor(log: Pick<SessionLog, "read">) {
    this.#log = log;
  }

  /** Undefined where the log does not say. */
  async of({ createdAt, id }: SessionRecord, agentId: string, eventId: number): Promise<AskingAgent | undefined> {
    // One that was deleted can come back from the disk under its id.
    const name = JSON.stringify([id, createdAt, agentId]);
    const known = this.#known.get(name);
    if (known) return known;
    const found = await this.#find(id, agentId, eventId);
    // What this request is too far behind, or the log does not hold yet, another may find.
    if (!found) return undefined;
    if (this.#known.size >= KEPT) this.#known.clear();
    this.#known.set(name, found);
    return found;
  }

  async #find(sessionId: string, agentId: string, eventId: number): Promise<AskingAgent | undefined> {
    let task: JsonObject | undefined;
    const least = Math.max(1, eventId - MAX_READ);
    for (let end = eventId; end > least; end -= PAGE) {
      const from = Math.max(least, end - PAGE);
      const events = await this.#log.read(sessionId, from, PAGE, ["message"]);
      for (const event of events.toReversed()) {
        if (event.type !== "message" || event.id >= end) continue;
        const { message } = event.data;
        if (!task) {
          task = message["subtype"] === "task_started" && message["task_id"] === agentId ? message : undefined;
        } else if (callsWith(message, task["tool_use_id"])) {
          return { description: wordsOf(task["description"]), eventId: event.id };
        }
      }
    }
    return undefined;
  }
}

/** Whether it is the message in which the tool was called. */
function callsWith({ message, type }: JsonObject, toolUseId: unknown): boolean {
  if (type !== "assistant" || typeof message !== "object" || message === null || !("content" in message)) return false;
  const { content } = message;
  return (
    Array.isArray(content) &&
    content.some(
      (block: unknown) => typeof block === "object" && block !== null && "id" in block && block.id === toolUseId,
    )
  );
}

function wordsOf(description: unknown): string {
  const line = typeof description === "string" ? description.trim().replaceAll(/\s+/g, " ") : "";
  return line.length <= MAX_WORDS ? line : `${line.slice(0, MAX_WORDS - 1)}…`;
}
