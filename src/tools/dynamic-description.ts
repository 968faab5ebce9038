import { z } from "zod";
import type { StoredEvent } from "../domain/event.ts";
import { describeTool } from "../domain/options/known-tools.ts";

const Init = z.object({ type: z.literal("system"), subtype: z.literal("init"), tools: z.array(z.string()) });

/**
 * Tools last reported by Claude Code, learned from logs read by callers; costs no request of its own. Tools of MCP servers are
 * left out, because they differ between sessions.
 */
export class DynamicDescription {
  readonly #listeners = new Set<() => void>();
  #names: readonly string[] = [];

  learn(events: readonly StoredEvent[]): void {
    const inits = events.flatMap((event) => (event.type === "message" ? [Init.safeParse(event.data.message)] : []));
    const reported = inits.findLast(({ success }) => success)?.data?.tools.filter((name) => !name.startsWith("mcp__"));
    // Claude Code reports the tool for subagents under a name unknown to calls and requests; `describeTool` corrects the name.
    const names = reported && [...new Set(reported.map((name) => describeTool(name).name))];
    if (!names || names.join() === this.#names.join()) return;
    this.#names = names;
    for (const listener of this.#listeners) listener();
  }

  /** Returns a function to unsubscribe. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** True for `claude_code`, the only tool with tool names in parameters: its description changes with `learn`. */
  describes(name: string): boolean {
    return name === "claude_code";
  }

  describe(name: string, description: string): string {
    if (!this.describes(name) || this.#names.length === 0) return description;
    return `${description} Tools of Claude Code: ${this.#names.join(", ")}.`;
  }
}
