import type { Query } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import type { AgentSignal } from "../../engine/ports.ts";
import { settlesWithin } from "./control.ts";

/** Finds failed MCP servers: Claude Code works on without their tools and reports failures only in `system/init`. */

const Init = z.object({
  mcp_servers: z.array(z.object({ name: z.string(), status: z.string(), source: z.string().optional() })),
});
/**
 * `source` of MCP servers given at the start of the session. Only these count as failed if a login is missing: the user may not
 * want to log in at every server of their own.
 */
const GIVEN = "dynamic";

/** Returns the names of failed servers in a `system/init` message. */
export function readFailedServers(init: JsonObject): string[] {
  const { mcp_servers: servers } = Init.catch({ mcp_servers: [] }).parse(init);
  const failed = servers.filter(
    ({ source, status }) => status === "failed" || (status === "needs-auth" && source === GIVEN),
  );
  return failed.map(({ name }) => name);
}

export function failedServersNotice(failed: readonly string[]): AgentSignal {
  return { type: "notice", kind: "warning", message: describe(failed, new Map()), details: { failed: [...failed] } };
}

const Failed = z.object({ failed: z.array(z.string()) });

/** Time limit for `mcpServerStatus`, ms. Claude Code normally answers within 20 ms. */
const ANSWER_MS = 1_000;
/** Maximum length of `name` in the message, characters. */
const MAX_NAME = 60;
const MAX_REASON = 200;
const MAX_SERVERS = 10;

type Notice = Extract<AgentSignal, { type: "notice" }>;

/** Adds Claude Code's reasons, if available, to a warning of `failedServersNotice`. Returns any other notice unchanged. */
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
  const advice = "Fix their configuration, then start a new session.";
  return `mcpServers: ${named.join(", ")}${more} did not start, and Claude works without their tools. ${advice}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, " ");
}
