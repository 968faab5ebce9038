import { once } from "node:events";
import type { Query } from "@anthropic-ai/claude-agent-sdk";
import type { Launch } from "./launch.ts";

/** Claude Code runs without an agent that it does not know, and says so nowhere: nothing is handed to it before it has named its agents. */
export function requiringAgent(agent: string | undefined, open: Launch["open"]): Launch["open"] {
  if (agent === undefined) return open;
  return async (bound) => {
    let release: () => void = () => undefined;
    const isKnown = new Promise<void>((resolve) => (release = resolve));
    const query = await open({ ...bound, prompts: heldUntil(isKnown, bound.prompts) });
    const known = await Promise.race([agentsOf(query), once(bound.signal, "abort").then(() => undefined)]);
    if (known && !known.includes(agent)) {
      query.close();
      throw new Error(`advanced.agent: there is no agent ${agent}; available: ${known.join(", ")}`);
    }
    release();
    return query;
  };
}

async function* heldUntil<T>(ready: Promise<void>, source: AsyncIterable<T>): AsyncGenerator<T, void> {
  await ready;
  yield* source;
}

/** Undefined where it ended before it could tell, which its stream tells as well. */
async function agentsOf(query: Query): Promise<string[] | undefined> {
  const told = await query.initializationResult().catch(() => undefined);
  return told?.agents.map(({ name }) => name);
}
