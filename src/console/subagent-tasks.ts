import type { JsonObject } from "../domain/json.ts";
import type { SessionLog, SessionRecord } from "../engine/ports.ts";
import type { AskingAgent } from "./wire.ts";

/**
 * Finds the task of a subagent: `description` and event of the tool call that started the subagent, searched in the log before
 * the request.
 */

/** `PAGE`: events per read, backwards from the request. `MAX_READ`: events searched at most. */
const [PAGE, MAX_READ] = [500, 5_000];
const MAX_DESCRIPTION = 120;
/** Maximum size of `#known`, which is cleared when full. */
const MAX_KNOWN = 2_000;

export class SubagentTasks {
  readonly #log: Pick<SessionLog, "read">;
  readonly #known = new Map<string, AskingAgent>();

  constructor(log: Pick<SessionLog, "read">) {
    this.#log = log;
  }

  /** Resolves to `undefined` if the log does not name the task. */
  async findTask({ createdAt, id }: SessionRecord, agentId: string, eventId: number): Promise<AskingAgent | undefined> {
    // Includes `createdAt`, because a deleted session can come back from disk under its id.
    const name = JSON.stringify([id, createdAt, agentId]);
    const known = this.#known.get(name);
    if (known) return known;
    const found = await this.#find(id, agentId, eventId);
    // Does not cache a miss: another request may be nearer to the task, or the task may be logged later.
    if (!found) return undefined;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
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
        } else if (isCallMessage(message, task["tool_use_id"])) {
          return { description: truncateDescription(task["description"]), eventId: event.id };
        }
      }
    }
    return undefined;
  }
}

/** True if the message is the assistant message that called the tool `toolUseId`. */
function isCallMessage({ message, type }: JsonObject, toolUseId: unknown): boolean {
  if (type !== "assistant" || typeof message !== "object" || message === null || !("content" in message)) return false;
  const { content } = message;
  return (
    Array.isArray(content) &&
    content.some(
      (block: unknown) => typeof block === "object" && block !== null && "id" in block && block.id === toolUseId,
    )
  );
}

function truncateDescription(description: unknown): string {
  const line = typeof description === "string" ? description.trim().replaceAll(/\s+/g, " ") : "";
  return line.length <= MAX_DESCRIPTION ? line : `${line.slice(0, MAX_DESCRIPTION - 1)}…`;
}
