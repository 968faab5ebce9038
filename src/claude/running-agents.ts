import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import type { AgentSignal } from "../engine/ports.ts";

/** Message of a subagent. In the main conversation `parent_tool_use_id`, the tool call that started the subagent, is null. */
const Spoken = z.object({ agent_id: z.string(), parent_tool_use_id: z.string() });
const Started = z.object({ task_id: z.string(), task_type: z.literal("local_agent") });
const Updated = z.object({
  task_id: z.string(),
  patch: z.object({ status: z.enum(["completed", "failed", "killed"]) }),
});
const Notified = z.object({ task_id: z.string() });
const Listed = z.object({ tasks: z.array(z.object({ task_id: z.string() })) });

/**
 * Tracks running subagents, in the background and in the foreground. Claude Code that ends a turn at a budget of its own leaves
 * foreground subagents running, reports itself idle, and does not list them as background tasks.
 */
export class RunningAgents {
  readonly #running = new Set<string>();
  readonly #ended = new Set<string>();
  #listed: readonly string[] = [];
  #isIdle = false;

  /** Reads a message. Returns `idle` if Claude Code becomes idle, or if an agent ends while Claude Code is idle. */
  read(name: string, message: JsonObject): AgentSignal[] {
    const before = this.#agents.length;
    const becameIdle = this.#note(name, message);
    const agents = this.#agents;
    if (!becameIdle && (!this.#isIdle || agents.length >= before)) return [];
    return [{ type: "idle", ...(agents.length > 0 && { agents }) }];
  }

  get #agents(): string[] {
    return [...this.#running].filter((id) => !this.#listed.includes(id));
  }

  /** Returns true if `message` reports that Claude Code is idle. */
  #note(name: string, message: JsonObject): boolean {
    switch (name) {
      case "system/session_state_changed":
        this.#isIdle = message["state"] === "idle";
        return this.#isIdle;
      case "system/task_started":
        this.#start(Started.safeParse(message).data?.task_id);
        break;
      case "system/task_updated":
        this.#end(Updated.safeParse(message).data?.task_id);
        break;
      case "system/task_notification":
        this.#end(Notified.safeParse(message).data?.task_id);
        break;
      case "system/background_tasks_changed":
        this.#listed = Listed.safeParse(message).data?.tasks.map((task) => task.task_id) ?? [];
        break;
      case "assistant":
      case "user":
        this.#speak(Spoken.safeParse(message).data?.agent_id);
        break;
    }
    return false;
  }

  /** Adds an agent, also one that has ended: Claude Code can resume an agent under its id. */
  #start(id: string | undefined): void {
    if (id === undefined) return;
    this.#ended.delete(id);
    this.#running.add(id);
  }

  /**
   * Adds an agent that speaks, because its start may not be read again after an attach. Not if ended: last messages can come
   * late.
   */
  #speak(id: string | undefined): void {
    if (id !== undefined && !this.#ended.has(id)) this.#running.add(id);
  }

  #end(id: string | undefined): void {
    if (id === undefined) return;
    this.#running.delete(id);
    this.#ended.add(id);
  }
}
