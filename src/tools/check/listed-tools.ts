import type { JsonObject } from "../../domain/json.ts";
import { describeTool, KNOWN_TOOLS } from "../../domain/options/known-tools.ts";
import type { SessionView } from "../session-view.ts";

/**
 * The tools of a session: those that Claude Code reported at its last start, with what is known of them; before the first
 * start all that are known.
 */
export async function availableTools(view: SessionView, lastEventId: number): Promise<JsonObject[]> {
  const reported = await reportedTools(view, lastEventId);
  if (!reported) return KNOWN_TOOLS.map((tool) => ({ ...tool }));
  return [...new Map(reported.map(describeTool).map((tool) => [tool.name, { ...tool }])).values()];
}

const PAGE = 200;

/** Every process reports them when it starts, so they are found from the end: the log may be long. */
async function reportedTools(view: SessionView, lastEventId: number): Promise<string[] | undefined> {
  for (let end = lastEventId; end > 0; end -= PAGE) {
    const from = Math.max(1, end - PAGE + 1);
    const page = await view.read(from, end - from + 1);
    const init = page.findLast(
      ({ id, ...event }) => id <= end && event.type === "message" && isInit(event.data.message),
    );
    if (init?.type === "message") return namesIn(init.data.message["tools"]);
  }
  return undefined;
}

function isInit({ type, subtype, tools }: JsonObject): boolean {
  return type === "system" && subtype === "init" && Array.isArray(tools);
}

function namesIn(tools: unknown): string[] {
  return Array.isArray(tools) ? tools.filter((name) => typeof name === "string") : [];
}
