import { z } from "zod";
import type { StoredEvent } from "../domain/event.ts";
import { describeTool } from "../domain/options/known-tools.ts";

const Init = z.object({ type: z.literal("system"), subtype: z.literal("init"), tools: z.array(z.string()) });

/**
 * The tools that Claude Code last said it has, learnt from the logs that callers read here: nothing is asked for it and
 * nothing pushed. Those of MCP servers are left out, since every session has its own.
 */
export class ReportedTools {
  readonly #listeners = new Set<() => void>();
  #names: readonly string[] = [];

  learn(events: readonly StoredEvent[]): void {
    const inits = events.flatMap((event) => (event.type === "message" ? [Init.safeParse(event.data.message)] : []));
    const reported = inits.findLast(({ success }) => success)?.data?.tools.filter((name) => !name.startsWith("mcp__"));
    // Claude Code reports one of them by a name that calls and requests do not have.
    const names = reported && [...new Set(reported.map((name) => describeTool(name).name))];
    if (!names || names.join() === this.#names.join()) return;
    this.#names = names;
    for (const listener of this.#listeners) listener();
  }

  /** Returns what ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Whether the description of this tool changes with what is learnt: only one takes tool names. */
  describes(name: string): boolean {
    return name === "claude_code";
  }

  describe({ name, description }: { name: string; description: string }): string {
    if (!this.describes(name) || this.#names.length === 0) return description;
    return `${description} Tools of Claude Code: ${this.#names.join(", ")}.`;
  }
}
