import type { Query } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import type { AgentSignal } from "../../engine/ports.ts";
import { settlesWithin } from "./control.ts";

/** Claude Code works on without the tools of an MCP server that has failed, and says so in its `system/init` only. */

const Init = z.object({
  mcp_servers: z.array(z.object({ name: z.string(), status: z.string(), source: z.string().optional() })),
});
/** The `source` of servers that were given with the start: the user's own may wait for a login that no one wants. */
const GIVEN = "dynamic";

/** The servers that do not work, of a `system/init`. */
export function failedServers(init: JsonObject): string[] {
  const { mcp_servers: servers } = Init.catch({ mcp_servers: [] }).parse(init);
  const failed = servers.filter(
    ({ source, status }) => status === "failed" || (status === "needs-auth" && source === GIVEN),
  );
  return failed.map(({ name }) => name);
}

export function serversFailed(failed: readonly string[]): AgentSignal {
  return { type: "notice", kind: "warning", message: describe(failed, new Map()), details: { failed: [...failed] } };
}

const Failed = z.object({ failed: z.array(z.string()) });

/** Claude Code answers within 20 ms. */
const ANSWER_MS = 1_000;
/** Characters. */
const MAX_NAME = 60;
const MAX_REASON = 200;
const MAX_SERVERS = 10;

type Notice = Extract<AgentSignal, { type: "notice" }>;

/** A warning of `serversFailed` with Claude Code's reasons, where it can be asked for them; any other notice as it is. */
export async function withServerErrors(notice: Notice, query: Query, mask: (text: string) => string): Promise<Notice> {
  const read = Failed.safeParse(notice.kind === "warning" ? notice.details : undefined);
  if (!read.success) return notice;
  const asked = query.mcpServerStatus().catch(() => []);
  const servers = (await settlesWithin(ANSWER_MS, asked)) ? await asked : [];
  const reasons = servers.map(({ error, name, status }) => [name, mask(error ?? status)] as const);
  return { ...notice, message: describe(read.data.failed, new Map(reasons)) };
}

function describe(failed: readonly string[], reasons: ReadonlyMap<string, string>): string {
  const named = failed.slice(0, MAX_SERVERS).map((name) => {
    const reason = reasons.get(name) ?? "failed";
    const why = reason === "failed" ? "" : ` (${oneLine(reason).slice(0, MAX_REASON)})`;
    return oneLine(name).slice(0, MAX_NAME) + why;
  });
  const more = failed.length > MAX_SERVERS ? ` and ${String(failed.length - MAX_SERVERS)} more` : "";
  const advice = "Correct what starts them, then start a new session.";
  return `mcpServers: ${named.join(", ")}${more} did not start, and Claude works without their tools. ${advice}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, " ");
}
